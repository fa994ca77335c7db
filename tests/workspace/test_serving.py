"""What is served while somebody waits to be forgotten, as which file, and who must be told of it later."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from small import client, copied, make, opened, trained
from worlds import shards_of

from fedforget.errors import NobodyLeft, NothingServed, NotTrained, SettingError
from fedforget.params import Params, mean
from fedforget.plan import Cell
from fedforget.requests import Scope
from fedforget.storage import exports, queue
from fedforget.storage.exports import Export
from fedforget.workspace import Workspace
from fedforget.workspace.reports import ExportsReport


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    return trained(shared_room / "pristine")


def quarantined(space: Workspace, *cells: Cell, request: str = "request-1") -> None:
    with space.ledger.transaction("test") as db:
        queue.quarantine(db, space.ledger.log, {request: cells}, "2026-01-01T00:00:00Z")


def test_nothing_asked_everything_is_served(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        now = space.serving.now()
        assert (now.shards, dict(now.out)) == ((0, 1), {})
        assert now.guarantee.grade == "X1"
        assert now.lineage == ((0, 0, 3), (0, 1, 3))
        assert space.status().served == now.guarantee
        assert space.evaluate().guarantee == now.guarantee


def test_a_quarantined_shard_is_left_out_of_all_that_is_served(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        before = space.serving.standpoint()
        quarantined(space, (0, 1))
        assert space.serving.standpoint() != before
        now, status = space.serving.now(), space.status()
        assert (now.shards, dict(now.out)) == ((0,), {1: ("request-1",)})
        assert now.guarantee.grade == "Q"
        assert "shard 1 is left out until request-1" in now.guarantee.reason
        assert status.left_out == ((1, ("request-1",)),)
        assert status.served == now.guarantee
        assert [s.model for s in space.evaluate().scores] == ["shard 0", "average", "ensemble", "vote"]
        made = space.serving.model("average")
        assert Params.from_bytes(made.blob) == space.state().served()[0]
        x = space.task.test.x
        assert (space.serving.predict(x)[0] == space.learner.predict(now.models[0], x)).all()


def test_what_is_less_than_exact_stays_so_behind_a_quarantine(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        (first, *_), _ = shards_of(space).values()
        space.forget([first], "calibrated")
        assert space.serving.now().guarantee.grade == "A"
        assert space.serving.now().guarantee.reason == "shard 0 is A"
        quarantined(space, (0, 1))
        assert space.serving.now().guarantee.grade == "A"
        quarantined(space, (0, 0), request="request-2")
        with pytest.raises(NothingServed, match="request-1, request-2") as caught:
            space.serving.model()
        assert caught.value.requests == ("request-1", "request-2")
        assert space.status().served is None


def test_quarantine_reaches_as_far_as_the_lineage(room: Path) -> None:
    with opened(trained(room / "w", seats=9), seats=9) as space:
        quarantined(space, (0, 1))
        space.open_stage()
        space.train()
        assert space.serving.now().shards == (0,)
        space.open_stage(handover="fresh")
        space.train()
        assert space.serving.now().shards == (0, 1)
        assert space.serving.now().lineage == ((2, 0, 3), (2, 1, 3))


def test_nobody_left_is_not_a_quarantine(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        space.forget(space.state().plan.clients)
        with pytest.raises(NobodyLeft):
            space.serving.model()


def test_forgetting_ends_the_quarantine(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        space.forget([client(2)])
        assert exports.left_out(space.ledger) == {}
        assert space.serving.now().guarantee.grade == "X1"


# --- files ----------------------------------------------------------------------------------------------------


def header(path: Path) -> dict[str, str]:
    blob = path.read_bytes()
    found: dict[str, str] = json.loads(blob[8 : 8 + int.from_bytes(blob[:8], "little")])["__metadata__"]
    return found


def test_the_average_is_one_model_with_its_papers(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        report = space.serving.export(room / "m.safetensors", to="hospital-17")
        model = Params.from_bytes((room / "m.safetensors").read_bytes())
        assert model == mean(list(space.state().served().values()))
        said = header(room / "m.safetensors")
        assert model.digest == report.digest == said["fedforget.digest"]
        assert said["fedforget.federation"] == "small"
        assert said["fedforget.generation"] == "0"
        assert json.loads(said["fedforget.guarantee"])["grade"] == "X1"
        lineage = json.loads(said["fedforget.lineage"])
        assert [(row["stage"], row["shard"], row["rounds"]) for row in lineage] == [(0, 0, 3), (0, 1, 3)]
        assert lineage[0]["digest"] == space.state().served()[0].digest
        assert report.bytes == (room / "m.safetensors").stat().st_size


@pytest.mark.parametrize("combine", ["ensemble", "vote"])
def test_an_ensemble_is_every_shard_in_one_file(pristine: Path, room: Path, combine: str) -> None:
    with opened(copied(pristine, room / "w")) as space:
        space.serving.export(room / "m", combine)
        model = Params.from_bytes((room / "m").read_bytes())
        for shard, one in space.state().served().items():
            for name, array in one.arrays().items():
                assert np.array_equal(model[f"shard-{shard}/{name}"], array)


def test_what_cannot_be_exported_says_why(pristine: Path, room: Path) -> None:
    with make(room / "new") as space, pytest.raises(NotTrained):
        space.serving.export(room / "m")
    with opened(copied(pristine, room / "w")) as space:
        with pytest.raises(SettingError, match="average, ensemble, vote"):
            space.serving.export(room / "m", "sum")
        with pytest.raises(SettingError, match="average, ensemble, vote"):
            space.serving.predict(space.task.test.x, "sum")
        for name in ("", "a" * 129, "a\nb"):
            with pytest.raises(SettingError, match="printable"):
                space.serving.export(room / "m", to=name)
        assert space.serving.exports() == ExportsReport(())
    assert not (room / "m").exists()


# --- the register ---------------------------------------------------------------------------------------------


def test_whoever_has_a_forgotten_client_in_an_export_must_be_told(pristine: Path, room: Path) -> None:
    with opened(copied(pristine, room / "w")) as space:
        (first, *_), (second, *_) = shards_of(space).values()
        space.serving.export(room / "m", to="before")
        again = space.serving.export(room / "m", to="before")
        assert again.export == 1
        with_one = space.ledger.height()
        quarantined(space, (0, 0))
        space.serving.export(room / "m", to="while it waited")
        space.forget([first])
        with space.ledger.transaction("test") as db:
            db.execute(queue.tables.quarantined.delete())
        space.serving.export(room / "m", to="after")
        assert space.ledger.height() > with_one
        report = space.serving.exports()
        assert [(row.recipient, row.forgotten) for row in report.exports] == [
            ("before", (1,)),
            ("while it waited", ()),
            ("after", ()),
        ]
        assert [row.recipient for row in report.tell] == ["before"]
        space.forget([second])
        report = space.serving.exports()
        assert [row.forgotten for row in report.exports] == [(1, 2), (2,), (2,)]
        report = space.serving.exports(told=[1, 3])
        assert [row.recipient for row in report.tell] == ["while it waited"]
        with pytest.raises(SettingError, match="the number of an export"):
            space.serving.exports(told=[4])
        assert space.verify().passed


def test_samples_and_stages_count_too_and_whoever_never_took_part_does_not(room: Path) -> None:
    path = trained(room / "w", participants=1, draw="stage")
    with opened(path) as space:
        plan = space.state().plan
        first = {c: plan.first_round(0, plan.shard_of(c), [c]) for c in plan.clients}
        never = next(c for c, round in first.items() if round is None)
        drawn = next(c for c, round in first.items() if round is not None)
        space.serving.export(room / "m", to="them")
        space.forget([never])
        assert space.serving.exports().tell == ()
        space.forget(scope=Scope.of_samples({drawn: [0]}))
        assert [row.forgotten for row in space.serving.exports().tell] == [(2,)]


def test_after_a_restored_backup_everybody_is_told(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    with opened(path) as space:
        space.serving.export(room / "m", to="them")
    backup = (path / "ledger.db").read_bytes()
    with opened(path) as space:
        space.forget([client(2)])
    (path / "ledger.db").write_bytes(backup)
    with opened(path) as space:
        space.train()
        (row,) = space.serving.exports().tell
        assert row.restored
        assert space.serving.exports(told=[1]).tell == ()


def test_the_register_says_when(pristine: Path, room: Path) -> None:
    path = copied(pristine, room / "w")
    clock = lambda: datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)  # noqa: E731
    with Workspace.open(path, clock=clock) as space:
        made = Export(0, "2026-03-04T05:06:07Z", "a", "average", "d" * 64, 0, 0, ((0, 0, 3),))
        assert exports.register(space.ledger, made).id == 1
        assert [one.time for one in exports.exported(space.ledger)] == ["2026-03-04T05:06:07Z"]
