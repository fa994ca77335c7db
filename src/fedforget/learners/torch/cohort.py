"""The fast cohort: a queue of clients over worker processes, one intra-op thread each, data resident.

A task's bits are a function of the task alone, so neither the number of workers nor the order of replies shows in
any digest; a worker that dies is started again and its clients tried again, each alone, and that does not show either.
"""

import logging
import math
import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from ...errors import SettingError
from ...examples import Examples
from ...federation import FitResult, FitTask, Learner
from ...params import Params
from .numerics import Device, resolve
from .shared import Rows, Shelf, close_all
from .stacking import Job, Stacking
from .worker import ENVIRONMENT, Order, Reply, Request, fit_all, main

log = logging.getLogger("fedforget.cohort")


@dataclass(frozen=True)
class _Try:
    task: FitTask
    attempt: int = 1


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    rows: Rows
    table: Any
    ready: bool = False
    ended: bool = False
    ticket: int | None = None
    tries: list[_Try] = field(default_factory=list)


class PoolCohort:
    """`Cohort` over `workers` processes; use it in a `with`, or call `close`.

    `retries` is how often a client is tried again whose worker died, before it is given up as lost. The learner and
    what it holds must pickle. Scripts need the usual `if __name__ == "__main__":`, for workers import them.
    """

    def __init__(
        self,
        learner: Learner,
        examples: Mapping[str, Examples],
        *,
        workers: int | None = None,
        retries: int = 2,
    ) -> None:
        count = default_workers() if workers is None else workers
        if count < 1:
            raise SettingError("workers", workers, "1 or more")
        if retries < 0:
            raise SettingError("retries", retries, "0 or more")
        self.learner, self.retries = learner, retries
        self.sizes = {client: len(mine) for client, mine in examples.items() if len(mine)}
        self._width = learner.stack if isinstance(learner, Stacking) else 1
        self._size = learner.init(0).layout.size
        self._shelf = Shelf.of({client: examples[client] for client in self.sizes})
        self._tickets = 0
        self._fit = 0
        self._stillborn = 0
        self._workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, _end, self._workers, self._shelf)
        for _ in range(count):
            self._workers.append(self._start())

    @property
    def workers(self) -> int:
        return len(self._workers)

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes, for those who watch them."""
        return tuple(w.process.pid or 0 for w in self._workers)

    @property
    def deterministic(self) -> bool:
        return bool(getattr(self.learner, "deterministic", True))

    @property
    def numerics(self) -> str:
        return str(getattr(self.learner, "numerics", "numpy"))

    def __enter__(self) -> "PoolCohort":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, whatever they are at; nothing of them stays."""
        self._finalizer()

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        """Results as they come. A client without examples here, or given up on, is simply absent."""
        if not self._finalizer.alive:
            raise SettingError("cohort", "closed", "open; make a new one")
        self._fit += 1
        mine = self._fit
        todo = [task for task in tasks if task.client in self.sizes]
        todo.sort(key=lambda task: -task.epochs * self.sizes[task.client])  # long ones first, for an even end
        queue = deque(_Try(task) for task in todo)
        open_tickets: set[int] = set()
        while queue or open_tickets:
            for worker in self._workers:
                if queue and worker.ticket is None:
                    open_tickets.add(self._give(worker, queue))
            for worker, reply in self._hear():
                ticket, tries = worker.ticket, worker.tries
                worker.ticket, worker.tries = None, []
                if ticket in open_tickets:
                    open_tickets.discard(ticket)
                    yield from self._results(worker, tries, reply)
            for tries in self._bury(open_tickets):
                queue.extendleft(tries)
            if self._fit != mine:
                raise SettingError("cohort", "asked twice at once", "asked once at a time; this round was abandoned")

    # --- one request ------------------------------------------------------------------------------------------

    def _give(self, worker: _Worker, queue: "deque[_Try]") -> int:
        """Hand the worker its next clients: an even share of what is left, and no stack for one who failed before."""
        share = 1 if queue[0].attempt > 1 else min(self._width, math.ceil(len(queue) / len(self._workers)))
        tries = [queue.popleft() for _ in range(share)]
        orders = []
        for row, (task, _) in enumerate((t.task, t.attempt) for t in tries):
            if task.params.layout.size != self._size or task.params.layout != tries[0].task.params.layout:
                raise SettingError("params", task.params.layout.names, "a model of this cohort's learner")
            worker.table[row] = task.params.vector
            orders.append(Order(row, task.client, task.epochs, task.seed, task.solver))
        self._tickets += 1
        worker.ticket, worker.tries = self._tickets, tries
        with suppress(OSError):  # it died while idle: `_bury` finds it, and its clients with it
            worker.pipe.send(Request(self._tickets, tries[0].task.params.layout, tuple(orders)))
        return self._tickets

    def _results(self, worker: _Worker, tries: Sequence[_Try], reply: Reply) -> Iterator[FitResult]:
        if reply.failure:
            where = ", ".join(f"{t.task.client} in {t.task.place}" for t in tries)
            raise RuntimeError(f"the learner failed at {where}:\n{reply.failure}")
        results = [
            FitResult(
                t.task.place,
                t.task.client,
                Params(t.task.params.layout, worker.table[row].copy()),
                self.sizes[t.task.client],
                reply.seconds / len(tries),
            )
            for row, t in enumerate(tries)
        ]
        yield from results

    def _hear(self) -> Iterator[tuple[_Worker, Reply]]:
        """Wait for replies or deaths; yield the replies."""
        wait([w.pipe for w in self._workers])
        for worker in self._workers:
            try:
                if not worker.pipe.poll():
                    continue
                reply: Reply = worker.pipe.recv()
            except (EOFError, OSError):  # after its last reply: the pipe's other end is gone, and so is the worker
                worker.ended = True
                continue
            if reply.ticket < 0:
                worker.ready, self._stillborn = True, 0
            elif reply.ticket == worker.ticket:
                yield worker, reply

    # --- workers ----------------------------------------------------------------------------------------------

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        rows = Rows.of(self._width, self._size)
        ours, theirs = context.Pipe()
        process = context.Process(
            target=main, args=(theirs, self.learner, self._shelf, rows), name="fedforget-worker", daemon=True
        )
        with _for_workers():
            process.start()
        theirs.close()
        return _Worker(process, ours, rows, rows.open())

    def _bury(self, mine: set[int]) -> Iterator[list[_Try]]:
        """Start dead workers again; yield their clients that are to be tried again."""
        for at, worker in enumerate(self._workers):
            if not worker.ended:
                continue
            self._check_birth(worker)
            code = _dismiss(worker)
            self._workers[at] = self._start()
            again = worker.tries if worker.ticket in mine else []
            mine.discard(worker.ticket or 0)
            for one in again:
                log.warning(
                    "a worker ended (code %s) in %s while fitting %s; it was started again, and the client %s",
                    code,
                    one.task.place,
                    one.task.client,
                    f"is tried again ({one.attempt} of {self.retries})"
                    if one.attempt <= self.retries
                    else f"is lost after {one.attempt} attempts",
                )
            yield [replace(one, attempt=one.attempt + 1) for one in again if one.attempt <= self.retries]

    def _check_birth(self, worker: _Worker) -> None:
        """Give up if workers do not even get ready: starting them again would go on for ever."""
        if worker.ready:
            return
        self._stillborn += 1
        if self._stillborn > 2 * len(self._workers):
            raise SettingError(
                "learner",
                type(self.learner).__name__,
                "something a fresh process can load: at the top level of a file, and the script that starts it under "
                'if __name__ == "__main__": (the worker\'s own error is on stderr)',
            )


