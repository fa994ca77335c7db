"""Expect: what a forget is going to read, so that a store across a network can fetch it in one exchange."""

from collections.abc import Iterator

from ..federation import Place
from ..forgetting import Method, Rebuild
from ..manifest import Bundle, Label
from .state import State


def bundles(state: State, method: Method, work: Rebuild, merged: bool) -> tuple[Bundle, ...]:
    """Each once. `merged`: models are no means of uploads, so what came before the restart is merged again."""
    where = state.archive.bundles
    found = {id(where[label]): where[label] for label in _labels(state, method, work, merged) if label in where}
    if state.settings.keeping.layout == "cross":  # what is coded again is read, whosever it is
        for bundle in state.history:
            firsts = [taint.round for cell, taint in work.taints.items() if cell in bundle.cells]
            if firsts and min(firsts) <= bundle.round:
                found[id(bundle)] = bundle
    return tuple(found.values())


def _labels(state: State, method: Method, work: Rebuild, merged: bool) -> Iterator[Label]:
    for cell, taint in work.taints.items():
        if not work.after.present(*cell):
            continue
        first = Place(*cell, taint.round)
        yield from state.past.behind(first)
        if method.algorithm in ("calibrate", "clean") and not taint.inherited:
            yield from _of(state, first, "upload")
        lenders = [cell] if method.algorithm == "calibrate" else []
        if method.algorithm == "clean":  # whoever lends lengths is another shard of the same stage
            lenders = [(cell[0], s) for s in range(work.before.shards) if (cell[0], s) not in work.taints]
        for lender in lenders:
            for round in range(taint.round, work.past.rounds(lender)):
                yield from _of(state, Place(*lender, round), "gram")
        for round in range(taint.round) if merged else ():
            yield from _of(state, Place(*cell, round), "upload")


def _of(state: State, place: Place, kind: str) -> Iterator[Label]:
    yield from (label for label in state.labels.get(place, ()) if label.kind == kind)
