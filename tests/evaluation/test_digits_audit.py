"""LiRA at 64 reference federations on the digits, by hand: what it finds before and after each way of forgetting.

Slow. Worlds and scores are made here from the core alone, apart from `evaluation.worlds` and `workspace.audit`, so that
what `experiments/audit.py` stores is found by two programs; and there is a control that the command has not.
"""

import sys
from dataclasses import dataclass

import numpy as np
import pytest

from fedforget.datasets.digits import load_digits
from fedforget.datasets.partition import partition
from fedforget.engines.local import LocalCohort
from fedforget.evaluation.audit import Evidence, audit
from fedforget.evaluation.combination import combine
from fedforget.evaluation.curves import assess_attack
from fedforget.evaluation.lira import log_odds
from fedforget.evaluation.quality import confidence
from fedforget.evaluation.references import (
    ReseededCohort,
    ReseededLearner,
    example_members,
    references,
)
from fedforget.evaluation.rmia import Population, rmia
from fedforget.examples import Examples
from fedforget.federation import Leg, Settings, initial_model, train, train_all
from fedforget.forgetting import METHODS, Calibration, Recorded, forget, prepare_work
from fedforget.learners.mlp import MLP
from fedforget.plan import Change, Plan
from fedforget.seeds import derive

pytestmark = pytest.mark.slow

SHARDS, CLIENTS, REFERENCES, TRAININGS, A_SHARD = 4, 20, 64, 6, 2
SETTINGS, LEARNER = Settings(epochs=10), MLP(64, 10, 64)
FORGETTING = ("exact", "clean", "calibrated")
# Not a way of forgetting but a control: calibrated, by the lengths a run without the leaver would have stored. It is
# as short as calibrated and holds nothing of the leaver; where they differ, that is the leaver's doing.
CONTROL = "calibrated by never-joined lengths"
WORLDS = ("with", *FORGETTING, CONTROL)


@dataclass(frozen=True)
class Setup:
    """Twenty clients, two of each shard asking to be forgotten, each alone."""

    plan: Plan
    data: dict[str, Examples]
    test: Examples
    leavers: tuple[str, ...]

    @property
    def examples(self):
        return Examples.join([self.data[c] for c in self.leavers])

    @property
    def owners(self):
        return np.repeat(np.arange(len(self.leavers)), [len(self.data[c]) for c in self.leavers])

    def mate(self, at):
        """The other leaver of the same shard: while this one is forgotten, a client that stays."""
        shard = self.plan.shard_of(self.leavers[at])
        return next(i for i, c in enumerate(self.leavers) if i != at and self.plan.shard_of(c) == shard)


def set_up(how):
    digits = load_digits()
    data = {c: digits.train.take(rows) for c, rows in partition(digits, how, CLIENTS, 0).items()}
    plan = Plan.of(sorted(data), shards=SHARDS, rounds=10)
    leavers = tuple(c for s in range(SHARDS) for c in plan.present(0, s)[:A_SHARD])
    return Setup(plan, data, digits.test, leavers)


@dataclass(frozen=True)
class Seen:
    """True-label log-odds of the leavers' examples by the owner's shard model and by the served ensemble."""

    log_odds: np.ndarray  # (2, n)
    confidence: np.ndarray  # (2, n)


def look(setup, models, examples, at=None):
    """`at`: only one shard's view is asked for; else each example is shown to its owner's shard."""
    served = combine("ensemble", LEARNER, [models[s] for s in sorted(models)], examples.x)
    owners = setup.owners if at is None else np.full(len(examples), at)
    shards = np.array([setup.plan.shard_of(c) for c in setup.leavers])[owners]
    own = np.empty_like(served)
    for shard, model in models.items():
        own[shards == shard] = LEARNER.predict(model, examples.x[shards == shard])
    views = (own, served)
    return Seen(
        np.array([log_odds(p, examples.y) for p in views]), np.array([confidence(p, examples.y) for p in views])
    )


def one_training(setup, salt):
    """The worlds of one training: models by world and leaver."""
    cohort, learner = ReseededCohort(LocalCohort(LEARNER, setup.data), salt), ReseededLearner(LEARNER, salt)
    past = Recorded.of(train_all(cohort, setup.plan, learner, SETTINGS))
    base = {s: past.final((0, s)) for s in range(SHARDS)}
    worlds = {"with": [base] * len(setup.leavers), "never": [], CONTROL: [], **{name: [] for name in FORGETTING}}
    for leaver in setup.leavers:
        shard, without = setup.plan.shard_of(leaver), setup.plan.without([leaver])
        legs = {shard: Leg(0, initial_model(learner, without, 0), without.stages[0].rounds)}
        rounds = list(train(cohort, without, legs, SETTINGS))
        worlds["never"].append({**base, shard: rounds[-1].model})
        for name, method, stored in [(name, name, past) for name in FORGETTING] + [
            (CONTROL, "calibrated", past.after(rounds))
        ]:
            work = prepare_work(METHODS[method], setup.plan, stored, Change(frozenset([leaver])))
            *_, last = forget(METHODS[method], cohort, learner, work, SETTINGS, Calibration(ratio=2))
            worlds[name].append({**base, shard: last.model})
    return worlds


@dataclass(frozen=True)
class Found:
    setup: Setup
    evidence: dict[str, Evidence]  # by view
    forgotten: dict[str, np.ndarray]  # world → (views, trainings, n), the owner being who left
    retained: dict[str, np.ndarray]  # the owner's shard mate being who left
    identical: bool
    on_test: dict[str, float]  # mean log-odds of test pictures by the leavers' shards
    rmia: dict[str, np.ndarray]


VIEWS = ("shard", "ensemble")


