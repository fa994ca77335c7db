"""Measure: what is asked of the models before, while and after somebody is forgotten."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.combination import COMBINES, pool
from ..evaluation.membership_f1 import Attacker, f1_attack, fit_attacker
from ..evaluation.quality import quality
from ..examples import Examples
from ..federation import Learner
from ..params import Params, mean
from ..seeds import derive, generator
from .case import Probe
from .world import World

Probabilities = NDArray[Any]
Models = Mapping[int, Params]  # shard → its model


@dataclass(frozen=True, eq=False)
class Questions:
    """Whom the models are asked about. Of the test examples every other one is for fitting the attacker."""

    test: Examples
    forgotten: Examples
    members: Examples
    curve: Examples

    @staticmethod
    def of(world: World, probe: Probe, leavers: Sequence[str]) -> "Questions":
        everybody = world.plan.clients
        stay = [c for c in everybody if c not in leavers]
        seed = derive(world.federation.seed, "probe")
        test = some(world.task.test, probe.test, seed, "test")
        most = len(test) // 2  # as many others are held out
        attack = min(probe.attack or most, most)
        gone = some(Examples.join([world.examples[c] for c in leavers]), attack, seed, "forgotten")
        members = some(Examples.join([world.examples[c] for c in stay]), attack, seed, "members")
        return Questions(test, gone, members, test.take(slice(probe.curve or None)))


def some(examples: Examples, count: int, seed: int, what: str) -> Examples:
    """`count` of them by a keyed draw; all, in the same kind of order, for 0 or where there are fewer."""
    order = generator(seed, what).permutation(len(examples))
    return examples.take(order[:count] if count else order)


@dataclass(frozen=True, eq=False)
class Asker:
    """Answers of each way to serve the shard models. With one shard there is one way, "model".

    What a model answered is remembered by its digest: forgetting changes one shard, the others answer as before.
    """

    learner: Learner
    questions: Questions
    attackers: dict[str, Attacker] = field(default_factory=dict)
    _known: dict[tuple[str, str], Probabilities] = field(default_factory=dict)

    def ways(self, models: Models) -> tuple[str, ...]:
        return COMBINES if len(models) > 1 else ("model",)

    def learn(self, original: Models) -> None:
        """Fit an attacker for each way to the model before anybody was forgotten."""
        members, test = self._answers(original, "members"), self._answers(original, "test")
        for way in self.ways(original):
            self.attackers[way] = fit_attacker(members[way], test[way][::2])

    def scores(self, models: Models) -> dict[str, dict[str, float]]:
        """Quality on test, forgotten and retained data, and the paper's F1, for each way to serve."""
        asked = self.questions
        test, gone, members = (self._answers(models, what) for what in ("test", "forgotten", "members"))
        found: dict[str, dict[str, float]] = {}
        for way in self.ways(models):
            on_test = quality(test[way], asked.test.y)
            on_gone, on_rest = quality(gone[way], asked.forgotten.y), quality(members[way], asked.members.y)
            found[way] = {
                "test_accuracy": on_test.accuracy,
                "test_loss": on_test.loss,
                "forgotten_accuracy": on_gone.accuracy,
                "forgotten_loss": on_gone.loss,
                "retained_accuracy": on_rest.accuracy,
                "retained_loss": on_rest.loss,
            }
            if way in self.attackers:
                f1 = f1_attack(self.attackers[way], gone[way], test[way][1::2])
                found[way] |= {"f1": f1.f1, "f1_recall": f1.recall, "f1_precision": f1.precision, "f1_blind": f1.blind}
        return found

    def alone(self, model: Params) -> dict[str, float]:
        """One shard's model by itself, on test and forgotten data."""
        asked = self.questions
        on_test = quality(self._answer(model, "test"), asked.test.y)
        on_gone = quality(self._answer(model, "forgotten"), asked.forgotten.y)
        return {
            "test_accuracy": on_test.accuracy,
            "test_loss": on_test.loss,
            "forgotten_accuracy": on_gone.accuracy,
            "forgotten_loss": on_gone.loss,
        }

    def mark(self, models: Models) -> dict[str, float]:
        """Accuracy and F1 of what is served, on fewer examples: for after each round."""
        asked = self.questions
        test, gone = self._served(models, "curve"), self._served(models, "forgotten")
        on_test, on_gone = quality(test, asked.curve.y), quality(gone, asked.forgotten.y)
        attacker = self.attackers["ensemble" if len(models) > 1 else "model"]
        held_out = test[1::2]
        return {
            "test_accuracy": on_test.accuracy,
            "test_loss": on_test.loss,
            "forgotten_accuracy": on_gone.accuracy,
            "f1": f1_attack(attacker, gone[: len(held_out)], held_out).f1,
        }

    def _served(self, models: Models, what: str) -> Probabilities:
        each = [self._answer(models[s], what) for s in sorted(models)]
        return pool("ensemble", each) if len(each) > 1 else each[0]

    def _answers(self, models: Models, what: str) -> dict[str, Probabilities]:
        row = [models[s] for s in sorted(models)]
        each = [self._answer(model, what) for model in row]
        if len(row) == 1:
            return {"model": each[0]}
        pooled: dict[str, Probabilities] = {way: pool(way, each) for way in COMBINES if way != "average"}
        return {"average": self._answer(mean(row), what), **pooled}

    def _answer(self, model: Params, what: str) -> Probabilities:
        key = (model.digest, what)
        if key not in self._known:
            self._known[key] = np.asarray(self.learner.predict(model, getattr(self.questions, what).x))
        return self._known[key]
