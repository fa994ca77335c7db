"""Exchanges with nodes that are away, late, dead, lying or strangers: a loss each, a line each, and never an answer."""

import hashlib
import logging
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp

from fedforget.engines.flower_post import Post
from fedforget.engines.flower_wire import Request, envelope, opened
from fedforget.errors import SettingError
from fedforget.flower import enable_unlearning
from fedforget.slices import SliceKey
from flower_twin import Twin, TwinNode, named, quick

KEY = SliceKey(0, 0, 0, 0, "a")
TRAIN = Request(train=RecordDict({"config": ConfigRecord({"say": "hello"})}), about="round 3")


@pytest.fixture
def app() -> ClientApp:
    """Says what it was asked to say."""
    inner = ClientApp()

    @inner.train()
    def train(message: Message, context: Context) -> Message:
        return Message(message.content, reply_to=message)

    @inner.query()
    def query(message: Message, context: Context) -> Message:
        return Message(RecordDict({"plain": ConfigRecord({"yes": True})}), reply_to=message)

    return enable_unlearning(inner)


@pytest.fixture
def grid(app: ClientApp, tmp_path: Path) -> Twin:
    return named(tmp_path, ["a", "b"], app)


@pytest.fixture(autouse=True)
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was logged at warning level."""
    caplog.set_level(logging.WARNING, "fedforget")
    return lambda: [r.getMessage() for r in caplog.records if r.name == "fedforget"]


def node(grid: Twin, name: str) -> TwinNode:
    return next(n for n in grid.nodes.values() if n.config["client"] == name)


def answers(post: Post, *clients: str, request: Request = TRAIN) -> dict[str, Any]:
    return dict(post.ask(dict.fromkeys(clients, request)))


def test_everybody_is_greeted_on_the_way_and_answers(grid: Twin, lines: Callable[[], list[str]]) -> None:
    post = quick(grid)
    assert {c: r.train["config"]["say"] for c, r in answers(post, "a", "b").items()} == {"a": "hello", "b": "hello"}
    assert post.sent == 4
    answers(post, "a")
    assert post.sent == 5  # greeted once
    assert lines() == []


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Error(3, "gone"), "the message got lost at the SuperLink (Flower's error 3: gone)"),
        (Error(5, ""), "the node is dead or away (Flower's error 5)"),
        (Error(8, "a\nClientApp exited"), "its ClientApp crashed (Flower's error 8: ClientApp exited)"),
        (Error(99, "?"), "it answered with an error (Flower's error 99: ?)"),
        (None, "no answer within 300 seconds"),
    ],
)
def test_a_node_that_errs_or_is_silent_is_lost_with_its_cause(
    grid: Twin, fault: Error | None, cause: str, lines: Callable[[], list[str]]
) -> None:
    post = quick(grid)
    post.meet(["a", "b"], 1.0)
    node(grid, "a").before = lambda _: fault
    assert set(answers(post, "a", "b")) == {"b"}
    assert lines() == [f"fedforget: lost a (node 100) in round 3: {cause}"]
    node(grid, "a").before = None
    assert set(answers(post, "a", "b")) == {"a", "b"}


def test_a_silent_node_holds_up_the_greeting_of_the_others_only_so_long(
    grid: Twin, lines: Callable[[], list[str]]
) -> None:
    post = quick(grid)
    node(grid, "a").before = lambda _: None
    assert post.meet(["a", "b"], 5.0) == {"b"}
    assert post.clock() < 15
    assert lines()[0] == "fedforget: lost ? (node 100) in a greeting: no answer within 5 seconds"
    node(grid, "b").before = lambda _: None
    other = quick(grid)
    assert other.meet(["a", "b"], 5.0) == frozenset()
    assert other.clock() >= 300  # while nobody has answered yet, a slow machine gets its time


def test_a_client_without_a_node_is_lost(grid: Twin, lines: Callable[[], list[str]]) -> None:
    post = quick(grid)
    node(grid, "b").online = False
    assert set(answers(post, "a", "b")) == {"a"}
    assert lines() == ["fedforget: lost b in round 3: no node of it is there"]
    assert post.meet(["a", "b"], 2.0) == {"a"}
    assert lines()[1:] == ["fedforget: no node of b is there"]


def altered(message: Message) -> Message:
    config, box = opened(message.content) or ({}, b"")
    return Message(envelope(str(config["kind"]), box[:-1] + bytes([box[-1] ^ 1])), reply_to=_asked(message))


def _asked(reply: Message) -> Message:
    """A message as the one this is the reply to."""
    asked = Message(RecordDict(), 1, "train")
    asked.metadata.__dict__["_message_id"] = reply.metadata.reply_to_message_id
    return asked


@pytest.mark.parametrize(
    "lie",
    [
        altered,
        lambda m: Message(RecordDict({"plain": ConfigRecord({})}), reply_to=_asked(m)),
        lambda m: Message(envelope("reply", b""), reply_to=_asked(m)),
    ],
)
def test_a_reply_that_does_not_open_is_a_loss(
    grid: Twin, lie: Callable[[Message], Message], lines: Callable[[], list[str]]
) -> None:
    post = quick(grid)
    post.meet(["a", "b"], 1.0)
    node(grid, "a").after = lie
    assert set(answers(post, "a", "b")) == {"b"}
    (line,) = lines()
    assert line.startswith("fedforget: lost a (node 100) in round 3: ")


def test_a_reply_of_before_is_no_answer_to_this_request(grid: Twin, lines: Callable[[], list[str]]) -> None:
    post, kept = quick(grid), []
    post.meet(["a"], 1.0)
    node(grid, "a").after = lambda reply: kept.append(reply) or reply
    answers(post, "a")
    node(grid, "a").after = lambda reply: Message(kept[0].content, reply_to=_asked(reply))
    assert answers(post, "a") == {}
    assert "replayed" in lines()[0]


def test_a_request_replayed_is_refused_by_the_node_and_changes_nothing(
    grid: Twin, lines: Callable[[], list[str]]
) -> None:
    post = quick(grid)
    answers(post, "a", request=Request(put={KEY: b"old"}, about="x"))
    answers(post, "a", request=Request(delete=[KEY], about="x"))
    old = deepcopy(node(grid, "a").seen[1])
    reply = node(grid, "a").answer(old, 100)
    assert isinstance(reply, Message)
    config, _ = opened(reply.content) or ({}, b"")
    assert config["kind"] == "again"
    assert "a replay" in str(config["why"])
    assert answers(post, "a", request=Request(get=[KEY]))["a"].got == {}


def test_a_node_that_lost_its_session_gets_a_new_one_and_answers(
    grid: Twin, tmp_path: Path, lines: Callable[[], list[str]]
) -> None:
    post = quick(grid)
    answers(post, "a")
    (session(tmp_path, 0)).write_bytes(b"half of it")
    assert set(answers(post, "a", "b")) == {"a", "b"}
    assert any("a (node 100) is greeted anew" in line for line in lines())
    (session(tmp_path, 0)).unlink()
    assert set(answers(post, "a")) == set()  # once is a fault, twice a habit
    assert "lost a (node 100)" in lines()[-1]


def test_after_a_close_the_nodes_key_is_gone(grid: Twin, tmp_path: Path) -> None:
    post = quick(grid)
    answers(post, "a", "b")
    assert (session(tmp_path, 0)).stat().st_mode & 0o777 == 0o600
    answers(post, "a", request=Request(close=True))
    assert not (session(tmp_path, 0)).exists()
    assert (session(tmp_path, 1)).exists()


def test_what_the_application_raises_or_answers_in_error_is_told_and_acknowledgements_come_all_the_same(
    tmp_path: Path, lines: Callable[[], list[str]]
) -> None:
    inner = ClientApp()

    @inner.train()
    def train(message: Message, context: Context) -> Message:
        if "raise" in message.content:
            raise RuntimeError("no such data")
        return Message(Error(2, "cannot"), reply_to=message)

    post = quick(named(tmp_path, ["a"], enable_unlearning(inner)))
    for kind, cause in (("raise", "raised RuntimeError: no such data"), ("err", "answered with error 2: cannot")):
        request = Request(put={KEY: b"slice"}, train=RecordDict({kind: ConfigRecord({})}), about="round 3")
        reply = answers(post, "a", request=request)["a"]
        assert reply.stored == {(0, 0, 0, 0)}
        assert reply.train is None
        assert lines()[-1] == f"fedforget: lost a (node 100) in round 3: the ClientApp {cause}"


def test_a_node_without_our_app_is_no_client(tmp_path: Path, lines: Callable[[], list[str]]) -> None:
    plain = ClientApp()

    @plain.query("fedforget")
    def query(message: Message, context: Context) -> Message:
        return Message(RecordDict(), reply_to=message)

    post = quick(named(tmp_path, ["a"], plain))
    assert answers(post, "a") == {}
    assert "enable_unlearning" in lines()[0]


def test_a_stranger_is_refused_by_name(grid: Twin, lines: Callable[[], list[str]]) -> None:
    class Guarded:
        def name(self, claimed: str, partition: int) -> str:
            return claimed

        def admit(self, key: str, client: str) -> tuple[str, str]:
            return (client, "") if client == "a" else ("", "nobody of that name is enrolled")

    post = quick(grid, enrolment=Guarded())
    assert set(answers(post, "a", "b")) == {"a"}
    assert any("refused node 101" in line and "as b: nobody of that name is enrolled" in line for line in lines())


def test_plain_messages_of_other_strategies_pass_by(grid: Twin) -> None:
    message = Message(RecordDict({"arrays": ConfigRecord({"x": 1})}), 100, "train")
    (reply,) = grid.send_and_receive([message])
    assert reply.content["arrays"]["x"] == 1
    (reply,) = grid.send_and_receive([Message(RecordDict(), 100, "query")])
    assert reply.content["plain"]["yes"]


def test_nothing_readable_travels(grid: Twin) -> None:
    answers(quick(grid), "a", "b", request=Request(put={KEY: b"sealed slice"}, train=TRAIN.train))
    everything = b"".join(grid.wire)
    assert everything
    assert b"hello" not in everything.replace(b"'hello'", b"")  # the kind of the first message
    assert b"sealed slice" not in everything


def session(root: Path, number: int) -> Path:
    """A node's key of this run."""
    name = hashlib.sha256(b"").hexdigest()[:16]
    return root / f"node-{number}" / name / "session.key"


def test_without_a_slice_folder_or_a_federation_the_node_says_what_is_missing(grid: Twin) -> None:
    hello = {"public": b"x" * 32, "challenge": b"y" * 16}
    named_well = Message(envelope("hello", b"", federation="0" * 16, **hello), 100, "query.fedforget")
    del node(grid, "b").config["slice-dir"]
    with pytest.raises(SettingError, match="slice-dir"):
        node(grid, "b").answer(named_well, 101)
    for name in ("", "../../elsewhere", "0" * 15 + "/"):
        with pytest.raises(SettingError, match="federation"):
            node(grid, "a").answer(
                Message(envelope("hello", b"", federation=name, **hello), 100, "query.fedforget"), 100
            )


def test_two_federations_on_the_same_nodes_keep_out_of_each_others_way(grid: Twin) -> None:
    one, other = quick(grid, federation="one"), quick(grid, federation="other")
    answers(one, "a", request=Request(put={KEY: b"one's"}))
    answers(other, "a", request=Request(put={KEY: b"the other's"}))
    answers(other, "a", request=Request(delete=[KEY], close=True))
    assert answers(one, "a", request=Request(get=[KEY]))["a"].got == {(0, 0, 0, 0): b"one's"}
    assert other.peers["a"].held == set()
