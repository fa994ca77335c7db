"""Manifest values as table rows, and back."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from ..federation import Absence, Cost, Place
from ..manifest import Bundle, Label, Record, RoundRow, Spot
from ..plan import Member, Stage
from ..slices import HEAD, SliceKey

Row = dict[str, Any]


def where(place: Place, generation: int) -> Row:
    return {"stage": place.stage, "shard": place.shard, "round": place.round, "generation": generation}


def member_row(member: Member) -> Row:
    """Where it is away is a fact of its own."""
    return {"client": member.client, "seat": member.seat, "joined": member.joined, "left": member.left}


def read_member(row: Mapping[str, Any], away: Collection[int] = ()) -> Member:
    left = None if row["left"] is None else int(row["left"])
    return Member(row["client"], int(row["seat"]), int(row["joined"]), left, frozenset(away))


def read_stage(row: Mapping[str, Any]) -> Stage:
    return Stage(int(row["rounds"]), row["handover"])


def round_row(row: RoundRow, pending: int | None) -> Row:
    body = {
        "kind": row.kind,
        "source": row.source,
        "start": row.start_digest,
        "model": row.model_digest,
        "roster": list(row.roster),
        "examples": list(row.examples),
        "absent": [[a.client, a.why] for a in row.absent],
        "cost": asdict(row.cost),
        "numerics": row.numerics,
        "deterministic": row.deterministic,
    }
    return {**where(row.place, row.generation), "pending": pending, "body": body}


def read_round(row: Mapping[str, Any]) -> RoundRow:
    body = row["body"]
    return RoundRow(
        Place(int(row["stage"]), int(row["shard"]), int(row["round"])),
        int(row["generation"]),
        body["kind"],
        body["source"],
        body["start"],
        body["model"],
        tuple(body["roster"]),
        tuple(body["examples"]),
        tuple(Absence(client, why) for client, why in body["absent"]),
        Cost(**body["cost"]),
        body.get("numerics", ""),
        body.get("deterministic", True),
    )


def label_row(label: Label) -> Row:
    return {
        **where(label.place, label.generation),
        "kind": label.kind,
        "client": label.client,
        "code": label.code,
        "compressed": label.compressed,
    }


def read_label(federation: str, row: Mapping[str, Any]) -> Label:
    names = ("stage", "shard", "round", "generation", "kind", "client", "code", "compressed")
    return Label(federation, *(row[name] for name in names))


def record_row(record: Record, pending: int | None) -> Row:
    return {
        **label_row(record.label),
        "pending": pending,
        "plain": record.plain,
        "length": record.length,
        "digest": record.digest,
        "wrapped": record.wrapped,
    }


def read_record(federation: str, row: Mapping[str, Any]) -> Record:
    wrapped = None if row["wrapped"] is None else bytes(row["wrapped"])
    return Record(read_label(federation, row), row["plain"], row["length"], row["digest"], wrapped)


def bundle_row(bundle: Bundle, pending: int | None) -> Row:
    return {
        "stage": bundle.stage,
        "shard": bundle.shard,
        "round": bundle.round,
        "generation": bundle.generation,
        "pending": pending,
        "head": is_head(bundle),
        "code": bundle.code,
        "width": bundle.width,
        "spots": [{**label_row(s.label), "offset": s.offset, "lane": s.lane} for s in bundle.spots],
        "holders": list(bundle.holders),
        "hashes": list(bundle.hashes),
    }


def read_bundle(federation: str, row: Mapping[str, Any]) -> Bundle:
    spots = tuple(Spot(read_label(federation, s), s["offset"], s["lane"]) for s in row["spots"])
    return Bundle(
        row["stage"],
        row["shard"],
        row["round"],
        row["generation"],
        row["code"],
        row["width"],
        spots,
        tuple(row["holders"]),
        tuple(row["hashes"]),
    )


def is_head(bundle: Bundle) -> bool:
    return bundle.holders == (HEAD,)


def read_debt(row: Mapping[str, Any]) -> SliceKey:
    stage, shard, round, generation = (int(row[name]) for name in ("stage", "shard", "round", "generation"))
    return SliceKey(stage, shard, round, generation, str(row["holder"]))
