"""A Flower in this process: a Grid whose nodes run the ClientApp at once, through Flower's own API.

Honest: messages are Flower's, made and answered by the app as on a SuperNode. What a network and processes add, a node
that is away, late, crashes or lies, a test puts in by `fault`.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from fedforget.engines.flower import GridStore
from fedforget.engines.flower_post import Post
from fedforget.flower import enable_unlearning
from fedforget.slices import SliceKey
from fedforget.storage.directory import DirectoryStore

Fault = Callable[[Message], Message | Error | None]  # an answer instead of the app's; None: no answer at all


@dataclass
class TwinNode:
    """A SuperNode: its key, its configuration, its app, and what is wrong with it."""

    key: bytes
    config: dict[str, Any]
    app: ClientApp
    run_config: dict[str, Any] = field(default_factory=dict)
    online: bool = True
    before: Fault | None = None  # in place of the app
    after: Callable[[Message], Message | Error | None] | None = None  # on what the app answered
    seen: list[Message] = field(default_factory=list)

    def answer(self, message: Message, node_id: int) -> Message | Error | None:
        self.seen.append(deepcopy(message))  # the app makes the message its own
        context = Context(1, node_id, dict(self.config), RecordDict(), dict(self.run_config))
        if self.before is not None:
            return self.before(message)
        reply = self.app(message, context)
        return reply if self.after is None else self.after(reply)


class Twin(Grid):
    """Nodes by id; answers lie ready from the moment a message was pushed."""

    def __init__(self, nodes: dict[int, TwinNode]) -> None:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1  # this process is the ServerApp
        self.nodes = nodes
        self.replies: dict[str, Message] = {}
        self.wire: list[bytes] = []  # every byte that was ever in a message, as Flower's database would keep it
        self._ids = count(1)

    def set_run(self, run: Any) -> None: ...

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *_: Any, **__: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return [id for id, node in self.nodes.items() if node.online]

    def get_nodes(self) -> Iterable[NodeInfo]:
        return [NodeInfo(node_id=id, public_key=self.nodes[id].key) for id in self.get_node_ids()]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return [self._push(message) for message in messages]

    def _push(self, message: Message) -> str:
        name = f"message-{next(self._ids)}"
        message.metadata.__dict__["_message_id"] = name
        self._keep(message)
        node = self.nodes[message.metadata.dst_node_id]
        id = message.metadata.dst_node_id
        found = node.answer(deepcopy(message), id) if node.online else Error(5, "Node unavailable")
        if isinstance(found, Error):
            found = Message(found, reply_to=message)
        if found is not None:
            self._keep(found)
            self.replies[found.metadata.reply_to_message_id] = found
        return name

    def _keep(self, message: Message) -> None:
        if message.has_content():
            for record in message.content.array_records.values():
                self.wire += [array.data for array in record.values()]
            self.wire += [repr(record).encode() for record in message.content.config_records.values()]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self.replies.pop(name) for name in message_ids if name in self.replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(list(self.push_messages(messages)))


@dataclass(frozen=True)
class Anybody:
    """An enrolment that believes what a node says."""

    def name(self, claimed: str, partition: int) -> str:
        return claimed

    def admit(self, key: str, client: str) -> tuple[str, str]:
        return (client, "") if client else ("", "it names no client")


def named(root: Path, names: Iterable[str], app: ClientApp, first: int = 100) -> Twin:
    """A node for each name."""
    nodes = {}
    for i, name in enumerate(names):
        nodes[first + i] = TwinNode(keyed(i), {"client": name, "slice-dir": str(root / f"node-{i}")}, app)
    return Twin(nodes)


@dataclass
class Delivering(GridStore):
    """What is put is delivered at once."""

    def put(self, pieces: Mapping[SliceKey, bytes]) -> None:
        super().put(pieces)
        self.flush()


def grid_store(root: Path, names: Iterable[str], delivered: bool) -> GridStore:
    """A store over a twin whose ClientApp trains nothing."""
    post = quick(named(root, names, enable_unlearning(ClientApp())))
    post.meet((), 0.0)
    return (Delivering if delivered else GridStore)(post, DirectoryStore(root / "server"))


def quick(grid: Grid, **changes: Any) -> Post:
    """A post whose clock runs only while it waits."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return Post(grid, **{"enrolment": Anybody(), "clock": lambda: now[0], "sleep": sleep, **changes})


def keyed(number: int) -> bytes:
    """A public key as the SuperLink shows it."""
    return b"-----BEGIN PUBLIC KEY-----\n%d\n-----END PUBLIC KEY-----\n" % number


def federation(root: Path, app: ClientApp, clients: int) -> Twin:
    """One node a client, named as seats are."""
    return named(root, [f"client-{i:03d}" for i in range(clients)], app)
