"""The seal: what is bound to a record, and what of it outlives its key."""

import itertools
import os
import zlib
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.errors import KeyDestroyed, SealBroken, SettingError
from fedforget.manifest import Cipher, Label, Record
from fedforget.sealing import TAG, Vault, faster_cipher, new_vault, passphrase_key, seal, unseal
from fedforget.workspace.keys import KeyFolder

CIPHERS: tuple[Cipher, ...] = ("aes-256-gcm", "chacha20-poly1305")
LABEL = Label("hospitals", 1, 2, 3, 4, "upload", "client-05", "rs8/20/10/0")
VAULT = Vault(3, bytes(range(32)))
OTHERS = {
    "federation": ["hospital", "banks", ""],
    "stage": [0, 2],
    "shard": [0, 3, -1],
    "round": [2, 4],
    "generation": [3, 5],
    "kind": ["start", "model", "gram", "head"],
    "client": ["client-06", "client-5", ""],
    "code": ["rs8/20/11/0", "rs16/20/10/0", "rs8/1/1/0"],
    "compressed": [True],
}
relabelled = st.sampled_from([(name, value) for name, values in OTHERS.items() for value in values])
ciphers = st.sampled_from(CIPHERS)


def test_every_field_of_a_label_is_tried():
    assert set(OTHERS) == {f.name for f in fields(Label)}


@given(ciphers, st.binary(max_size=200), st.booleans())
def test_what_is_sealed_opens(cipher: Cipher, record: bytes, compressed: bool):
    label = replace(LABEL, compressed=compressed)
    sealed = seal(VAULT, cipher, label, record)
    assert unseal(VAULT, cipher, label, sealed.body, sealed.wrapped) == record
    assert compressed or len(sealed.body) == len(record) + TAG


@given(ciphers, st.binary(max_size=50), relabelled)
def test_with_any_one_field_changed_it_does_not_open(cipher: Cipher, record: bytes, change: tuple[str, object]):
    sealed = seal(VAULT, cipher, LABEL, record)
    moved = replace(LABEL, **dict([change]))
    with pytest.raises(SealBroken):
        unseal(VAULT, cipher, moved, sealed.body, sealed.wrapped)
    # Not even for somebody who knows the key and wraps it for the other place.
    with pytest.raises(SealBroken):
        unseal(VAULT, cipher, moved, sealed.body, VAULT.wrap(VAULT.unwrap(sealed.wrapped, LABEL), moved))


@given(st.data())
def test_different_labels_are_bound_as_different_bytes(data: st.DataObject):
    text = st.text(max_size=6)
    number = st.integers(-1, 12)
    labels = st.builds(
        Label, text, number, number, number, number, st.sampled_from(OTHERS["kind"]), text, text, st.booleans()
    )
    one, two = data.draw(labels), data.draw(labels)
    assert (one == two) == (one.bound == two.bound)


@given(ciphers, st.binary(min_size=1, max_size=60), st.data())
def test_a_changed_body_does_not_open(cipher: Cipher, record: bytes, data: st.DataObject):
    sealed = seal(VAULT, cipher, LABEL, record)
    at = data.draw(st.integers(0, len(sealed.body) - 1))
    wrong = bytearray(sealed.body)
    wrong[at] ^= data.draw(st.integers(1, 255))
    for body in (bytes(wrong), sealed.body[:at], sealed.body + b"\0", b""):
        with pytest.raises(SealBroken):
            unseal(VAULT, cipher, LABEL, body, sealed.wrapped)


@given(st.data())
def test_a_changed_or_shortened_wrapped_key_does_not_open(data: st.DataObject):
    sealed = seal(VAULT, "aes-256-gcm", LABEL, b"record")
    at = data.draw(st.integers(0, len(sealed.wrapped) - 1))
    wrong = bytearray(sealed.wrapped)
    wrong[at] ^= data.draw(st.integers(1, 255))
    for wrapped in (bytes(wrong), sealed.wrapped[:at], sealed.wrapped + b"\0"):
        with pytest.raises(SealBroken):
            VAULT.unwrap(wrapped, LABEL)


def test_the_wrapped_key_of_another_record_is_refused():
    one, two = (seal(VAULT, "aes-256-gcm", replace(LABEL, round=r), b"record") for r in (1, 2))
    with pytest.raises(SealBroken):
        unseal(VAULT, "aes-256-gcm", one.label, one.body, two.wrapped)
    # Nor does its key open the other body, even wrapped anew for it.
    stolen = VAULT.wrap(VAULT.unwrap(two.wrapped, two.label), one.label)
    with pytest.raises(SealBroken):
        unseal(VAULT, "aes-256-gcm", one.label, one.body, stolen)


