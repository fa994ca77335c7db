"""Federated averaging in isolated shards: the one loop that training and forgetting share.

A *recipe* is a pair of pure functions, what to ask of a round's clients and how to fold their replies into the
next model; `march` runs a recipe over rounds. Training is one recipe, the ways of forgetting are others, so
all of them yield the same `Round`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from numpy.typing import NDArray

from .errors import SettingError
from .examples import Examples
from .params import Params, mean, weighted_mean
from .plan import Cell, Plan
from .seeds import derive

Solver = Literal["sgd", "fisher", "hutchinson"]
Kind = Literal["plain", "retrained", "prepared", "calibrated", "clean", "skipped"]


class Learner(Protocol):
    """A model family: pure functions of parameters, examples and a seed."""

    def init(self, seed: int) -> Params:
        """A fresh model."""

    def fit(self, params: Params, examples: Examples, *, epochs: int, seed: int, solver: Solver = "sgd") -> Params:
        """The parameters after `epochs` over the examples; optimiser state begins and ends here."""

    def predict(self, params: Params, x: NDArray[Any]) -> NDArray[Any]:
        """Class probabilities, (n, classes)."""


class Place(NamedTuple):
    """A round of a shard of a stage."""

    stage: int
    shard: int
    round: int

    @property
    def cell(self) -> Cell:
        return self.stage, self.shard

    def __str__(self) -> str:
        return f"stage {self.stage}, shard {self.shard}, round {self.round}"


@dataclass(frozen=True)
class FitTask:
    """What one client is asked to do in one round."""

    place: Place
    client: str
    params: Params
    epochs: int
    seed: int
    solver: Solver = "sgd"


@dataclass(frozen=True)
class FitResult:
    """What it sends back."""

    place: Place
    client: str
    params: Params
    examples: int
    seconds: float = 0.0


class Cohort(Protocol):
    """Clients that can be asked. Results come in any order; a lost client is simply absent."""

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        """Run the tasks."""


@dataclass(frozen=True)
class Upload:
    """One client's parameters after local training, and how many examples they were trained on."""

    client: str
    params: Params
    examples: int


@dataclass(frozen=True)
class Absence:
    """A client that was asked and is not in the round, and why."""

    client: str
    why: str

    @property
    def lost(self) -> bool:
        """Lost on the way (a condition of the run), not refused (a function of data and model)."""
        return self.why == "lost"


@dataclass(frozen=True)
class Cost:
    client_epochs: int = 0
    seconds: float = 0.0  # summed over the clients, as if one after another
    slowest: float = 0.0  # as if all at once
    wall: float = 0.0  # its share of the time that passed since the rounds before, keeping those included

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.client_epochs + other.client_epochs,
            self.seconds + other.seconds,
            self.slowest + other.slowest,
            self.wall + other.wall,
        )


@dataclass(frozen=True)
class Round:
    """One round of one shard: where it began, who uploaded what, where it ended."""

    place: Place
    start: Params
    uploads: tuple[Upload, ...]
    model: Params
    absent: tuple[Absence, ...] = ()
    cost: Cost = Cost()
    kind: Kind = "plain"
    source: int | None = None  # the shard whose step lengths were borrowed (clean)

    @property
    def roster(self) -> tuple[str, ...]:
        return tuple(u.client for u in self.uploads)


@dataclass(frozen=True)
class Settings:
    """How clients train and uploads are averaged."""

    epochs: int = 10
    weighted: bool = True
    solver: Solver = "sgd"

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise SettingError("epochs", self.epochs, "1 or more")


@dataclass(frozen=True)
class Leg:
    """A shard's part of a march: from which round and model, up to which round."""

    first: int
    model: Params
    until: int


class Recipe(Protocol):
    """What to ask, and how to fold the replies."""

    def ask(self, place: Place, start: Params) -> tuple[FitTask, ...]:
        """The round's tasks; none if nobody has to train."""

    def fold(self, place: Place, start: Params, results: Iterable[FitResult]) -> Round:
        """The round the replies make, in any order of replies the same."""


def march(cohort: Cohort, stage: int, legs: Mapping[int, Leg], recipe: Recipe) -> Iterator[Round]:
    """Run the recipe over every leg, round by round, all shards of a round asked at once."""
    models = {shard: leg.model for shard, leg in legs.items()}
    rounds = range(
        min((leg.first for leg in legs.values()), default=0),
        max((leg.until for leg in legs.values()), default=0),
    )
    for index in rounds:
        places = [Place(stage, s, index) for s in sorted(legs) if legs[s].first <= index < legs[s].until]
        tasks = [task for place in places for task in recipe.ask(place, models[place.shard])]
        replies: dict[Place, list[FitResult]] = {place: [] for place in places}
        for result in cohort.fit(tasks) if tasks else ():
            if result.place in replies:
                replies[result.place].append(result)
        for place in places:
            round = recipe.fold(place, models[place.shard], replies[place])
            models[place.shard] = round.model
            yield round


