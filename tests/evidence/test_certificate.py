"""Certificates: what holds is accepted, nothing else is, and the standalone verifier says the same of everything."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from certificates import KEY, OTHER, PREDICATE, TIME, H, bits, flipped, forged, made, ours, theirs

from fedforget.canonical import canonical
from fedforget.errors import VerificationFailed
from fedforget.evidence import certificate, dsse, merkle, standalone
from fedforget.evidence.note import Checkpoint
from fedforget.evidence.schema import unfit

BLOB = made()
VERIFIER = Path(standalone.__file__)


@pytest.mark.parametrize(("index", "size"), [(0, 1), (0, 2), (1, 2), (5, 11), (10, 11), (7, 8)])
def test_a_certificate_that_holds_is_accepted_wherever_it_stands_in_the_log(index: int, size: int) -> None:
    blob = made(index=index, size=size)
    assert ours(blob)
    assert theirs(blob)
    found = certificate.read(blob, KEY.public)
    assert found.checkpoint.size == size
    assert certificate.account_of(found.statement) == certificate.account({"0": H, "1": H}, PREDICATE)


def test_every_single_bit_counts() -> None:
    """There is no bit outside what is checked: one spelling, one signature, one key."""
    for bit in bits(BLOB, 1500, seed=1):
        wrong = flipped(BLOB, bit)
        assert not ours(wrong), bit
        assert not theirs(wrong), bit


def test_every_bit_of_the_public_key_counts() -> None:
    for bit in range(256):
        raw = flipped(KEY.public.raw, bit)
        assert not ours(BLOB, type(KEY.public)(raw))
        assert not theirs(BLOB, type(KEY.public)(raw))


def test_statements_altered_and_signed_again_are_refused_by_both() -> None:
    refused = 0
    for blob, expected in forged(BLOB):
        verdict = ours(blob)
        assert theirs(blob) == verdict
        assert expected is None or verdict == expected
        refused += not verdict
    assert refused > 500


@pytest.mark.parametrize("told", [{"statement": H}, {"request": 4}, {"state": "final"}, {"more": 1}])
def test_an_event_about_something_else_is_refused(told: dict[str, Any]) -> None:
    assert not ours(made(**told))
    assert not theirs(made(**told))


def test_another_key_or_a_place_outside_the_log_is_refused() -> None:
    assert not ours(made(key=OTHER))
    assert not theirs(made(key=OTHER))
    statement = json.loads(dsse.unwrap(BLOB, KEY.public))
    statement["predicate"]["log"]["checkpoint"] = Checkpoint("fedforget/clinics", 3, bytes(32), TIME).signed(KEY)
    blob = dsse.wrap(canonical(statement), KEY)
    assert not ours(blob)
    assert not theirs(blob)


@pytest.mark.parametrize(
    "envelope",
    [
        {"payloadType": "text/plain"},
        {"signatures": []},
        {"signatures": [{"keyid": KEY.public.id, "sig": "AA=="}] * 2},
        {"signatures": [{"keyid": KEY.public.id, "sig": "AA==", "more": 1}]},
        {"signatures": "none"},
        {"payload": "A==="},
        {"payload": 7},
        {"payload": "AB=="},
        {"more": 1},
    ],
)
def test_an_envelope_of_another_make_is_refused(envelope: dict[str, Any]) -> None:
    blob = canonical({**json.loads(BLOB), **envelope}) + b"\n"
    assert not ours(blob)
    assert not theirs(blob)


@pytest.mark.parametrize("blob", [b"", b"\n", b"{}\n", b"[]\n", b"null\n", BLOB[:-1], BLOB + b"\n", BLOB[1:]])
def test_what_is_no_envelope_is_refused(blob: bytes) -> None:
    assert not ours(blob)
    assert not theirs(blob)


def test_the_schema_that_is_shipped_is_the_standalone_verifiers() -> None:
    def spelled(shape: Any) -> dict[str, Any]:
        if isinstance(shape, tuple):
            inner = spelled(shape[0])
            return {**inner, "type": [inner["type"], "null"]}
        if isinstance(shape, dict):
            inner = {name: spelled(value) for name, value in shape.items()}
            return {"type": "object", "additionalProperties": False, "required": sorted(shape), "properties": inner}
        if isinstance(shape, list):
            return {"type": "array", "items": spelled(shape[0])}
        if isinstance(shape, str):
            return {"type": "string", "pattern": f"^({shape})$"}
        return {"type": "boolean"} if shape is bool else {"type": "integer", "minimum": 0, "maximum": (1 << 53) - 1}

    shipped = {name: value for name, value in certificate.SCHEMA.items() if name not in ("$schema", "$id", "title")}
    assert shipped == spelled(standalone.SHAPE)
    assert certificate.SCHEMA["$id"] == certificate.PREDICATE_TYPE


def test_what_does_not_fit_is_named() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}}}
    assert unfit({"a": 1}, schema) == ""
    assert unfit({"a": 10}, schema) == "statement.a is out of range"
    assert unfit({"a": 1.5}, schema) == "statement.a is float, not integer"
    assert unfit({"b": 1}, schema) == "statement lacks or adds a, b"


# --- the log of later ---------------------------------------------------------------------------------------


def later(first: int, second: int) -> dict[str, Any]:
    """A checkpoint of a longer log that begins with the certificate's, and one that does not."""
    statement = json.loads(dsse.unwrap(BLOB, KEY.public))
    leaf = certificate.opened_hash(statement["predicate"]["log"]["event"])
    leaves = [leaf if at == 5 else merkle.leaf_hash(bytes([at])) for at in range(second)]
    nodes: dict[tuple[int, int], bytes] = {}
    for at, one in enumerate(leaves):
        for level, place, found in merkle.grown(at, one, lambda level, place: nodes[level, place]):
            nodes[level, place] = found
    proof = merkle.consistency_proof(first, second, lambda level, place: nodes[level, place])
    note = Checkpoint("fedforget/clinics", second, merkle.root_of(leaves), TIME).signed(KEY)
    return {"checkpoint": note, "proof": [part.hex() for part in proof]}


