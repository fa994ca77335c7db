"""Post: one exchange with the nodes of a federation, however many of them are slow, dead or lying.

Who a node is, is decided here: the SHA-256 of its public key, bound to a client when the two first met. Whatever does
not come back in time, does not open or comes from somebody else is a loss: one line in the log, naming client, node
and cause, and never an answer.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from ..errors import SealBroken
from .flower_box import BoxKey, seal
from .flower_wire import QUERY, Reply, Request, Spot, envelope, opened, read_reply, read_spot, unframe, write_request

log = logging.getLogger("fedforget")
Identity = Literal["key", "partition"]
_WHY = {
    1: "its ClientApp does not load",
    2: "its ClientApp raised",
    3: "the message got lost at the SuperLink",
    4: "its reply got lost at the SuperLink",
    5: "the node is dead or away",
    7: "the app's bundle is not valid there",
    8: "its ClientApp crashed",
}


class Enrolment(Protocol):
    """Which client a node may be."""

    def name(self, claimed: str, partition: int) -> str:
        """The name of the client a node says it is; empty if it names none."""

    def admit(self, key: str, client: str) -> tuple[str, str]:
        """The client a key stands for, bound now if both are free; or empty, and why it is refused."""


@dataclass
class Peer:
    """A client whose node was met in this run."""

    node: int
    public: bytes
    held: set[Spot]
    number: int = 0


@dataclass
class _Letter:
    """A message on its way."""

    client: str
    node: int
    kind: Literal["hello", "request"]
    challenge: bytes
    again: bool = False
    about: str = ""


@dataclass
class Post:
    """Keeps who is where in this run; all else comes and goes with each exchange."""

    grid: Grid
    enrolment: Enrolment
    deadline: float = 300.0
    identity: Identity = "key"
    federation: str = ""
    key: BoxKey = field(default_factory=BoxKey.make)
    pause: float = 0.25
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    peers: dict[str, Peer] = field(default_factory=dict)
    sent: int = 0  # messages so far
    _keys: dict[int, str] = field(default_factory=dict)  # node → SHA-256 of its public key; empty in simulation
    _met: dict[int, str] = field(default_factory=dict)  # node → its client; empty: not said yet, or refused
    _renewed: set[str] = field(default_factory=set)  # clients that asked for a new session and got it

    # --- who is there -------------------------------------------------------------------------------------

    def meet(self, clients: Iterable[str], wait: float) -> frozenset[str]:
        """Wait for the nodes of these clients, at most so long; who is there and was greeted."""
        wanted, until = set(clients), self.clock() + wait
        while True:
            for _ in self.ask({}, idle=max(wait, 1.0)):
                pass
            missing = wanted - self.present()
            if not missing or self.clock() >= until:
                break
            self.sleep(self.pause)
        for client in sorted(missing):
            log.warning("fedforget: no node of %s is there", client)
        return self.present()

    def present(self) -> frozenset[str]:
        """Clients whose node is there now."""
        online = set(self.grid.get_node_ids())
        return frozenset(c for c, peer in self.peers.items() if peer.node in online)

    def _new(self) -> None:
        """Find nodes not met yet, and their keys."""
        for info in self.grid.get_nodes():
            node, key = int(info.node_id), bytes(info.public_key)
            if node not in self._met:
                # Simulated nodes have random bytes for a key, a SuperNode an encoded one.
                real = self.identity == "key" and key.startswith(b"-----BEGIN")
                self._keys[node] = hashlib.sha256(key).hexdigest() if real else ""

    # --- one exchange -------------------------------------------------------------------------------------

    def ask(self, requests: Mapping[str, Request], idle: float | None = None) -> Iterator[tuple[str, Reply]]:
        """Send each client its request and yield what comes back, until all have answered or the deadline is over.

        Nodes not met yet are greeted on the way, and one that turns out to be a client still waited for is sent its
        request at once: nobody waits for anybody else's greeting. `idle`: once somebody has answered, so long without
        another answer ends it too; on a machine under load the first may take long, and the others come soon after.
        """
        letters: dict[str, _Letter] = {}
        todo, began = dict(requests), self.clock()
        until = began + self.deadline
        self._new()
        self._send_hellos([node for node in self._keys if node not in self._met], letters)
        self._send_known(todo, letters)
        while letters and (not requests or todo or any(one.kind == "request" for one in letters.values())):
            late = self.clock() >= until  # what is there by then still counts
            replies = list(self.grid.pull_messages(list(letters)))
            if replies and idle is not None:
                until = min(began + self.deadline, self.clock() + idle)
            for message in replies:
                letter = letters.pop(message.metadata.reply_to_message_id, None)
                if letter is None:
                    log.warning("fedforget: node %d answers a message nobody waits for", message.metadata.src_node_id)
                elif letter.kind == "hello":
                    self._heard(letter, message)
                elif (reply := self._read(letter, message)) is not None:
                    yield letter.client, reply
                elif letter.client not in self.peers and not letter.again:  # it wants a new session, and once it may
                    todo[letter.client] = requests[letter.client]
                    self._send_hellos([letter.node], letters)
            if late:
                break
            self._send_known(todo, letters)
            if not replies and letters:
                self.sleep(self.pause)
        for letter in letters.values():
            self._late(letter, self.clock() - began if self.clock() >= until else None)
        for client in sorted(todo):
            log.warning("fedforget: lost %s in %s: no node of it is there", client, requests[client].about)

    def _send_hellos(self, nodes: Sequence[int], letters: dict[str, _Letter]) -> None:
        sent: list[tuple[_Letter, RecordDict, str]] = []
        for node in nodes:
            challenge = os.urandom(16)
            content = self._envelope("hello", b"", public=self.key.public, challenge=challenge)
            sent.append((_Letter("", node, "hello", challenge, about="a greeting"), content, QUERY))
            self._met[node] = ""  # until it has answered
        self._push(sent, letters)

    def _send_known(self, todo: dict[str, Request], letters: dict[str, _Letter]) -> None:
        """Send what can be sent: to clients whose node has been met and is there."""
        if set(todo) & set(self.peers):
            self._push([self._written(c, todo.pop(c)) for c in sorted(set(todo) & self.present())], letters)

    def _written(self, client: str, request: Request) -> tuple[_Letter, RecordDict, str]:
        peer, challenge = self.peers[client], os.urandom(16)
        peer.number += 1
        box = seal(peer.public, write_request(request, peer.number, challenge), b"request")
        letter = _Letter(client, peer.node, "request", challenge, client in self._renewed, request.about)
        return letter, self._envelope("request", box), MessageType.TRAIN if request.train is not None else QUERY

    def _envelope(self, kind: str, box: bytes, **open: bytes) -> RecordDict:
        """Which federation it is for may be read by anybody: 16 digits that say nothing."""
        name = hashlib.sha256(self.federation.encode()).hexdigest()[:16]
        return envelope(kind, box, federation=name, **open)

    def _push(self, sent: Sequence[tuple[_Letter, RecordDict, str]], letters: dict[str, _Letter]) -> None:
        if not sent:
            return
        messages = [Message(content, letter.node, kind, ttl=self.deadline) for letter, content, kind in sent]
        self.sent += len(messages)
        for id, (letter, _, _) in zip(self.grid.push_messages(messages), sent, strict=True):
            if id:
                letters[id] = letter
            else:
                self._lost(letter, "the SuperLink takes no message for it")

    # --- what comes back ----------------------------------------------------------------------------------

    def _heard(self, letter: _Letter, message: Message) -> None:
        """A node says who it is."""
        node = letter.node
        if message.has_error():
            self._met.pop(node, None)  # asked again at the next exchange
            self._lost(letter, _cause(message))
            return
        try:
            found = opened(message.content)
            if found is None:
                raise SealBroken("a hello", "it is none: does this node run an app with enable_unlearning?")
            header, _ = unframe(self.key.open(found[1], letter.challenge, "a hello"), "a hello")
            public, held = bytes.fromhex(header["public"]), {read_spot(s) for s in header["held"]}
            claimed = self.enrolment.name(str(header["client"]), int(header["partition"]))
        except (SealBroken, KeyError, ValueError, TypeError) as fault:
            self._lost(letter, f"its hello is refused: {fault}")
            return
        client, why = self.enrolment.admit(self._keys[node], claimed)
        if not client:
            key = self._keys[node][:12] or "none"
            log.warning("fedforget: refused node %d (key %s) as %s: %s", node, key, claimed or "nobody", why)
            return
        self._met[node] = client
        self.peers[client] = Peer(node, public, held)

    def _read(self, letter: _Letter, message: Message) -> Reply | None:
        client = letter.client
        if message.has_error():
            self._lost(letter, _cause(message))
            return None
        try:
            found = opened(message.content)
            if found is None:
                raise SealBroken("a reply", "it is not one of ours")
            config, box = found
            if config.get("kind") == "again":
                why = f"it refused the message: {config.get('why', '')!s}"
                self.peers.pop(client, None)
                self._renewed.add(client)
                if not letter.again:
                    log.warning("fedforget: %s (node %d) is greeted anew: %s", client, letter.node, why)
                    return None
                raise SealBroken("a reply", why)
            reply = read_reply(self.key.open(box, letter.challenge, f"the reply of {client}"))
        except SealBroken as fault:
            self._lost(letter, str(fault))
            return None
        if reply.failed:
            self._lost(letter, reply.failed)
        return reply

    def _late(self, letter: _Letter, waited: float | None) -> None:
        """Not answered; a greeting nobody waited for any more is sent again with the next exchange."""
        if letter.kind == "hello":
            self._met.pop(letter.node, None)
        if waited is not None:
            self._lost(letter, f"no answer within {waited:.0f} seconds")

    def _lost(self, letter: _Letter, why: str) -> None:
        log.warning("fedforget: lost %s (node %d) in %s: %s", letter.client or "?", letter.node, letter.about, why)


def _cause(message: Message) -> str:
    error = message.error
    said = (error.reason or "").strip().splitlines()
    detail = f": {said[-1]}" if said else ""
    return f"{_WHY.get(error.code, 'it answered with an error')} (Flower's error {error.code}{detail})"
