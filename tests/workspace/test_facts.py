"""Facts: what a page is made of is what the ledger has."""

from pathlib import Path

import pytest
from small import client, copied, make, opened, trained

from fedforget.workspace import Workspace
from fedforget.workspace.facts import Facts, RequestFacts, facts
from fedforget.workspace.progress import silent


@pytest.fixture(scope="module")
def base(shared_room: Path) -> Path:
    return trained(shared_room / "base", participants=0)


def of(space: Workspace, **more: bool) -> Facts:
    return facts(space, silent, **more)


def test_a_new_federation_has_shards_and_nothing_in_them(room: Path) -> None:
    with make(room / "w") as space:
        found = of(space, verify=False)
    assert found.name == "w"
    assert found.events == 2
    assert [(c.stage, c.shard, c.rounds, c.of, c.digest, c.stretches) for c in found.cells] == [
        (0, 0, 0, 3, "", ()),
        (0, 1, 0, 3, "", ()),
    ]
    assert found.requests == ()
    assert found.verification is None


def test_every_stretch_of_rounds_says_how_it_was_made(base: Path, room: Path) -> None:
    with opened(copied(base, room / "w")) as space:
        shard = space.state().plan.shard_of(client(0))
        space.forget([client(0)], "clean")
        space.open_stage(2)
        space.train()
        found = of(space)
        cell = next(c for c in found.cells if (c.stage, c.shard) == (0, shard))
        assert [(s.first, s.last, s.generation, s.kind) for s in cell.stretches] == [
            (0, 0, 1, "prepared"),
            (1, 2, 1, "clean"),
        ]
        assert cell.stretches[1].source == 1 - shard
        later = next(c for c in found.cells if (c.stage, c.shard) == (1, shard))
        assert later.comes_from == ((0, shard),)
        assert later.digest == space.state().final((1, shard)).digest
        assert found.standing[shard] == "X3"
        assert found.verification is not None
        assert found.verification.passed
        assert found.evaluation is not None
        assert found.missing == ""
        assert found.requests == (
            RequestFacts(
                1, "executed", (client(0),), "clean", "X3", found.requests[0].reason, (), found.requests[0].touches, ""
            ),
        )
        assert found.requests[0].touches[0]["shard"] == shard
        assert sum(c.client_epochs for c in found.cells) == sum(
            r.cost.client_epochs for r in space.state().rows.values()
        )
        assert of(space) == found, "the same workspace, the same facts"


def test_what_cannot_be_evaluated_is_said_and_the_rest_stands(base: Path, room: Path) -> None:
    with opened(copied(base, room / "w")) as space:
        space.forget([client(i) for i in range(8)])
        found = of(space)
        assert found.evaluation is None
        assert "no client is left" in found.missing
        assert found.verification is not None
        assert found.verification.passed
        left_out = of(space, evaluate=False)
        assert (left_out.evaluation, left_out.missing) == (None, "")


def test_a_request_that_was_refused_says_why(base: Path, room: Path) -> None:
    with opened(copied(base, room / "w")) as space:
        request = space.ledger.open_request({"leave": [client(0)], "method": "exact", "calibration": {}, "before": {}})
        space.ledger.refuse(request, "the first uploads are lost")
        (found,) = of(space, evaluate=False, verify=False).requests
        assert (found.state, found.why, found.grade) == ("refused", "the first uploads are lost", "")
