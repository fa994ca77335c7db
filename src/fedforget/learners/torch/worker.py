"""A worker process: holds learner and data, fits what it is sent, one thread, until its pipe closes."""

import ctypes
import signal
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from ...examples import Examples
from ...federation import Learner, Solver
from ...params import Layout, Params
from .shared import Rows, Shelf
from .stacking import Job, Stacking

# Set before a worker starts, for libraries that read it only then.
ENVIRONMENT = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM")}


@dataclass(frozen=True)
class Order:
    """One client's task as it goes over the pipe; its parameters wait in the row."""

    row: int
    client: str
    epochs: int
    seed: int
    solver: Solver


@dataclass(frozen=True)
class Request:
    ticket: int
    layout: Layout
    orders: tuple[Order, ...]


@dataclass(frozen=True)
class Reply:
    """What came of a request: the seconds it took, or how it failed. `ticket` −1 says that the worker is ready."""

    ticket: int
    seconds: float = 0.0
    failure: str = ""


def main(pipe: Connection, learner: Learner, shelf: Shelf, rows: Rows) -> None:
    """Fit until there is nobody left to fit for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it ends its workers
    keep_memory()
    examples, table = shelf.open(), rows.open()
    try:
        pipe.send(Reply(-1))
        while True:
            request: Request = pipe.recv()
            pipe.send(_answer(learner, examples, table, request))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _answer(learner: Learner, examples: Mapping[str, Examples], table: NDArray[np.float32], request: Request) -> Reply:
    began = time.perf_counter()
    try:
        jobs = [
            Job(Params(request.layout, table[o.row]), examples[o.client], o.epochs, o.seed, o.solver)
            for o in request.orders
        ]
        for order, result in zip(request.orders, fit_all(learner, jobs), strict=True):
            if result.layout != request.layout:
                raise ValueError(f"the learner changed the model's tensors: {result.layout} from {request.layout}")
            table[order.row] = result.vector
    except Exception:
        return Reply(request.ticket, failure=traceback.format_exc())
    return Reply(request.ticket, time.perf_counter() - began)


def fit_all(learner: Learner, jobs: Sequence[Job]) -> list[Params]:
    if isinstance(learner, Stacking):
        return learner.fit_stack(jobs)
    return [learner.fit(j.params, j.examples, epochs=j.epochs, seed=j.seed, solver=j.solver) for j in jobs]


def keep_memory() -> None:
    """Tell glibc to keep freed memory: a step frees and takes the same megabytes, each time zeroed by the kernel."""
    trim_threshold, mmap_max = -1, -4
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library: it has its own ways
        return
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 1 << 30)
