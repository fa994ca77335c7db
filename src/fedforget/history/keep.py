"""Keep: a group of rounds → records → seal → stripe → encode → place; what comes back is the ledger's entry.

Both keep the inner products of every round's updates, a few kilobytes that spare calibration all the uploads. `full`
keeps every upload besides. `lean` keeps what any forget can ask for: before a round in which somebody takes part for
the first time, the model and that round's uploads.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..coding import Code, ReedSolomon, block_length, code_named, stripe
from ..federation import Place, Round, average
from ..forgetting.past import Measures
from ..manifest import Bundle, Entry, Keeping, Label, Record, RecordKind, RoundRow, Spot
from ..params import Params
from ..plan import Plan
from ..sealing import Sealed, Vault, seal
from ..seeds import derive
from ..slices import ALL_SHARDS, HEAD, SERVER, SliceKey, SliceStore

PLAIN = "rs8/1/1/0"  # one slice that is the record itself


@dataclass(frozen=True)
class Coded:
    """A bundle and the slices it describes, not yet placed."""

    bundle: Bundle
    pieces: Mapping[SliceKey, bytes]


@dataclass(frozen=True)
class Keeper:
    """Records rounds for one plan under one epoch key."""

    federation: str
    plan: Plan
    keeping: Keeping
    weighted: bool
    vault: Vault
    store: SliceStore

    def record(
        self, rounds: Sequence[Round], generation: int, others: Mapping[int, Mapping[Label, bytes]] | None = None
    ) -> Entry:
        """Place one round index of any number of shards. `others` (cross layout): lanes that stay as they are."""
        sealed = {r.place.shard: self._sealed(r, generation) for r in rounds}
        coded: list[Coded] = []
        if self.keeping.layout == "cross":
            lanes = {**(others or {}), **{s: _bodies(rows) for s, rows in sealed.items()}}
            coded += self._cross(rounds[0].place.stage, rounds[0].place.round, generation, lanes)
        else:
            coded += [c for r in rounds for c in self._striped(r.place, generation, _bodies(sealed[r.place.shard]))]
        heads = [self._head(r.place, r.model, generation) for r in rounds]
        coded += [head for _, head in heads]
        records = [_entry(s, plain) for rows in sealed.values() for s, plain in rows] + [record for record, _ in heads]
        return Entry(tuple(RoundRow.of(r, generation) for r in rounds), tuple(records), self._place(coded))

    def recode(self, stage: int, round: int, generation: int, lanes: Mapping[int, Mapping[Label, bytes]]) -> Entry:
        """A round's cross slices made again of the lanes given, sealed as they are."""
        return Entry((), (), self._place(list(self._cross(stage, round, generation, lanes))))

    def again(self, bundle: Bundle, bodies: Mapping[Label, bytes], generation: int) -> Bundle:
        """A bundle made anew for the holders there are now, of its records sealed as they are."""
        if bundle.shard == ALL_SHARDS:
            lanes: dict[int, dict[Label, bytes]] = {}
            for label, body in bodies.items():
                lanes.setdefault(label.shard, {})[label] = body
            coded = self._cross(bundle.stage, bundle.round, generation, lanes)
        else:
            coded = self._striped(Place(bundle.stage, bundle.shard, bundle.round), generation, bodies)
        (made,) = self._place(list(coded))
        return made

    def head(self, place: Place, model: Params, generation: int) -> Entry:
        """The newest model, placed again."""
        record, coded = self._head(place, model, generation)
        return Entry((), (record,), self._place([coded]))

    def _place(self, coded: Sequence[Coded]) -> tuple[Bundle, ...]:
        """Put all slices of the step at once: holders and disks take many as quickly as one."""
        self.store.put({key: piece for c in coded for key, piece in c.pieces.items()})
        return tuple(c.bundle for c in coded)

    # --- what is kept of a round --------------------------------------------------------------------------

    def _sealed(self, round: Round, generation: int) -> list[tuple[Sealed, int]]:
        code = self.code_of(round.place.stage, round.place.shard).description
        found = []
        for kind, client, blob in self._parts(round):
            label = Label(self.federation, *round.place, generation, kind, client, code, self.keeping.compress)
            found.append((seal(self.vault, self.keeping.cipher, label, blob), len(blob)))
        return found

    def _parts(self, round: Round) -> Iterable[tuple[RecordKind, str, bytes]]:
        lean = self.keeping.keep == "lean"
        whole = not lean or round.kind != "plain" or bool(self.plan.newcomers(*round.place))
        if whole:
            yield from (("upload", u.client, u.params.to_bytes()) for u in round.uploads)
        yield "gram", "", Measures.of(round).gram.astype("<f8").tobytes()
        if lean and whole and round.place.round > 0:
            yield "start", "", round.start.to_bytes()
        if whole and round.uploads and average(round.start, round.uploads, self.weighted) != round.model:
            yield "model", "", round.model.to_bytes()

    # --- how it is laid out -------------------------------------------------------------------------------

    def code_of(self, stage: int, shard: int) -> Code:
        """The shard's code: of n holders any k, or in the same proportion where the shard has fewer clients."""
        if self.keeping.layout == "server":
            return code_named(PLAIN)
        if self.keeping.layout == "cross":
            return ReedSolomon(len(self.holders(stage, ALL_SHARDS)), len(self._lanes(stage)))
        n = len(self.holders(stage, shard))
        return ReedSolomon(n, max(1, -(-n * self.keeping.threshold // self.keeping.holders)))

    def _lanes(self, stage: int) -> tuple[int, ...]:
        """The shards with somebody in them, block by block: there are never fewer clients to hold the slices."""
        return tuple(s for s in range(self.plan.shards) if self.plan.present(stage, s))

    def holders(self, stage: int, shard: int) -> tuple[str, ...]:
        """The n present clients with the smallest keyed hash: of the shard, or of all (cross)."""
        if self.keeping.layout == "server":
            return (SERVER,)
        shards = range(self.plan.shards) if shard == ALL_SHARDS else (shard,)
        present = [c for s in shards for c in self.plan.present(stage, s)]
        ranked = sorted(present, key=lambda c: (derive(self.plan.seed, "holder", stage, shard, c), c))
        return tuple(ranked[: self.keeping.holders])

    def _striped(self, place: Place, generation: int, bodies: Mapping[Label, bytes]) -> Iterable[Coded]:
        code, offset, spots = self.code_of(place.stage, place.shard), 0, []
        columns: list[list[np.ndarray]] = [[] for _ in range(code.k)]
        for label, body in bodies.items():
            spots.append(Spot(label, offset))
            offset += block_length(len(body), code.k)
            for column, piece in zip(columns, stripe(body, code.k), strict=True):
                column.append(piece)
        blocks = [np.concatenate(column) for column in columns]
        yield _coded((*place, generation), code, blocks, spots, self.holders(place.stage, place.shard))

    def _cross(
        self, stage: int, round: int, generation: int, lanes: Mapping[int, Mapping[Label, bytes]]
    ) -> Iterable[Coded]:
        """The paper's layout: one block of the round is one shard's records, padded to the longest block."""
        if not any(lanes.values()):
            return
        code, spots = self.code_of(stage, ALL_SHARDS), []
        blocks = [bytearray() for _ in range(code.k)]
        for shard, bodies in sorted(lanes.items()):
            lane = self._lanes(stage).index(shard)
            for label, body in bodies.items():
                spots.append(Spot(label, len(blocks[lane]), lane))
                blocks[lane] += body
        width = block_length(max(map(len, blocks)), 1)
        padded = [np.frombuffer(bytes(b).ljust(width, b"\0"), np.uint8) for b in blocks]
        holders = self.holders(stage, ALL_SHARDS)
        yield _coded((stage, ALL_SHARDS, round, generation), code, padded, spots, holders)

    def _head(self, place: Place, model: Params, generation: int) -> tuple[Record, Coded]:
        """The newest model, sealed, at the server: what is served and where training goes on."""
        blob = model.to_bytes()
        label = Label(self.federation, *place, generation, "head", "", PLAIN)
        sealed = seal(self.vault, self.keeping.cipher, label, blob)
        blocks, where = stripe(sealed.body, 1), (*place, generation)
        return _entry(sealed, len(blob)), _coded(where, code_named(PLAIN), blocks, [Spot(label, 0)], (HEAD,))


def _coded(
    where: tuple[int, int, int, int],
    code: Code,
    blocks: Sequence[np.ndarray],
    spots: Sequence[Spot],
    holders: tuple[str, ...],
) -> Coded:
    slices = code.encode(blocks)
    hashes = tuple(hashlib.sha256(s).hexdigest() for s in slices)
    bundle = Bundle(*where, code.description, len(blocks[0]), tuple(spots), holders, hashes)
    return Coded(bundle, dict(zip(bundle.keys, slices, strict=True)))


def _entry(sealed: Sealed, plain: int) -> Record:
    return Record(sealed.label, plain, len(sealed.body), sealed.digest, sealed.wrapped)


def _bodies(rows: Sequence[tuple[Sealed, int]]) -> dict[Label, bytes]:
    return {sealed.label: sealed.body for sealed, _ in rows}