@pytest.fixture(scope="module", params=["iid", "by-class"])
def found(request):
    setup = set_up(request.param)
    owners, examples = setup.owners, setup.examples
    cohort = LocalCohort(LEARNER, setup.data)
    series = list(references(cohort, LEARNER, setup.plan, SETTINGS, setup.leavers, count=REFERENCES, seed=1))
    seen = [look(setup, r.models, examples) for r in series]
    members = example_members(np.array([r.members for r in series]), owners)
    evidence = {v: Evidence(np.array([s.log_odds[i] for s in seen]), members, owners) for i, v in enumerate(VIEWS)}
    trainings = [one_training(setup, derive(99, "audit", t)) for t in range(TRAININGS)]
    forgotten = {w: np.empty((2, TRAININGS, len(owners))) for w in (*WORLDS, "never")}
    retained = {w: np.empty((2, TRAININGS, len(owners))) for w in WORLDS}
    for t, worlds in enumerate(trainings):
        for at in range(len(setup.leavers)):
            mine, hers = owners == at, owners == setup.mate(at)
            for w in forgotten:
                forgotten[w][:, t, mine] = look(setup, worlds[w][at], examples.take(mine.nonzero()[0]), at).log_odds
            for w in retained:
                retained[w][:, t, hers] = look(setup, worlds[w][at], examples.take(hers.nonzero()[0]), at).log_odds
    shard = [setup.plan.shard_of(c) for c in setup.leavers]
    identical = all(a[s] == b[s] for w in trainings for a, b, s in zip(w["exact"], w["never"], shard, strict=True))
    on_test = {
        w: float(
            np.mean([look(setup, m, setup.test, at).log_odds[0].mean() for x in trainings for at, m in enumerate(x[w])])
        )
        for w in forgotten
    }
    return Found(
        setup, evidence, forgotten, retained, identical, on_test, relative(setup, series, seen, members, trainings)
    )


def relative(setup, series, seen, members, trainings):
    """RMIA's scores on the leavers' shards of the first training, test pictures for a population."""
    owners, examples = setup.owners, setup.examples
    refs = np.array([s.confidence[0] for s in seen])
    scores = {}
    for world in (*WORLDS, "never"):
        scores[world] = np.empty(len(owners))
        for at, models in enumerate(trainings[0][world]):
            mine = owners == at
            population = np.array([look(setup, r.models, setup.test, at).confidence[0] for r in series])
            z = Population(look(setup, models, setup.test, at).confidence[0], population)
            p = look(setup, models, examples.take(mine.nonzero()[0]), at).confidence[0]
            scores[world][mine] = rmia(p, refs[:, mine], members[:, mine], z)
    return scores


def attacks(found, view, mode="online"):
    at = VIEWS.index(view)
    worlds = {f"{w}, forgotten": found.forgotten[w][at] for w in WORLDS}
    worlds |= {f"{w}, retained": found.retained[w][at] for w in WORLDS if w != "with"}  # all are retained there
    return audit(worlds, found.forgotten["never"][at], found.evidence[view], mode=mode, resamples=300)


def residue(found, view):
    """Calibrated against its control: what the leaver left in the stored lengths, with all else equal."""
    at = VIEWS.index(view)
    calibrated, control = found.forgotten["calibrated"][at], found.forgotten[CONTROL][at]
    return audit({"calibrated against its control": calibrated}, control, found.evidence[view], resamples=300)


def show(title, table):
    sys.stdout.write(f"\n{title}\n| world, data | AUC | TPR at 1 % FPR | TPR at 0.1 % FPR |\n|---|---|---|---|\n")
    for name, attack in table.items():
        cells = [f"{attack.auc:.3f} [{attack.interval[0]:.3f}, {attack.interval[1]:.3f}]"]
        for fpr in (0.01, 0.001):
            rate = attack.rate(fpr)
            ends = "" if rate.interval is None else f" [{100 * rate.interval[0]:.1f}, {100 * rate.interval[1]:.1f}]"
            cells.append("–" if rate.tpr is None else f"{100 * rate.tpr:.1f} %{ends}")
        sys.stdout.write(f"| {name} | {' | '.join(cells)} |\n")


@pytest.mark.parametrize("view", VIEWS)
def test_lira(found, view):
    table = attacks(found, view)
    sure = ", ".join(f"{world} {value:.2f}" for world, value in found.on_test.items())
    show(f"LiRA online, {view}; mean log-odds of test pictures by the leavers' shards: {sure}", table)
    show(f"LiRA offline, {view}", attacks(found, view, "offline"))
    show(f"LiRA online, {view}", residue(found, view))
    there = table["with, forgotten"]
    assert there.rate(0.01).times_blind >= 5, "the attack is too weak to show anything"
    exact = table["exact, forgotten"]
    assert found.identical, "exact forgetting is not the run the leaver never joined"
    assert exact.auc == 0.5
    assert exact.interval == (0.5, 0.5)
    for method in ("clean", "calibrated"):
        assert table[f"{method}, forgotten"].apart < there.apart / 2
        assert table[f"{method}, forgotten"].rate(0.01).tpr < there.rate(0.01).tpr / 2
    for method in FORGETTING:
        assert table[f"{method}, retained"].auc > 0.5, "who stays is still in the model"


def test_rmia_says_the_same(found):
    members = np.repeat([True, False], len(found.setup.owners))
    table = {
        w: assess_attack(np.concatenate([found.rmia[w], found.rmia["never"]]), members, resamples=300) for w in WORLDS
    }
    show("RMIA online, shard, one training", table)
    assert table["with"].auc > 0.55
    assert table["exact"].auc == 0.5
    assert abs(table["clean"].auc - 0.5) < table["with"].auc - 0.5
