"""The HTTP endpoint: what is served now, as a file, in words, and as answers; on this machine's own address."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fedforget.datasets import load
from fedforget.params import Params
from fedforget.serve import MOST, Shelf, server
from fedforget.storage import queue
from fedforget.workspace import FederationSettings, Workspace

SETTINGS = FederationSettings(clients=4, shards=2, participants=0, rounds=1, epochs=1)


@pytest.fixture
def space(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.init(tmp_path / "w", SETTINGS) as made:
        made.train()
        yield made


@pytest.fixture
def shelf(space: Workspace) -> Shelf:
    return Shelf(space)


def said(reply: Any) -> Any:
    return json.loads(reply.body)


def quarantine(space: Workspace, *shards: int) -> None:
    with space.ledger.transaction("test") as db:
        queue.quarantine(db, space.ledger.log, {"r": [(0, s) for s in shards]}, "2026-01-01T00:00:00Z")


def test_the_model_comes_once_and_then_only_when_it_has_changed(space: Workspace, shelf: Shelf) -> None:
    reply = shelf.answer("GET", "/model?to=hospital-17", {})
    assert reply.status == 200
    assert Params.from_bytes(reply.body).digest == reply.headers["ETag"].strip('"')
    again = shelf.answer("GET", "/model?to=hospital-17", {"If-None-Match": reply.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    assert [row.recipient for row in space.serving.exports().exports] == ["hospital-17"]
    space.forget(["client-001"])
    changed = shelf.answer("GET", "/model", {"If-None-Match": f'"other", W/{reply.headers["ETag"]}'})
    assert changed.status == 200
    assert changed.headers["ETag"] != reply.headers["ETag"]
    assert [row.recipient for row in space.serving.exports().tell] == ["hospital-17"]


def test_asking_for_its_head_hands_nothing_over(space: Workspace, shelf: Shelf) -> None:
    assert shelf.answer("HEAD", "/model", {}).status == 200
    assert space.serving.exports().exports == ()


def test_a_quarantine_is_out_of_the_next_answer(space: Workspace, shelf: Shelf) -> None:
    before = said(shelf.answer("GET", "/status", {}))
    assert (before["shards"], before["guarantee"]["grade"], before["left_out"]) == ([0, 1], "X1", {})
    quarantine(space, 1)
    after = said(shelf.answer("GET", "/status", {}))
    assert (after["shards"], after["guarantee"]["grade"], after["left_out"]) == ([0], "Q", {"1": ["r"]})
    assert after["digest"] != before["digest"]
    quarantine(space, 0)
    none = shelf.answer("GET", "/model", {})
    assert (none.status, "serves nothing" in said(none)["error"]) == (503, True)


@pytest.mark.parametrize("combine", ["average", "ensemble", "vote"])
def test_answers_are_those_of_what_is_served(space: Workspace, combine: str) -> None:
    test = load("digits").test
    x = (test.x[:3] / 16).tolist() if test.x.max() > 1 else test.x[:3].tolist()
    found = said(Shelf(space, combine).answer("POST", "/predict", {}, json.dumps({"x": x}).encode()))
    assert len(found["classes"]) == 3
    assert all(abs(sum(row) - 1) < 1e-6 for row in found["probabilities"])
    assert found["guarantee"] == "X1"


@pytest.mark.parametrize("body", [b"", b"[]", b'{"x": 1}', b'{"x": []}', b'{"x": "a"}', b'{"y": 1}', b'{"x": [[NaN]]}'])
def test_a_question_that_is_none_says_what_is_meant(shelf: Shelf, body: bytes) -> None:
    reply = shelf.answer("POST", "/predict", {}, body)
    assert reply.status == 400
    assert "x is" in said(reply)["error"]


def test_numbers_that_are_not_finite_are_refused(shelf: Shelf) -> None:
    width = shelf.space.task.test.x[0].size
    reply = shelf.answer("POST", "/predict", {}, json.dumps({"x": [[float("nan")] * width]}).encode())
    assert (reply.status, "finite" in said(reply)["error"]) == (400, True)


def test_other_ways_are_named(shelf: Shelf) -> None:
    assert shelf.answer("GET", "/", {}).status == 404
    assert shelf.answer("POST", "/model", {}).headers["Allow"] == "GET, HEAD"
    assert shelf.answer("GET", "/predict", {}).status == 405
    assert shelf.answer("GET", "/model?to=%0a", {}).status == 400


def test_damage_is_said_and_nothing_is_served(space: Workspace, shelf: Shelf) -> None:
    for path in (space.path / "holders" / "server.head").rglob("*.slice"):
        path.write_bytes(b"altered")
    for holder in (space.path / "holders").iterdir():
        for path in holder.rglob("*.slice"):
            path.unlink()
    assert shelf.answer("GET", "/model", {}).status == 500


def test_over_a_socket(shelf: Shelf) -> None:
    with server(shelf, 0) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", listening.server_port, timeout=10)) as line:
                line.request("GET", "/model")
                reply = line.getresponse()
                body = reply.read()
                assert Params.from_bytes(body).digest == str(reply.headers["ETag"]).strip('"')
                line.request("GET", "/model", headers={"if-none-match": str(reply.headers["ETag"])})
                unchanged = line.getresponse()
                assert (unchanged.status, unchanged.read()) == (304, b"")
                line.request("HEAD", "/status")
                head = line.getresponse()
                assert (head.status, head.read()) == (200, b"")
                line.request("POST", "/predict", headers={"Content-Length": str(MOST + 1)})
                large = line.getresponse()
                assert large.status == 413
        finally:
            listening.shutdown()
            thread.join()
        assert listening.server_address[0] == "127.0.0.1"
