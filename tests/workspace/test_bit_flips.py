"""Single bits changed in ledger and keys: each is found, or lies in the places named here, where nothing is said.

Certificates have their own in tests/evidence: no bit of theirs lies outside.
"""

import random
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa
from small import client, copied, opened, trained

from fedforget.errors import FedForgetError
from fedforget.storage import tables
from fedforget.workspace import Workspace, log, settle

# Bytes of SQLite's file header that say nothing about what the rows are, by offset (https://sqlite.org/fileformat2.html):
HEADER = {
    "file change counter": range(24, 28),
    "schema cookie": range(40, 44),
    "default page cache size": range(48, 52),
    "user version": range(60, 64),
    "application id": range(68, 72),
    "reserved, zero": range(72, 92),
    "version-valid-for": range(92, 96),
    "SQLite version that wrote last": range(96, 100),
    "size of the database in pages": range(28, 32),  # believed only where the counters agree
}
OUTSIDE = {*HEADER, "free space in a page", "text of the schema, said the same"}


@pytest.fixture(scope="module")
def pristine(shared_room: Path) -> Path:
    path = trained(shared_room / "pristine")
    with opened(path) as space:
        space.forget([client(0)])
        space.ledger.redact([1], "a test")
        log.seal(space)
    return path


def found(space: Workspace) -> bool:
    """Whether `verify` sees it: by its first check, the ledger's, or because nothing can be read at all."""
    space.ledger.engine.dispose()  # nothing of the file as it was before is remembered
    try:
        return bool(settle.undone(space)) or not log.check(space).passed
    except FedForgetError:
        return True


def rows(path: Path) -> list[object]:
    """Every row of every table as SQLite keeps it."""
    with opened(path) as space, space.ledger.engine.connect() as db:
        raw = [[sa.type_coerce(c, sa.types.NullType()) for c in t.columns] for t in tables.schema.sorted_tables]
        return [sorted(map(repr, db.execute(sa.select(*columns)))) for columns in raw]


def varint(blob: bytes, at: int) -> tuple[int, int]:
    """SQLite's integers of one to nine bytes: the value, and where it ends."""
    value = 0
    for step in range(9):
        byte = blob[at + step]
        if step == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + step + 1
    raise AssertionError


def cell(blob: bytes, base: int, start: int, kind: int, size: int) -> tuple[int, int]:
    """From where to where a cell lies in its page, by the file format."""
    at = base + start + (4 if kind in (2, 5) else 0)
    payload, at = varint(blob, at)
    if kind == 5:
        return start, at - base
    if kind == 13:
        _, at = varint(blob, at)
    most = size - 35 if kind == 13 else (size - 12) * 64 // 255 - 23
    if payload > most:
        least = (size - 12) * 32 // 255 - 23
        local = least + (payload - least) % (size - 4)
        payload = (local if local <= most else least) + 4
    return start, max(at + payload - base, start + 4)


def schema_pages(blob: bytes, size: int) -> set[int]:
    """The pages that say which tables there are: the first, and those below it once one no longer holds them all."""
    if blob[100] != 5:
        return {0}
    cells = int.from_bytes(blob[103:105])
    pointers = [int.from_bytes(blob[at : at + 2]) for at in range(112, 112 + 2 * cells, 2)]
    below = [int.from_bytes(blob[at : at + 4]) for at in (108, *pointers)]
    return {0, *(number - 1 for number in below)}


def place(blob: bytes, at: int) -> str:
    """Which of the places outside a byte lies in, or where else."""
    for name, offsets in HEADER.items():
        if at in offsets:
            return name
    size = int.from_bytes(blob[16:18])
    page, within = divmod(at, size)
    head = page * size + (100 if page == 0 else 0)
    kind = blob[head]
    if kind not in (2, 5, 10, 13):  # the end of a long row
        rest = blob[at : (page + 1) * size]
        return "free space in a page" if not any(rest) else f"page {page}, no page of a tree"
    cells, content = int.from_bytes(blob[head + 3 : head + 5]), int.from_bytes(blob[head + 5 : head + 7])
    first = head % size + (12 if kind in (2, 5) else 8) + 2 * cells
    if first <= within < content:
        return "free space in a page"
    pointers = range(page * size + first - 2 * cells, page * size + first, 2)
    taken = [cell(blob, page * size, int.from_bytes(blob[p : p + 2]), kind, size) for p in pointers]
    if within >= content and not any(start <= within < end for start, end in taken):
        return "free space in a page"
    if page in schema_pages(blob, size) and within >= content:
        return "text of the schema, said the same"
    return f"page {page}, byte {within}, kind {kind}"


