"""The ready ClientApp on a node that misbehaves as the file `fault` beside its slice folder says, if there is one.

crash       the process ends while it trains                 raise     training raises
wrong       slices come back with a byte changed             older     … come back as an older generation's
none        it has slices, and gives none                    late      it gives them after the deadline
stale       the reply before this one is sent again          kill PID  the SuperNode dies, asked for slices
kill-training PID                                            … while it trains
"""

import os
import pickle
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedforget.engines.flower_node import Node, slice_folder
from fedforget.engines.flower_wire import envelope, opened
from fedforget.flower.node import client_app
from fedforget.slices import SliceKey
from fedforget.storage.directory import DirectoryStore
from fedforget.storage.disk import Disk

app = ClientApp()
inner = client_app()


def fault_of(folder: Path) -> tuple[str, str]:
    path = folder.parent / "fault"
    word, _, rest = path.read_text().strip().partition(" ") if path.exists() else ("", "", "")
    return word, rest


@dataclass(frozen=True)
class Lying:
    """A node's slices, read as the fault has it."""

    store: DirectoryStore
    word: str
    rest: str
    old: Path

    def put(self, pieces: Mapping[SliceKey, bytes]) -> None:
        self.store.put(pieces)

    def get(self, key: SliceKey) -> bytes | None:
        found = self.store.get(key)
        if self.word == "kill":
            os.kill(int(self.rest), signal.SIGKILL)
            time.sleep(60)
        if self.word == "late":
            time.sleep(float(self.rest))
        if found is None or self.word == "none":
            return None
        if self.word == "wrong":
            return bytes([found[0] ^ 1]) + found[1:]
        if self.word == "older":
            return self.old.read_bytes()[: len(found)].ljust(len(found), b"\0")
        return found

    def delete(self, keys: Collection[SliceKey]) -> frozenset[SliceKey]:
        return self.store.delete(keys)

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        return self.store.keys(holder)


def train(message: Message, context: Context) -> Message:
    """What the ready app trains with, or how it fails to."""
    word, rest = fault_of(slice_folder(context))
    if word == "raise":
        raise RuntimeError("this node was told to raise")
    if word == "crash":
        os._exit(1)
    if word == "kill-training":
        os.kill(int(rest), signal.SIGKILL)
        time.sleep(60)
    return inner(message, context)


def serve(message: Message, context: Context) -> Message:
    folder, disk = slice_folder(context), Disk()
    word, rest = fault_of(folder)
    store = Lying(DirectoryStore(folder / "slices", disk), word, rest, folder.parent / "old.slice")
    reply = Node(folder, disk, store).serve(message, context, train)
    kept = folder.parent / "last-reply"
    before = pickle.loads(kept.read_bytes()) if kept.exists() else None
    config, box = opened(reply.content) or ({}, b"")
    kept.write_bytes(pickle.dumps(box))
    if word == "stale" and before and config.get("kind") == "reply":
        return Message(envelope("reply", before), reply_to=message)
    return reply


app.train()(serve)
app.query("fedforget")(serve)
