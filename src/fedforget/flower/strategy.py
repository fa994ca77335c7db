"""Unlearning: a Flower app of your own, with its own ClientApp and any stock strategy, that can forget.

A run trains what is left to train; a run whose configuration names somebody under `forget` makes the models forget
them first. What such a federation keeps is a workspace like any other, and the verbs are the workspace's.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from numpy.typing import NDArray

from .. import present
from ..datasets import Dataset
from ..engines.flower import GridCohort
from ..engines.flower_strategy import MakeStrategy, StrategyMerge, StrategyTalk, to_arrays, to_params
from ..errors import Damaged, FedForgetError, NotTrained, SettingError
from ..examples import Examples
from ..federation import Place, Upload
from ..manifest import Keeping
from ..params import Params, mean
from ..storage.disk import Disk
from ..workspace import FederationSettings, Task, Workspace
from ..workspace.state import unfinished
from .verbs import names, nodes_of, progress, speak, tell, workspace_path

log = logging.getLogger("fedforget")
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass(frozen=True)
class Given:
    """A model whose training is the clients' own affair: here it only begins."""

    initial: Params
    deterministic: bool
    numerics: str = "the clients' own"
    undetermined: str = "the ClientApp is not known to be deterministic (see `deterministic`)"

    def init(self, seed: int) -> Params:
        return self.initial

    def fit(self, params: Params, examples: Examples, **how: Any) -> Params:
        raise SettingError("action", "fit", "one for the clients: the server has no data")

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[Any]:
        raise SettingError("action", "predict", "your own evaluate_fn: the server knows only the model's numbers")


@dataclass(frozen=True)
class Unlearning:
    """Wraps a strategy: `make` returns a new one each time it is called, always with the same settings.

    `deterministic`: say so if your ClientApp ends in the same bits from the same model, config["seed"] included.
    """

    make: MakeStrategy
    context: Context
    workspace: str = ""  # an absolute path; else the run's configuration has it
    clients: int = 0
    shards: int = 2
    participants: int = 0  # a shard a round; 0: everybody
    seed: int = 0
    holders: int = 0
    threshold: int = 0
    deterministic: bool = False

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
    ) -> Result:
        """As the strategy's own: trains or goes on, but forgets first. The arrays are the shards' mean."""
        speak()
        try:
            return self._start(grid, initial_arrays, num_rounds, timeout, train_config or ConfigRecord(), evaluate_fn)
        except FedForgetError as fault:
            log.error("fedforget: %s", fault)
            raise

    def _start(
        self,
        grid: Grid,
        initial: ArrayRecord,
        rounds: int,
        timeout: float,
        config: ConfigRecord,
        evaluate: Evaluate | None,
    ) -> Result:
        options = {"deadline": timeout, **self.context.run_config}
        folder = workspace_path({"workspace": self.workspace or options.get("workspace", "")})
        leave, result = names(options, "forget"), Result()
        talk = StrategyTalk(self.make, dict(config))
        with self._opened(folder, initial, rounds) as space, nodes_of(space, grid, options, leave) as store:
            cohort = GridCohort(store, talk.write, talk.read)
            joint = replace(space, store=store, make_cohort=lambda *_: cohort)
            joint = replace(joint, merge=_merge(joint, self.make, config))
            self._carry_out(joint, leave)
            if options.get("verify"):
                report = joint.verify(progress=progress)
                tell(present.verified, report)
                report.raise_if_failed()
            begun = joint.learner.init(0)
            served = list(joint.state().served().values())
        result.arrays = to_arrays(mean(served) if served else begun)
        result.train_metrics_clientapp = talk.summary()
        for round, arrays in ((0, to_arrays(begun)), (rounds, result.arrays)) if evaluate else ():
            found = evaluate(round, arrays) if evaluate else None
            if found is not None:
                result.evaluate_metrics_serverapp[round] = found
        return result

    def _carry_out(self, space: Workspace, leave: tuple[str, ...]) -> None:
        request = unfinished(space.ledger)
        if request is not None:
            tell(present.forgot, space.forget(progress=progress))
        gone = {m.client for m, at in space.ledger.members() if at is not None}
        left = tuple(client for client in leave if client not in gone)  # the same run again changes nothing
        if left:
            if not space.state().rows:
                raise NotTrained(space.path)
            tell(present.forgot, space.forget(left, progress=progress))
        tell(present.trained, space.train(progress))

    def _opened(self, folder: Path, initial: ArrayRecord, rounds: int) -> Workspace:
        """The workspace; what the models begin from is kept with it, for a restart begins there again."""
        kept = folder / "initial.safetensors"
        if not (folder / "federation.toml").exists():
            task = own_task(to_params(initial), self.deterministic)
            settings = self._settings(rounds)
            with Workspace.init(folder, settings, task=task) as space:
                Disk().write(kept, task.learner.init(0).to_bytes())
                space.ledger.put("initial", task.learner.init(0).digest)
        blob = Disk().read(kept)
        if blob is None:
            raise Damaged(kept, "the model the federation began with", "no file")
        model = Params.from_bytes(blob, str(kept))
        space = Workspace.open(folder, task=own_task(model, self.deterministic))
        if space.ledger.get("initial") != model.digest:
            raise Damaged(kept, space.ledger.get("initial")[:12], model.digest[:12])
        if space.settings.rounds != rounds:
            raise SettingError("num_rounds", rounds, f"{space.settings.rounds}, as when {folder} was made")
        return space

    def _settings(self, rounds: int) -> FederationSettings:
        holders = self.holders or min(self.clients, 20)
        keeping = Keeping(holders=holders, threshold=self.threshold or max(1, holders // 2))
        return FederationSettings(
            task="own",
            learner="own",
            clients=self.clients,
            shards=self.shards,
            participants=self.participants,
            rounds=rounds,
            epochs=1,
            seed=self.seed,
            keeping=keeping,
        )


def own_task(initial: Params, deterministic: bool) -> Task:
    """The model is the clients', and so are all examples."""
    none = Examples(np.zeros((0, 1), np.float32), np.zeros(0, np.int64))
    return Task(Dataset("own", "image", none, none, ("?",)), Given(initial, deterministic), {})


def _merge(space: Workspace, make: Callable[[], Strategy], config: Mapping[str, Any]) -> StrategyMerge:
    """Reads the rounds before from what is in force, or, where a forget goes on, from what it has made so far."""

    def recorded(place: Place) -> tuple[Upload, ...]:
        request = unfinished(space.ledger)
        if request is not None and place in (made := space.state(request.id)).rows:
            return made.past.uploads(place)
        return space.state().past.uploads(place)

    return StrategyMerge(make, dict(config), recorded, lambda cell: space.state().begin(cell))