def flip_ledger(pristine: Path, room: Path, count: int, empty: int, seed: int) -> Counter[str]:
    """How many were found, and where those lie that were not: all rows are as they were, and the place is named.

    `count` bits that are used for something, and `empty` ones of free space.
    """
    path = copied(pristine, room / "w")
    blob = (path / "ledger.db").read_bytes()
    before = rows(path)
    seen: Counter[str] = Counter()
    shuffled = random.Random(seed).sample(range(8 * len(blob)), 8 * len(blob))
    free = {at for at in range(len(blob)) if place(blob, at) == "free space in a page"}
    used, unused = ([bit for bit in shuffled if (bit // 8 in free) == kind] for kind in (False, True))
    with opened(path) as space:
        for bit in [*used[:count], *unused[:empty]]:
            wrong = bytearray(blob)
            wrong[bit // 8] ^= 1 << bit % 8
            (path / "ledger.db").write_bytes(wrong)
            if found(space):
                seen["found"] += 1
                continue
            where = place(blob, bit // 8)
            assert where in OUTSIDE, (bit, where)
            assert rows(path) == before, (bit, where)
            seen[where] += 1
        (path / "ledger.db").write_bytes(blob)
        assert not found(space)
    return seen


def test_bits_of_the_ledger(pristine: Path, room: Path) -> None:
    seen = flip_ledger(pristine, room, 40, 4, seed=3)
    assert seen["found"] > 35


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_bits_of_the_ledger(pristine: Path, room: Path, seed: int) -> None:
    seen = flip_ledger(pristine, room, 1_800, 200, seed)
    print(f"\nledger: {seen.total()} single-bit changes: {dict(seen)}")  # noqa: T201
    assert seen.total() == 2_000


def check_keys(space: Workspace) -> None:
    """What `verify` reads of the key folder."""
    space.keys.load(space.ledger.get("epoch"))
    space.keys.tombstones()
    space.keys.log_key()
    assert log.standing(space).kind == "current"


def flip_keys(pristine: Path, room: Path, per_file: int) -> Counter[str]:
    path = copied(pristine, room / "w")
    seen: Counter[str] = Counter()
    with opened(path) as space:
        check_keys(space)
        for file in sorted((path / "keys").iterdir()):
            blob = file.read_bytes()
            whole = range(8 * len(blob))
            for bit in whole if per_file >= len(whole) else random.Random(7).sample(whole, per_file):
                wrong = bytearray(blob)
                wrong[bit // 8] ^= 1 << bit % 8
                file.write_bytes(wrong)
                with pytest.raises((FedForgetError, AssertionError)):
                    check_keys(space)
                seen[file.name] += 1
            file.write_bytes(blob)
        check_keys(space)
    return seen


def test_bits_of_the_keys_and_of_what_lies_beside_them(pristine: Path, room: Path) -> None:
    assert set(flip_keys(pristine, room, 25)) == {"epoch-1.key", "log.key", "log.note", "tombstones.json"}


@pytest.mark.slow
def test_every_bit_of_the_keys_and_of_what_lies_beside_them(pristine: Path, room: Path) -> None:
    seen = flip_keys(pristine, room, 1 << 30)
    print(f"\nkeys: {seen.total()} single-bit changes, each found: {dict(seen)}")  # noqa: T201


def test_a_tombstone_altered_is_damage_and_those_of_an_older_version_are_read(pristine: Path, room: Path) -> None:
    import json

    path = copied(pristine, room / "w")
    file = path / "keys" / "tombstones.json"
    with opened(path) as space:
        stones = space.keys.tombstones()
    assert len(stones) == 1
    file.write_text(json.dumps(sorted(stones)))
    with opened(path) as space:
        assert space.keys.tombstones() == stones
        told: Workspace = space
        told.keys.bury("small", [client(3)])
        assert stones < told.keys.tombstones()
    assert "check" in json.loads(file.read_text())