@pytest.mark.parametrize("second", [11, 12, 16, 29])
def test_a_later_log_that_goes_on_is_accepted_and_any_other_refused(second: int) -> None:
    found, told = certificate.read(BLOB, KEY.public), later(11, second)
    assert certificate.check_later(found, told, KEY.public).size == second
    assert standalone.verify(BLOB, KEY.public.raw, told)
    elsewhere = Checkpoint("fedforget/other", second, bytes(32), TIME).signed(KEY)
    rewritten = Checkpoint("fedforget/clinics", second, bytes(32), TIME).signed(KEY)
    shorter = Checkpoint("fedforget/clinics", 4, bytes(32), TIME).signed(KEY)
    for note in (elsewhere, rewritten, shorter, told["checkpoint"] + " "):
        wrong = {**told, "checkpoint": note}
        with pytest.raises(VerificationFailed):
            certificate.check_later(found, wrong, KEY.public)
        with pytest.raises(standalone.Refused):
            standalone.verify(BLOB, KEY.public.raw, wrong)
    for wrong in ({**told, "proof": [*told["proof"], H]}, {**told, "proof": []} if second > 11 else {}):
        with pytest.raises(VerificationFailed):
            certificate.check_later(found, wrong, KEY.public)
        with pytest.raises((standalone.Refused, KeyError)):
            standalone.verify(BLOB, KEY.public.raw, wrong)


# --- as a program -------------------------------------------------------------------------------------------


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", str(VERIFIER), *words], capture_output=True, text=True, check=False)


def test_the_standalone_verifier_is_short_and_imports_nothing_of_ours() -> None:
    lines = VERIFIER.read_text().splitlines()
    assert len(lines) < 250
    imported = {line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert imported - set(sys.stdlib_module_names) == {"cryptography"}


def test_the_standalone_verifier_says_its_verdict_and_exits_by_it(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    file.write_bytes(BLOB)
    done = run(str(file), "--key", str(KEY.public))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "verified: request 3 is executed, class X2")
    (tmp_path / "later.json").write_text(json.dumps(later(11, 16)))
    (tmp_path / "key").write_text(f"{KEY.public}\n")
    assert run(str(file), "--key", str(tmp_path / "key"), "--later", str(tmp_path / "later.json")).returncode == 0
    done = run(str(file), "--key", str(OTHER.public))
    assert done.returncode == 12
    assert "REFUSED" in done.stdout


# --- the long run -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("index", "size"), [(5, 11), (0, 1), (70, 200), (6, 8)])
def test_every_bit_of_a_certificate(index: int, size: int) -> None:
    """docs/threat-model.md has the figure."""
    blob = made(index=index, size=size)
    for bit in range(8 * len(blob)):
        wrong = flipped(blob, bit)
        assert not ours(wrong), bit
        assert not theirs(wrong), bit
    print(f"\n{8 * len(blob)} single-bit changes, each refused by both")  # noqa: T201