@pytest.mark.parametrize("other", [Vault(2, VAULT.key), Vault(4, VAULT.key), Vault(3, bytes(32)), VAULT.next()])
def test_the_wrapped_key_of_another_epoch_is_refused(other: Vault):
    sealed = seal(VAULT, "aes-256-gcm", LABEL, b"record")
    with pytest.raises(SealBroken, match="epoch"):
        unseal(other, "aes-256-gcm", LABEL, sealed.body, sealed.wrapped)


def test_under_another_cipher_it_does_not_open():
    for cipher, other in itertools.permutations(CIPHERS):
        sealed = seal(VAULT, cipher, LABEL, b"record")
        with pytest.raises(SealBroken):
            unseal(VAULT, other, LABEL, sealed.body, sealed.wrapped)


def test_a_destroyed_key_is_told_from_a_broken_seal():
    sealed = seal(VAULT, "aes-256-gcm", LABEL, b"record")
    with pytest.raises(KeyDestroyed, match="destroyed") as caught:
        unseal(VAULT, "aes-256-gcm", LABEL, sealed.body, None)
    assert isinstance(caught.value, SealBroken)
    assert caught.value.record == "upload of client-05 in stage 1, shard 2, round 3"


def test_a_key_wrapped_again_opens_under_the_next_epoch_only():
    sealed, later = seal(VAULT, "aes-256-gcm", LABEL, b"record"), VAULT.next()
    again = later.wrap(VAULT.unwrap(sealed.wrapped, LABEL), LABEL)
    assert later.epoch == VAULT.epoch + 1
    assert later.key != VAULT.key
    assert unseal(later, "aes-256-gcm", LABEL, sealed.body, again) == b"record"
    with pytest.raises(SealBroken):
        VAULT.unwrap(again, LABEL)


def test_the_same_record_sealed_twice_is_different_in_every_part():
    one, two = (seal(VAULT, "aes-256-gcm", LABEL, b"record" * 10) for _ in range(2))
    assert one.body != two.body
    assert one.wrapped != two.wrapped
    assert one.digest != two.digest
    assert len({VAULT.wrap(bytes(32), LABEL) for _ in range(20)}) == 20


def test_compression_makes_a_compressible_record_shorter_and_brings_it_back_bit_for_bit():
    record = np.zeros(10_000, np.float32).tobytes()
    sealed = seal(VAULT, "aes-256-gcm", replace(LABEL, compressed=True), record)
    assert len(sealed.body) < len(record) / 50
    assert unseal(VAULT, "aes-256-gcm", sealed.label, sealed.body, sealed.wrapped) == record


@pytest.mark.parametrize("cipher", CIPHERS)
def test_a_sealed_record_cannot_be_compressed_and_holds_no_run_of_the_record(cipher: Cipher):
    record = bytes(range(256)) * 400
    body = seal(VAULT, cipher, LABEL, record).body
    assert len(zlib.compress(body, 9)) >= len(body)
    assert not any(record[at : at + 16] in body for at in range(256))


def test_keys_are_in_no_repr(tmp_path):
    vault = new_vault()
    assert vault.epoch == 0
    assert len(vault.key) == 32
    folder = KeyFolder(tmp_path, "a long enough passphrase")
    shown = "".join(map(repr, [vault, [vault], {"vault": vault}, str(vault), f"{vault}", folder, vault.next()]))
    for secret in (repr(vault.key), vault.key.hex(), str(list(vault.key)), "a long enough passphrase"):
        assert secret not in shown
    sealed = seal(vault, "aes-256-gcm", LABEL, b"record")
    record = Record(LABEL, 6, len(sealed.body), sealed.digest, sealed.wrapped)
    key = vault.unwrap(sealed.wrapped, LABEL)
    assert repr(key) not in repr((sealed, record))


def test_a_passphrase_makes_the_same_key_from_the_same_salt_and_another_from_any_other():
    salt = os.urandom(32)
    key = passphrase_key("correct horse battery", salt)
    assert len(key) == 32
    assert key == passphrase_key("correct horse battery", salt)
    assert key != passphrase_key("correct horse batterz", salt)
    assert key != passphrase_key("correct horse battery", bytes(32))


@pytest.mark.parametrize("passphrase", ["", "elevenchars"])
def test_a_short_passphrase_is_refused_and_not_repeated_in_the_message(passphrase: str):
    with pytest.raises(SettingError, match="12 characters") as caught:
        passphrase_key(passphrase, bytes(32))
    assert not passphrase or passphrase not in str(caught.value)


def test_the_faster_cipher_is_one_of_them():
    assert faster_cipher(1 << 12) in CIPHERS
