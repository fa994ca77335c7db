"""Cells: what the core says, made once, shared where they may be, the same however often the run was interrupted."""

import multiprocessing
import os
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from digits_table import place, results

from fedforget.experiments import Place, reproduce
from fedforget.experiments.case import Case, Federation, Request
from fedforget.experiments.make import price
from fedforget.experiments.recipe import read
from fedforget.experiments.run import cpu_seconds, run_training
from fedforget.experiments.track import Track, TrackPast
from fedforget.experiments.world import opened
from fedforget.federation import FitResult, FitTask, train_all
from fedforget.federation import Place as RoundPlace
from fedforget.forgetting import Calibration, Recorded, forget, method_named, prepare_work
from fedforget.plan import Change


class Killed(BaseException):
    """Like a kill: nobody catches it."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Place:
    here = place(tmp_path_factory.mktemp("undisturbed"))
    assert reproduce("table1", "tiny", here).made == 8
    return here


def cases(here: Place) -> tuple[Case, ...]:
    return read("table1", "tiny", here.recipes).cases()


def test_a_cell_says_what_the_core_says(undisturbed: Place) -> None:
    """Trained and forgotten without any of the runner, from rounds in memory."""
    for case in cases(undisturbed):
        with opened([case.federation], None, None) as worlds:
            world = worlds[case.federation]
            cell = undisturbed.cells(read("table1", "tiny", undisturbed.recipes)).get(case.name, case.digest)
            assert cell is not None
            rounds = list(train_all(world.cohort, world.plan, world.learner, world.settings))
            past = Recorded.of(rounds)
            models = {s: past.final((0, s)) for s in range(world.plan.shards)}
            if case.request is not None:
                change = Change(frozenset(case.request.leavers(case.federation, world.names)))
                method = method_named(case.request.method)
                work = prepare_work(method, world.plan, past, change)
                rounds = list(
                    forget(method, world.cohort, world.learner, work, world.settings, Calibration(case.request.ratio))
                )
                models |= {r.place.shard: r.model for r in rounds}
                assert cell.result["leavers"] == sorted(change.leave)
            assert cell.result["digests"] == {str(s): m.digest for s, m in models.items()}
            assert cell.result["client_epochs"] == sum(r.cost.client_epochs for r in rounds)
            assert cell.result["rounds"] == len(rounds)


def test_exact_is_the_run_the_leaver_never_joined(undisturbed: Place) -> None:
    by_name = {c.name: c for c in cases(undisturbed)}
    cells = undisturbed.cells(read("table1", "tiny", undisturbed.recipes))
    exact, never, paper = (
        cells.get(c.name, c.digest) for c in (by_name[f"digits-iid/seed0/sharded/{m}"] for m in ("exact", "FR", "SE"))
    )
    assert exact
    assert never
    assert paper
    assert exact.result["digests"] == never.result["digests"] != paper.result["digests"]
    assert exact.result["after"] == never.result["after"]
    assert 4 * exact.result["client_epochs"] <= 2 * never.result["client_epochs"]


def test_resuming_a_finished_run_makes_nothing_and_not_resuming_makes_all(undisturbed: Place, tmp_path: Path) -> None:
    shutil.copytree(undisturbed.out.parent, tmp_path, dirs_exist_ok=True)
    here = place(tmp_path)
    before = results(here)
    assert reproduce("table1", "tiny", here, resume=True).made == 0
    assert reproduce("fig3", "tiny", here, resume=True).made == 0
    assert reproduce("table1", "tiny", here).made == 8
    assert results(here) == before


def test_changed_settings_make_the_cell_anew(undisturbed: Place, tmp_path: Path) -> None:
    shutil.copytree(undisturbed.out.parent, tmp_path, dirs_exist_ok=True)
    here = place(tmp_path)
    recipe = tmp_path / "recipes" / "table1.toml"
    recipe.write_text(recipe.read_text().replace("epochs = 2", "epochs = 1"))
    assert reproduce("table1", "tiny", here, resume=True).made == 8


@pytest.mark.parametrize("step", [1, 6, 17])
def test_interrupted_at_any_step_a_run_ends_in_the_same_cells(undisturbed: Place, tmp_path: Path, step: int) -> None:
    """At the first tick, and at every later one of the runs that go on: progress is told after each file."""
    here, deaths = place(tmp_path), 0
    ticks = iter(range(step))

    def die(what: str, done: int, total: int) -> None:
        if next(ticks, None) is None:
            raise Killed

    while True:
        ticks = iter(range(step * 2**deaths))
        try:
            reproduce("table1", "tiny", here, resume=True, progress=die)
            break
        except Killed:
            deaths += 1
    assert deaths
    assert results(here) == results(undisturbed)


def work(root: Path) -> None:
    reproduce("table1", "tiny", place(root), resume=True)


@pytest.mark.slow
def test_killed_at_random_moments_a_run_ends_in_the_same_cells(undisturbed: Place, tmp_path: Path) -> None:
    """Real processes, SIGKILL."""
    spawn, dice = multiprocessing.get_context("forkserver"), random.Random(5)
    spawn.set_forkserver_preload(["fedforget.experiments", "sklearn.ensemble", "matplotlib"])
    began = time.perf_counter()
    victim = spawn.Process(target=work, args=(tmp_path / "whole",))
    victim.start()
    victim.join()
    whole = time.perf_counter() - began
    assert victim.exitcode == 0
    for turn in range(3):
        root, deaths = tmp_path / str(turn), 0
        while True:
            victim = spawn.Process(target=work, args=(root,))
            victim.start()
            victim.join(dice.uniform(0.1, 0.8) * whole if deaths < 3 else None)
            if victim.exitcode == 0:
                break
            assert victim.exitcode is None, "it failed by itself"
            victim.kill()
            victim.join()
            deaths += 1
        assert results(place(root)) == results(undisturbed)


def test_progress_only_grows_and_ends_at_its_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    reproduce("table1", "tiny", place(tmp_path), progress=lambda what, done, total: seen.append((done, total)))
    done = [d for d, _ in seen]
    assert done == sorted(done)
    assert seen[-1][0] == seen[-1][1]
    assert len(set(done)) > 8


def test_scratch_is_gone_when_the_cells_are_done(undisturbed: Place) -> None:
    assert not list((undisturbed.out / "room").rglob("*.npz"))


def test_a_track_answers_as_rounds_in_memory_do(tmp_path: Path) -> None:
    federation = Federation("digits", clients=12, participants=8, shards=4, rounds=3, epochs=1, draw="round")
    with opened([federation], None, None) as worlds:
        world = worlds[federation]
        track, _ = run_training(world, Case(federation), tmp_path, lambda epochs: None)
        rounds = list(train_all(world.cohort, world.plan, world.learner, world.settings))
        kept, memory = TrackPast.of(track), Recorded.of(rounds)
        for r in rounds:
            assert kept.roster(r.place) == memory.roster(r.place)
            assert kept.checkpoint(r.place) == memory.checkpoint(r.place)
            assert (kept.measures(r.place).gram == memory.measures(r.place).gram).all()
            assert (kept.kind(r.place), kept.source(r.place), kept.lost(r.place)) == ("plain", None, ())
            if world.plan.newcomers(*r.place):
                assert kept.uploads(r.place) == memory.uploads(r.place)
        assert kept.final((0, 1)) == memory.final((0, 1))
        assert kept.rounds((0, 2)) == 3
        with pytest.raises(Exception, match="never recorded"):
            kept.roster(RoundPlace(0, 0, 3))


def test_half_a_file_is_no_step(tmp_path: Path) -> None:
    federation = Federation("digits", clients=8, participants=4, shards=2, rounds=2, epochs=1)
    with opened([federation], None, None) as worlds:
        track, whole = run_training(worlds[federation], Case(federation), tmp_path, lambda epochs: None)
        track.path(1).rename(track.path(1).with_suffix(".writing"))
        assert len(Track(tmp_path, track.layout).steps()) == 1
        again, resumed = run_training(worlds[federation], Case(federation), tmp_path, lambda epochs: None)
        assert resumed.result == whole.result
        assert len(again.steps()) == 2


def test_the_time_left_is_guessed_from_client_epochs() -> None:
    federation = Federation("digits", participants=20, rounds=30, epochs=10)
    whole = price(Case(federation))
    assert whole == 6000

    def share(method: str, count: int = 1, pattern: str = "adapt", sharded: bool = True) -> float:
        request = Request(method, count, pattern)  # type: ignore[arg-type]
        return price(Case(replace(federation, sharded=sharded), request=request)) / whole

    assert share("FR", sharded=False) == share("RR", sharded=False) == 1
    assert share("FE", sharded=False) == 0.5
    assert share("SE") == share("clean") == 0.125
    assert share("exact") == share("exact", 3) == 0.25
    assert share("exact", 3, "even") == 0.75


@dataclass(frozen=True)
class Pool:
    pids: tuple[int, ...] | None

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        yield from ()


def test_processor_time_is_of_the_workers_and_unknown_where_there_are_none_or_they_are_gone() -> None:
    me = os.getpid()
    before = sum(os.times()[:2])
    spent = cpu_seconds(Pool((me,)))
    assert spent is not None
    assert spent[me] == pytest.approx(before, abs=0.5)
    assert cpu_seconds(Pool((me, 1 << 30))) is None
    assert cpu_seconds(Pool(None)) is None
