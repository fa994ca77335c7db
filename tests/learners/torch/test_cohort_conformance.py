"""What every cohort owes the federation; and the pool, whatever befalls its workers."""

import gc
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from tiny import CONVOLUTION, LEARNERS, SIZES, Fragile, Stillborn, clients_for, digests, tasks_for

from fedforget.engines.local import LocalCohort
from fedforget.errors import SettingError
from fedforget.examples import Examples
from fedforget.federation import Cohort, Learner
from fedforget.learners.torch import DeviceCohort, PoolCohort, open_cohort

KINDS = ("local", "device", "pool")
STACKED = ("cnn", "nanogpt")


@pytest.fixture(scope="module", params=STACKED)
def learner(request: pytest.FixtureRequest) -> Learner:
    return LEARNERS[request.param]


@pytest.fixture(scope="module")
def pool(learner: Learner) -> Iterator[PoolCohort]:
    with PoolCohort(learner, clients_for(learner), workers=2) as pool:
        yield pool


@pytest.fixture(scope="module")
def truth(learner: Learner) -> dict[str, str]:
    return digests(LocalCohort(learner, clients_for(learner)), tasks_for(learner))


@pytest.fixture(params=KINDS)
def cohort(request: pytest.FixtureRequest, learner: Learner, pool: PoolCohort) -> Cohort:
    kinds = {"local": LocalCohort, "device": DeviceCohort}
    return pool if request.param == "pool" else kinds[request.param](learner, clients_for(learner))


def test_each_task_gets_its_result(cohort: Cohort, learner: Learner) -> None:
    tasks = tasks_for(learner)
    results = {r.client: r for r in cohort.fit(tasks)}
    assert set(results) == set(SIZES)
    for task in tasks:
        assert results[task.client].place == task.place
        assert results[task.client].examples == SIZES[task.client]
        assert results[task.client].seconds > 0
        assert results[task.client].params.layout == task.params.layout


def test_bits_are_a_function_of_the_task(cohort: Cohort, learner: Learner, truth: dict[str, str]) -> None:
    tasks = tasks_for(learner)
    assert digests(cohort, tasks) == truth
    assert digests(cohort, tasks[::-1]) == truth
    assert digests(cohort, tasks[2:4]) == {t.client: truth[t.client] for t in tasks[2:4]}


def test_a_client_without_examples_is_absent(cohort: Cohort, learner: Learner) -> None:
    tasks = tasks_for(learner, ["client-1", "stranger"])
    assert set(digests(cohort, tasks)) == {"client-1"}
    assert digests(cohort, []) == {}


def test_results_are_the_receivers_own(cohort: Cohort, learner: Learner) -> None:
    first = list(cohort.fit(tasks_for(learner)))
    before = [r.params.vector.tobytes() for r in first]
    list(cohort.fit(tasks_for(learner, epochs=1)))
    assert [r.params.vector.tobytes() for r in first] == before


