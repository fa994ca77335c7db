"""Plan: who is where and takes part when, as pure functions of a seed.

A client's shard is a *seat* given at enrolment; a round's cohort is the m present clients of the shard with the
smallest keyed hash. So taking a client away changes its own place and nothing else, which is what lets exact
forgetting end bit-identical to the run the leaver never joined.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from .errors import SettingError, UnknownClient
from .seeds import derive

Handover = Literal["lineage", "fresh", "merged"]
Draw = Literal["round", "stage"]
Cell = tuple[int, int]  # (stage, shard)


@dataclass(frozen=True)
class Member:
    """A seat: kept for good, though its client may come and go at stage boundaries."""

    client: str
    seat: int
    joined: int = 0
    left: int | None = None
    away: frozenset[int] = frozenset()  # stages in which its part was forgotten: it counts as absent there

    def present(self, stage: int) -> bool:
        return self.joined <= stage and (self.left is None or stage < self.left) and stage not in self.away


@dataclass(frozen=True)
class Stage:
    """A period of fixed membership: its rounds, and how its shard models begin.

    `lineage`: where the shard's model of the stage before ended · `fresh`: from a new initial model ·
    `merged`: from the average of all shard models, which taints every shard with every client before.
    """

    rounds: int
    handover: Handover = "lineage"


@dataclass(frozen=True)
class Change:
    """What a request comes down to: which clients leave, whose data changes while they stay, who is taken out where."""

    leave: frozenset[str] = frozenset()
    edit: frozenset[str] = frozenset()
    away: frozenset[tuple[str, int]] = frozenset()  # (client, stage)

    @property
    def clients(self) -> frozenset[str]:
        return self.leave | self.edit | {client for client, _ in self.away}

    def gone(self, stage: int) -> frozenset[str]:
        """Who takes no part in the stage any more."""
        return self.leave | {client for client, at in self.away if at == stage}

    def at(self, stage: int) -> frozenset[str]:
        """Whose uploads of the stage hold what is to be forgotten."""
        return self.gone(stage) | self.edit


@dataclass(frozen=True)
class Influence:
    """Step lengths of `round` in `cell` were measured in `source` (clean forgetting): a path for taint."""

    cell: Cell
    round: int
    source: Cell


@dataclass(frozen=True)
class Taint:
    """From `round` on a cell is no longer free of a leaver.

    `inherited`: it came in by hand-over or by borrowed lengths, so not even the uploads of `round` are clean.
    """

    round: int
    inherited: bool = False


@dataclass(frozen=True)
class Plan:
    seed: int
    shards: int
    members: tuple[Member, ...]
    stages: tuple[Stage, ...]
    participants: int | None = None
    draw: Draw = "round"

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise SettingError("shards", self.shards, "1 or more")
        if self.participants is not None and self.participants < 1:
            raise SettingError("participants", self.participants, "1 or more, or none for all")
        if self.draw not in get_args(Draw):
            raise SettingError("draw", self.draw, "'round' or 'stage'")
        for stage in self.stages:
            if not 1 <= stage.rounds < 1 << 31:
                raise SettingError("rounds", stage.rounds, "1 or more, and below 2^31")
            if stage.handover not in get_args(Handover):
                raise SettingError("handover", stage.handover, "'lineage', 'fresh' or 'merged'")
        if len({m.client for m in self.members}) < len(self.members):
            raise SettingError("members", [m.client for m in self.members], "clients of different names")
        if len({m.seat for m in self.members}) < len(self.members):
            raise SettingError("seats", [m.seat for m in self.members], "one client a seat")

    @staticmethod
    def of(
        clients: Iterable[str],
        *,
        shards: int,
        rounds: int,
        seed: int = 0,
        participants: int | None = None,
        draw: Draw = "round",
    ) -> "Plan":
        """One stage over `clients`, seated in the order given."""
        members = tuple(Member(client, seat) for seat, client in enumerate(clients))
        if shards > len(members):
            raise SettingError("shards", shards, f"at most the number of clients, {len(members)}")
        return Plan(seed, shards, members, (Stage(rounds),), participants, draw)

    # --- who is where -------------------------------------------------------------------------------------

    @cached_property
    def _by_client(self) -> Mapping[str, Member]:
        return {m.client: m for m in self.members}

    @cached_property
    def _by_shard(self) -> Mapping[int, tuple[Member, ...]]:
        rows: dict[int, list[Member]] = {s: [] for s in range(self.shards)}
        for member in sorted(self.members, key=lambda m: m.client):
            rows[self._seat_shard(member.seat)].append(member)
        return {s: tuple(row) for s, row in rows.items()}

    @cached_property
    def _cohorts(self) -> dict[tuple[int, int, int], tuple[str, ...]]:
        """Cohorts drawn so far: a memo of a pure function."""
        return {}

    @cached_property
    def _hands(self) -> dict[int, list[int]]:
        """The shards in the order each hand of seats is dealt to: a memo of a pure function."""
        return {}

    def _seat_shard(self, seat: int) -> int:
        """Seats are dealt in hands of S, each hand in a keyed order of its own: shards stay even as seats grow."""
        hand, place = divmod(seat, self.shards)
        if hand not in self._hands:
            self._hands[hand] = sorted(range(self.shards), key=lambda s: derive(self.seed, "seat", hand, s))
        return self._hands[hand][place]

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_client))

    def member(self, client: str) -> Member:
        if client not in self._by_client:
            raise UnknownClient([client], self.clients)
        return self._by_client[client]

    def shard_of(self, client: str) -> int:
        return self._seat_shard(self.member(client).seat)

    def present(self, stage: int, shard: int) -> tuple[str, ...]:
        """The shard's clients of that stage, by name."""
        return tuple(m.client for m in self._by_shard[shard] if m.present(stage))

    def living(self, stage: int, shard: int) -> bool:
        """Whether the shard's model at the stage's end was trained by anybody; else it has ended and serves not."""
        if self.present(stage, shard):
            return True
        return stage > 0 and self.stages[stage].handover == "lineage" and self.living(stage - 1, shard)

    def living_shards(self, stage: int) -> tuple[int, ...]:
        return tuple(s for s in range(self.shards) if self.living(stage, s))

    # --- who takes part when ------------------------------------------------------------------------------

    def cohort(self, stage: int, shard: int, round: int) -> tuple[str, ...]:
        """The m present clients with the smallest keyed hash, by name."""
        place = (stage, shard, round)
        if place not in self._cohorts:
            self._cohorts[place] = self._drawn(*place)
        return self._cohorts[place]

    def _drawn(self, stage: int, shard: int, round: int) -> tuple[str, ...]:
        present = self.present(stage, shard)
        if self.participants is None or self.participants >= len(present):
            return present
        when = () if self.draw == "stage" else (round,)
        ranked = sorted(present, key=lambda c: (derive(self.seed, "cohort", stage, shard, *when, c), c))
        return tuple(sorted(ranked[: self.participants]))

    def first_round(self, stage: int, shard: int, clients: Collection[str]) -> int | None:
        """The first round of the stage in which any of `clients` is drawn."""
        wanted = set(clients) & set(self.present(stage, shard))
        if not wanted:
            return None
        for round in range(1 if self.draw == "stage" else self.stages[stage].rounds):
            if wanted & set(self.cohort(stage, shard, round)):
                return round
        return None

    def newcomers(self, stage: int, shard: int, round: int) -> tuple[str, ...]:
        """Who of the round's cohort was not drawn earlier in the stage: a possible restart is just before."""
        before: set[str] = set()
        for earlier in range(round):
            before.update(self.cohort(stage, shard, earlier))
        return tuple(c for c in self.cohort(stage, shard, round) if c not in before)

    # --- how it changes -----------------------------------------------------------------------------------

    def without(self, clients: Collection[str]) -> "Plan":
        """The world in which `clients` never joined: their seats stay empty, nobody moves up."""
        return self.changed(Change(frozenset(clients)))

    def changed(self, change: Change) -> "Plan":
        """The world the change asks for: leavers never joined, and whoever is away was not there in that stage."""
        self._refuse_unknown(change.clients)
        away: dict[str, set[int]] = {}
        for client, stage in change.away:
            away.setdefault(client, set()).add(stage)
        stay = (m for m in self.members if m.client not in change.leave)
        return replace(
            self, members=tuple(replace(m, away=m.away | away[m.client]) if m.client in away else m for m in stay)
        )

    def _refuse_unknown(self, clients: Collection[str]) -> None:
        unknown = set(clients) - set(self._by_client)
        if unknown:
            raise UnknownClient(unknown, self.clients)

    def next_stage(self, stage: Stage, *, join: Mapping[str, int] | None = None, leave: Collection[str] = ()) -> "Plan":
        """Open a stage: newcomers take the seats given, those who leave keep theirs but take no part."""
        self._refuse_unknown(leave)
        index = len(self.stages)
        kept = tuple(replace(m, left=index) if m.client in set(leave) and m.present(index) else m for m in self.members)
        new = tuple(Member(client, seat, joined=index) for client, seat in (join or {}).items())
        return replace(self, members=kept + new, stages=(*self.stages, stage))

    # --- what a change touches ----------------------------------------------------------------------------

    def affected(
        self, change: Change, influences: Iterable[Influence] = (), also: Mapping[Cell, int] | None = None
    ) -> dict[Cell, Taint]:
        """Where each shard of each stage stops being free of the change; a cell not named is untouched.

        `also` names further rounds to restart from, whose consequences are followed likewise.
        """
        self._refuse_unknown(change.clients)
        paths = tuple(influences)
        taints: dict[Cell, Taint] = {}
        while True:
            found = dict(taints)
            for stage in range(len(self.stages)):
                for shard in range(self.shards):
                    taint = self._taint((stage, shard), change, found, paths, also or {})
                    if taint is not None:
                        found[stage, shard] = taint
            if found == taints:
                return taints
            taints = found

    def _taint(
        self,
        cell: Cell,
        change: Change,
        found: Mapping[Cell, Taint],
        paths: tuple[Influence, ...],
        also: Mapping[Cell, int],
    ) -> Taint | None:
        starts = [r for r in (self.first_round(*cell, change.at(cell[0])), also.get(cell)) if r is not None]
        own = min(starts, default=None)
        inherited = [0] if any(p in found for p in self.predecessors(cell)) else []
        inherited += [
            i.round for i in paths if i.cell == cell and i.source in found and found[i.source].round <= i.round
        ]
        if not inherited:
            return None if own is None else Taint(own)
        if own is not None and own < min(inherited):
            return Taint(own)
        return Taint(min(inherited), inherited=True)

    def predecessors(self, cell: Cell) -> tuple[Cell, ...]:
        """The cells whose final models this cell began from: only living ones hand over."""
        stage, shard = cell
        handover = self.stages[stage].handover
        if stage == 0 or handover == "fresh":
            return ()
        shards = (shard,) if handover == "lineage" else range(self.shards)
        return tuple((stage - 1, s) for s in shards if self.living(stage - 1, s))
