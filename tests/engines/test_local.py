"""The local engine: each client with its own examples, in this process."""

from itertools import count

from threadpoolctl import threadpool_info

from fedforget.engines.local import LocalCohort
from fedforget.examples import Examples
from fedforget.federation import FitTask, Place
from fedforget.learners.linear import Softmax
from fedforget.params import Params
from strategies import SOFTMAX, Federation, Here, examples_of

EXAMPLES = {"a": examples_of("a", 3), "b": examples_of("b", 5), "empty": examples_of("empty", 0)}


def tasks(*clients: str) -> list[FitTask]:
    return [FitTask(Place(0, 0, 1), client, SOFTMAX.init(0), 2, 7) for client in clients]


def test_each_task_is_run_with_the_clients_own_examples() -> None:
    for reply in LocalCohort(SOFTMAX, EXAMPLES).fit(tasks("b", "a")):
        mine = EXAMPLES[reply.client]
        assert reply.params == SOFTMAX.fit(SOFTMAX.init(0), mine, epochs=2, seed=7)
        assert (reply.examples, reply.place) == (len(mine), Place(0, 0, 1))


def test_clients_that_are_not_here_or_have_nothing_are_lost() -> None:
    replies = LocalCohort(SOFTMAX, EXAMPLES).fit(tasks("a", "elsewhere", "empty", "b"))
    assert [reply.client for reply in replies] == ["a", "b"]


def test_the_clock_is_read_before_and_after_each_task() -> None:
    ticks = count(step=2)
    replies = LocalCohort(SOFTMAX, EXAMPLES, clock=lambda: float(next(ticks))).fit(tasks("a", "b"))
    assert [reply.seconds for reply in replies] == [2.0, 2.0]
    assert next(ticks) == 8


class Watching(Softmax):
    """Softmax regression that notes how many threads it could have used."""

    def fit(self, params: Params, examples: Examples, **how: object) -> Params:
        SEEN.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return super().fit(params, examples, **how)


SEEN: list[int] = []


def test_while_a_client_trains_blas_has_one_thread_and_afterwards_as_many_as_before() -> None:
    before = [pool["num_threads"] for pool in threadpool_info()]
    SEEN.clear()
    list(LocalCohort(Watching(3, 2), EXAMPLES).fit(tasks("a")))
    assert set(SEEN) == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_it_trains_what_the_plainest_cohort_trains() -> None:
    federation = Federation.of(5, shards=2, rounds=2)
    assert federation.trained(LocalCohort(SOFTMAX, federation.examples)).trace == federation.trace
    assert federation.trained(Here(SOFTMAX, federation.examples)).trace == federation.trace