@pytest.mark.parametrize(
    ("name", "workers"), [("cnn", 3), ("nanogpt", 3), ("cnn-bf16", 1), ("module-with-buffers", 1), ("mlp", 1)]
)
def test_the_number_of_workers_does_not_show(name: str, workers: int) -> None:
    learner = LEARNERS[name]
    clients, tasks = clients_for(learner), tasks_for(learner)
    with open_cohort(learner, clients, device="cpu", workers=workers) as pool:
        assert digests(pool, tasks) == digests(LocalCohort(learner, clients), tasks)
        assert isinstance(pool, PoolCohort)
        assert pool.workers == workers
        assert pool.deterministic
        assert ("torch" in pool.numerics) == (name != "mlp")


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_killed_worker_does_not_show_but_in_the_log(
    pool: PoolCohort, learner: Learner, truth: dict[str, str], when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """`before`: it lies dead when it gets its task. `meanwhile`: stopped, so surely at work when it is killed."""
    first = pool.pids[0]
    if when == "before":
        os.kill(first, signal.SIGKILL)
        time.sleep(0.2)
    else:
        os.kill(first, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, (first, signal.SIGKILL)).start()
    with caplog.at_level(logging.WARNING, "fedforget.cohort"):
        assert digests(pool, tasks_for(learner)) == truth
    assert first not in pool.pids
    assert "in stage 0, shard" in caplog.text
    assert "round 3" in caplog.text


def test_who_kills_every_worker_is_lost_and_takes_nobody_along(caplog: pytest.LogCaptureFixture) -> None:
    learner, clients = Fragile("dies"), clients_for(LEARNERS["softmax"])
    clients["client-2"] = Examples(clients["client-2"].x, np.full(SIZES["client-2"], 99))
    with PoolCohort(learner, clients, workers=2, retries=1) as pool:
        assert set(digests(pool, tasks_for(learner))) == set(SIZES) - {"client-2"}
    assert "client-2" in caplog.text
    assert "lost after 2 attempts" in caplog.text


def test_a_learners_own_mistake_is_raised_with_the_place() -> None:
    learner, clients = Fragile("raises"), clients_for(LEARNERS["softmax"])
    clients["client-2"] = Examples(clients["client-2"].x, np.full(SIZES["client-2"], 99))
    with PoolCohort(learner, clients, workers=1) as pool:
        with pytest.raises(RuntimeError, match=r"(?s)client-2 in stage 0, shard 0, round 3.*as told"):
            digests(pool, tasks_for(learner))
        assert set(digests(pool, tasks_for(learner, ["client-0"]))) == {"client-0"}  # and the pool goes on


def test_a_learner_no_worker_can_load_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    clients, tasks = clients_for(LEARNERS["softmax"]), tasks_for(LEARNERS["softmax"])
    with (
        PoolCohort(Stillborn(), clients, workers=1) as pool,  # type: ignore[arg-type]
        pytest.raises(SettingError, match="__main__"),
    ):
        digests(pool, tasks)
    assert "as told" in capfd.readouterr().err


def test_a_round_broken_off_leaves_the_next_one_whole(
    pool: PoolCohort, learner: Learner, truth: dict[str, str]
) -> None:
    next(iter(pool.fit(tasks_for(learner, epochs=1))))
    assert digests(pool, tasks_for(learner)) == truth


def test_two_rounds_at_once_are_refused(pool: PoolCohort, learner: Learner, truth: dict[str, str]) -> None:
    older = iter(pool.fit(tasks_for(learner)))
    next(older)
    assert digests(pool, tasks_for(learner)) == truth
    with pytest.raises(SettingError, match="twice"):
        list(older)


def test_a_closed_pool_says_so_and_leaves_nothing() -> None:
    fds = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    learner = LEARNERS["softmax"]
    pool = PoolCohort(learner, clients_for(learner), workers=2)
    pids = pool.pids
    digests(pool, tasks_for(learner))
    pool.close()
    pool.close()
    gc.collect()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    if fds:
        assert len(os.listdir("/proc/self/fd")) <= fds + 1  # multiprocessing's own tracker, once
    with pytest.raises(SettingError, match="closed"):
        digests(pool, tasks_for(learner))


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"retries": -1}])
def test_settings_no_pool_can_have_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        PoolCohort(CONVOLUTION, {}, **wrong)  # type: ignore[arg-type]


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingError, match="device"):
        open_cohort(CONVOLUTION, {}, device="tpu")  # type: ignore[arg-type]


def test_a_model_of_another_learner_is_refused(pool: PoolCohort, learner: Learner) -> None:
    other = LEARNERS["mlp"]
    with pytest.raises(SettingError, match="params"):
        digests(pool, tasks_for(other))


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups here")
def test_ctrl_c_ends_cleanly() -> None:
    script = textwrap.dedent(
        """
        import sys
        from fedforget.learners.torch import PoolCohort
        from tiny import LEARNERS, clients_for, tasks_for

        if __name__ == "__main__":
            learner = LEARNERS["cnn"]
            with PoolCohort(learner, clients_for(learner), workers=2) as pool:
                list(pool.fit(tasks_for(learner)))
                print(*pool.pids, flush=True)
                list(pool.fit(tasks_for(learner, epochs=5_000)))
        """
    )
    here = os.path.dirname(__file__)
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert err.count("Traceback") == 1  # the script's own
    assert err.rstrip().endswith("KeyboardInterrupt")
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
