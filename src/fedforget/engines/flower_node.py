"""Node: what a SuperNode does for the history, around whatever ClientApp trains on it.

A ClientApp is a new process for every message, so all it has to know lies in the node's slice folder:

    SLICE-DIR/FEDERATION/session.key   this run's key pair, mode 0600; replaced by a hello, erased by a close
    SLICE-DIR/FEDERATION/slices/       the slices this node holds

The server names slices by four numbers and never by a path: however wrong it is, it reaches no other file.
"""

import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from flwr.app import Context, Message, RecordDict

from ..errors import FedForgetError, SealBroken, SettingError
from ..slices import SliceKey, SliceStore
from .flower_box import BoxKey, seal
from .flower_wire import (
    Asked,
    Reply,
    Spot,
    envelope,
    frame,
    opened,
    read_request,
    spot,
    write_reply,
)

log = logging.getLogger("fedforget")
ClientCall = Callable[[Message, Context], Message]
OWN = "own"  # the holder's name in its own folder


class Files(Protocol):
    """The few durable operations a session needs."""

    def write(self, path: Path, blob: bytes, mode: int = 0o644) -> None: ...

    def read(self, path: Path) -> bytes | None: ...

    def erase(self, path: Path) -> None: ...


@dataclass(frozen=True)
class Session:
    """One run's key pair of this node, the server's public key, and the highest number seen."""

    key: BoxKey
    server: bytes
    seen: int = 0

    def to_bytes(self) -> bytes:
        return json.dumps({"secret": self.key.secret.hex(), "server": self.server.hex(), "seen": self.seen}).encode()

    @staticmethod
    def from_bytes(blob: bytes) -> "Session":
        row = json.loads(blob)
        return Session(BoxKey(bytes.fromhex(row["secret"])), bytes.fromhex(row["server"]), int(row["seen"]))


@dataclass(frozen=True)
class Node:
    """A node's folder: its session and its slices."""

    folder: Path
    files: Files
    slices: SliceStore
    clock: Callable[[], float] = time.perf_counter

    @property
    def _session(self) -> Path:
        return self.folder / "session.key"

    def serve(self, message: Message, context: Context, app: ClientCall) -> Message:
        """Answer one of our messages; hand the application its own part of it."""
        found = opened(message.content)
        if found is None:
            return app(message, context)  # a plain Flower message: nothing of ours is in it
        config, box = found
        if config["kind"] == "hello":
            return Message(
                self._hello(_bytes(config["public"]), _bytes(config["challenge"]), context), reply_to=message
            )
        session = self._load()
        try:
            asked = self._asked(session, box)
        except SealBroken as fault:
            log.warning("fedforget: refused a message: %s", fault)
            return Message(envelope("again", b"", why=str(fault)), reply_to=message)
        assert session is not None
        self.files.write(self._session, Session(session.key, session.server, asked.number).to_bytes(), 0o600)
        reply = self._work(asked, message, context, app)
        if asked.close:
            self.files.erase(self._session)
        sealed = seal(session.server, write_reply(reply), asked.challenge)
        return Message(envelope("reply", sealed), reply_to=message)

    def _hello(self, server: bytes, challenge: bytes, context: Context) -> RecordDict:
        """A new session, whatever the one before was; and what the server has to know of this node."""
        session = Session(BoxKey.make(), server)
        self.files.erase(self._session)
        self.files.write(self._session, session.to_bytes(), 0o600)
        header = {
            "public": session.key.public.hex(),
            "client": str(context.node_config.get("client", "")),
            "partition": int(context.node_config.get("partition-id", -1)),
            "held": sorted(spot(key) for key in self.slices.keys()),  # noqa: SIM118
        }
        return envelope("hello", seal(server, frame(header, []), challenge))

    def _load(self) -> Session | None:
        blob = self.files.read(self._session)
        try:
            return None if blob is None else Session.from_bytes(blob)
        except (ValueError, KeyError, TypeError):
            return None

    def _asked(self, session: Session | None, box: bytes) -> Asked:
        if session is None:
            raise SealBroken("a request", "this node has no session; it says so and gets a new one")
        asked = read_request(session.key.open(box, b"request", "a request"))
        if asked.number <= session.seen:
            raise SealBroken("a request", f"its number {asked.number} was seen before: a replay")
        return asked

    def _work(self, asked: Asked, message: Message, context: Context, app: ClientCall) -> Reply:
        failed: list[str] = []
        stored = self._store(asked, failed)
        keys = [_own(s) for s in asked.delete]
        self.slices.delete(keys)
        deleted = frozenset(spot(key) for key in keys if self.slices.get(key) is None)
        found = {s: self.slices.get(_own(s)) for s in asked.get}
        got = {s: blob for s, blob in found.items() if blob is not None}
        began = self.clock()
        trained = self._train(asked.train, message, context, app, failed) if asked.train is not None else None
        return Reply(stored, deleted, got, trained, "; ".join(failed), self.clock() - began)

    def _store(self, asked: Asked, failed: list[str]) -> frozenset[Spot]:
        """Keep the slices, all durable, or say why not; training goes on either way."""
        try:
            self.slices.put({_own(s): blob for s, blob in asked.put.items()})
        except (FedForgetError, OSError) as fault:
            log.warning("fedforget: cannot keep slices: %s", fault)
            failed.append(f"cannot keep slices: {fault}")
            return frozenset()
        return frozenset(asked.put)

    def _train(
        self, content: RecordDict, message: Message, context: Context, app: ClientCall, failed: list[str]
    ) -> RecordDict | None:
        message.content = content
        try:
            reply = app(message, context)
        except Exception as fault:  # whatever the application raises is the server's to know, and ends nothing here
            log.exception("fedforget: the ClientApp raised")
            failed.append(f"the ClientApp raised {type(fault).__name__}: {fault}")
            return None
        if reply.has_error():
            failed.append(f"the ClientApp answered with error {reply.error.code}: {reply.error.reason}")
            return None
        return reply.content


def _own(at: Spot) -> SliceKey:
    return SliceKey(*at, OWN)


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise SettingError("message", type(value).__name__, "bytes where a hello has bytes")
    return value


def federation_folder(base: Path, message: Message) -> Path:
    """A folder a federation, so that two on the same nodes keep out of each other's way."""
    found = opened(message.content)
    name = str(found[0].get("federation", "")) if found else ""
    if not re.fullmatch(r"[0-9a-f]{16}", name):
        raise SettingError("federation", name[:20], "16 hexadecimal digits")
    return base / name


def slice_folder(context: Context) -> Path:
    """Where this node keeps its slices: its own setting, or in simulation a folder a partition below the run's."""
    own, base = context.node_config.get("slice-dir"), context.run_config.get("slice-dir")
    if own:
        folder = Path(str(own))
    elif base and "partition-id" in context.node_config:
        folder = Path(str(base)) / f"partition-{int(context.node_config['partition-id'])}"
    else:
        folder = Path()
    if not folder.is_absolute():
        raise SettingError("slice-dir", str(own or base or ""), "an absolute path in the node-config of this SuperNode")
    return folder