@dataclass(frozen=True)
class Averaging:
    """FedAvg: the recipe of plain training."""

    plan: Plan
    settings: Settings
    kind: Kind = "plain"

    def ask(self, place: Place, start: Params) -> tuple[FitTask, ...]:
        return ask(self.plan, self.plan.cohort(*place), place, start, self.settings.epochs, self.settings.solver)

    def fold(self, place: Place, start: Params, results: Iterable[FitResult]) -> Round:
        uploads, absent, cost = sift(self.ask(place, start), start, results)
        model = average(start, uploads, self.settings.weighted)
        return Round(place, start, uploads, model, absent, cost, self.kind)


def ask(
    plan: Plan, clients: Iterable[str], place: Place, start: Params, epochs: int, solver: Solver = "sgd"
) -> tuple[FitTask, ...]:
    """One task a client; the seed names the place and the client and nothing else, so a replay draws the same."""
    return tuple(FitTask(place, c, start, epochs, derive(plan.seed, "fit", *place, c), solver) for c in sorted(clients))


def sift(
    tasks: Sequence[FitTask], start: Params, results: Iterable[FitResult]
) -> tuple[tuple[Upload, ...], tuple[Absence, ...], Cost]:
    """Sort replies by client; a client that is lost or sends no model is named, and the round goes on without it."""
    replies: dict[str, FitResult] = {}
    for result in results:
        replies.setdefault(result.client, result)
    uploads: list[Upload] = []
    absent: list[Absence] = []
    cost = Cost()
    for task in sorted(tasks, key=lambda t: t.client):
        reply = replies.get(task.client)
        why = "lost" if reply is None else _refusal(start, reply)
        if reply is not None:
            cost = Cost(
                cost.client_epochs + task.epochs,
                cost.seconds + reply.seconds,
                max(cost.slowest, reply.seconds),
            )
        if reply is None or why:
            absent.append(Absence(task.client, why))
        else:
            uploads.append(Upload(reply.client, reply.params, reply.examples))
    return tuple(uploads), tuple(absent), cost


def _refusal(start: Params, reply: FitResult) -> str:
    if reply.params.layout != start.layout:
        return "refused: its tensors are not the model's"
    if not reply.params.is_finite:
        return "refused: it holds NaN or infinity"
    if reply.examples < 1:
        return f"refused: it claims {reply.examples} examples"
    return ""


def average(start: Params, uploads: Sequence[Upload], weighted: bool) -> Params:
    """The mean of the uploads by examples or evenly; with none, the model stays."""
    if not uploads:
        return start
    weights = [float(u.examples) if weighted else 1.0 for u in uploads]
    return weighted_mean([u.params for u in uploads], weights)


def initial_model(learner: Learner, plan: Plan, stage: int) -> Params:
    """The model a stage begins from where no stage hands over: one for every shard, so that averages mean something."""
    return learner.init(derive(plan.seed, "init", _origin(plan, stage)))


def _origin(plan: Plan, stage: int) -> int:
    while stage > 0 and plan.stages[stage].handover != "fresh":
        stage -= 1
    return stage


def handed_over(plan: Plan, cell: Cell, final: Callable[[Cell], Params], initial: Params) -> Params:
    """The model a cell begins from: its own past, a new start, or the average of all living shards."""
    stage, _ = cell
    before = plan.predecessors(cell)
    if not before:
        return initial
    if plan.stages[stage].handover == "lineage":
        return final(before[0])
    return mean([final(c) for c in before])


def train(
    cohort: Cohort,
    plan: Plan,
    initial: Params | Mapping[int, Leg],
    settings: Settings,
    *,
    stage: int = 0,
) -> Iterator[Round]:
    """FedAvg in every shard of the stage; `initial` is one model for all shards, or each shard's leg to go on from."""
    if isinstance(initial, Params):
        rounds = plan.stages[stage].rounds
        legs: Mapping[int, Leg] = {s: Leg(0, initial, rounds) for s in range(plan.shards) if plan.present(stage, s)}
    else:
        legs = initial
    return march(cohort, stage, legs, Averaging(plan, settings))


def train_all(cohort: Cohort, plan: Plan, learner: Learner, settings: Settings) -> Iterator[Round]:
    """Every stage of the plan from nothing, each handing over to the next."""
    finals: dict[Cell, Params] = {}
    for stage in range(len(plan.stages)):
        initial = initial_model(learner, plan, stage)
        rounds = plan.stages[stage].rounds
        legs = {
            s: Leg(0, handed_over(plan, (stage, s), finals.__getitem__, initial), rounds) for s in range(plan.shards)
        }
        finals.update({(stage, s): leg.model for s, leg in legs.items()})
        for round in train(
            cohort, plan, {s: leg for s, leg in legs.items() if plan.present(stage, s)}, settings, stage=stage
        ):
            finals[round.place.cell] = round.model
            yield round
