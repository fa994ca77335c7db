"""Checkpoints as signed notes, readable by others' tools."""

import base64
from dataclasses import replace

import pytest

from fedforget.errors import VerificationFailed
from fedforget.evidence.note import Checkpoint, key_hash, origin_of, read_note
from fedforget.signing import PublicKey, SecretKey

KEY = SecretKey(bytes(range(32)))
POINT = Checkpoint("fedforget/f", 7, bytes(32), "2026-01-02T12:00:00+00:00", "ab" * 32)


@pytest.mark.parametrize("point", [POINT, replace(POINT, tables="")])
def test_what_is_signed_is_read_back(point: Checkpoint) -> None:
    assert read_note(point.signed(KEY), KEY.public) == point


def test_the_example_of_the_go_implementation_of_signed_notes() -> None:
    """From the documentation of golang.org/x/mod/sumdb/note: its key, its text, its signature, its key hash."""
    name, raw = "PeterNeumann", base64.b64decode("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    signed = base64.b64decode(
        "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    )
    key = PublicKey(raw[1:])
    assert signed[:4] == key_hash(name, key) == bytes.fromhex("c74f20a3")
    assert key.signed(signed[4:], text.encode())


def test_any_bit_changed_is_refused() -> None:
    blob = POINT.signed(KEY).encode()
    for at in range(8 * len(blob)):
        wrong = bytearray(blob)
        wrong[at // 8] ^= 1 << at % 8
        with pytest.raises(VerificationFailed):
            read_note(wrong.decode(errors="replace"), KEY.public)


def test_another_key_or_another_name_is_refused() -> None:
    with pytest.raises(VerificationFailed, match="not signed by"):
        read_note(POINT.signed(KEY), SecretKey(bytes(32)).public)
    with pytest.raises(VerificationFailed):
        read_note(POINT.signed(KEY).replace("— fedforget/f", "— fedforget/g"), KEY.public)


def test_a_log_has_a_name_that_fits_a_line_and_a_branch_has_another() -> None:
    assert origin_of("clinic 7+") == "fedforget/clinic_7_"
    assert origin_of("f", "0a1b") == "fedforget/f/0a1b"