def default_workers() -> int:
    """One for each processor this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _for_workers() -> Iterator[None]:
    """What a worker inherits at birth: one thread for every library, and deafness to Ctrl-C from its first moment."""
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main_thread else None
    try:
        yield
    finally:
        if main_thread:
            signal.signal(signal.SIGINT, handler)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _dismiss(worker: _Worker, patience: float = 2.0) -> int | None:
    """End a worker and everything it holds; its exit code."""
    worker.process.join(patience if worker.ended else 0)
    for end in (worker.process.terminate, worker.process.kill):
        if worker.process.is_alive():
            end()
            worker.process.join(patience)
    worker.process.join()
    code = worker.process.exitcode
    worker.process.close()
    worker.pipe.close()
    worker.rows.block.close()
    return code


def _end(workers: list[_Worker], shelf: Shelf) -> None:
    for worker in workers:
        if worker.process.is_alive():
            worker.process.terminate()
    for worker in workers:
        _dismiss(worker)
    workers.clear()
    close_all([shelf.block])


@dataclass(frozen=True)
class DeviceCohort:
    """All clients in this process, one after another (stacked where the learner can): for a GPU."""

    learner: Learner
    examples: Mapping[str, Examples]
    clock: Callable[[], float] = time.perf_counter

    @property
    def deterministic(self) -> bool:
        return bool(getattr(self.learner, "deterministic", True))

    @property
    def numerics(self) -> str:
        return str(getattr(self.learner, "numerics", "numpy"))

    def __enter__(self) -> "DeviceCohort":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to end."""

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        width = self.learner.stack if isinstance(self.learner, Stacking) else 1
        todo = [t for t in tasks if t.client in self.examples and len(self.examples[t.client])]
        for at in range(0, len(todo), width):
            group = todo[at : at + width]
            began = self.clock()
            jobs = [Job(t.params, self.examples[t.client], t.epochs, t.seed, t.solver) for t in group]
            results = fit_all(self.learner, jobs)
            share = (self.clock() - began) / len(group)
            for task, params in zip(group, results, strict=True):
                yield FitResult(task.place, task.client, params, len(self.examples[task.client]), share)


def open_cohort(
    learner: Learner,
    examples: Mapping[str, Examples],
    *,
    device: Device = "auto",
    workers: int | None = None,
    retries: int = 2,
) -> PoolCohort | DeviceCohort:
    """The cohort for this machine: worker processes on a CPU, one process on a GPU.

    The learner is moved to the device; `deterministic` and `numerics` of what comes back say what digests mean there.
    """
    where = resolve(device)
    moved: Any = replace(learner, device=where) if hasattr(learner, "device") else learner  # type: ignore[type-var]
    if where == "cpu":
        return PoolCohort(moved, examples, workers=workers, retries=retries)
    return DeviceCohort(moved, examples)
