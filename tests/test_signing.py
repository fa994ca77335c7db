"""Ed25519 as text: what is signed stays signed, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedforget.errors import SettingError
from fedforget.signing import PublicKey, SecretKey

# RFC 8032, section 7.1, tests 1 and 3.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("secret", "public", "message", "signature"), VECTORS)
def test_the_vectors_of_the_standard(secret: str, public: str, message: str, signature: str) -> None:
    key = SecretKey(bytes.fromhex(secret))
    assert str(key.public) == f"ed25519:{public}"
    assert key.sign(bytes.fromhex(message)).hex() == signature
    assert key.public.signed(bytes.fromhex(signature), bytes.fromhex(message))


def test_keys_come_back_from_their_text() -> None:
    key = SecretKey.make()
    assert SecretKey.parse(key.to_text()) == key
    assert PublicKey.parse(str(key.public)) == key.public
    assert key.public.id == SecretKey.parse(key.to_text()).public.id
    assert len(key.public.id) == 16


def test_a_secret_is_never_shown() -> None:
    key = SecretKey.make()
    assert key.raw.hex() not in repr(key) + str(key)


@given(st.binary(max_size=64), st.integers(0, 511))
def test_one_changed_bit_of_a_signature_is_seen(message: bytes, bit: int) -> None:
    key = SecretKey(bytes(32))
    signature = bytearray(key.sign(message))
    signature[bit // 8] ^= 1 << bit % 8
    assert not key.public.signed(bytes(signature), message)


@pytest.mark.parametrize("text", ["", "ed25519:", "ed25519:" + "g" * 64, "rsa:" + "0" * 64, "ed25519:" + "0" * 63])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(SettingError):
        PublicKey.parse(text)
    with pytest.raises(SettingError):
        SecretKey.parse(text.replace("ed25519:", "ed25519-secret:"))


def test_a_signature_of_the_wrong_length_is_none() -> None:
    assert not SecretKey.make().public.signed(b"short", b"")
