"""Certificates: an authority and a server's certificate for this machine alone, and a key pair a node.

They are for trying out: the authority's key is thrown away as soon as it has signed, so nobody can sign with it later.
"""

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 365
_PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class Certificates:
    """Where they lie."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def server(self) -> Path:
        return self.folder / "server.crt"

    @property
    def server_key(self) -> Path:
        return self.folder / "server.key"

    def exist(self) -> bool:
        return all(path.is_file() for path in (self.authority, self.server, self.server_key))


def make_certificates(folder: Path, now: datetime.datetime) -> Certificates:
    """An authority that signed one certificate, for the loopback addresses."""
    found = Certificates(folder)
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, server_key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    issuer, subject = _name("FedForget local authority"), _name("localhost")
    authority = (
        _builder(subject=issuer, issuer=issuer, key=authority_key.public_key(), now=now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA384())
    )
    here = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")),
        x509.IPAddress(ipaddress.IPv6Address("::1")),
    ]
    server = (
        _builder(subject=subject, issuer=issuer, key=server_key.public_key(), now=now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(here), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(server_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA384())
    )
    _secret(found.server_key, _private(server_key, serialization.PrivateFormat.PKCS8))
    found.server.write_bytes(server.public_bytes(_PEM))
    found.authority.write_bytes(authority.public_bytes(_PEM))
    return found


def make_node_key(path: Path) -> Path:
    """A node's EC key as Flower wants it, OpenSSH's format, the public half beside it; returns the public half."""
    key = ec.generate_private_key(ec.SECP384R1())
    public = path.with_name(path.name + ".pub")
    _secret(path, _private(key, serialization.PrivateFormat.OpenSSH))
    encoding, shape = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    public.write_bytes(key.public_key().public_bytes(encoding, shape) + b"\n")
    return public


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    *, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    # An hour back: clocks of two processes may differ.
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _private(key: ec.EllipticCurvePrivateKey, shape: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(_PEM, shape, serialization.NoEncryption())


def _secret(path: Path, content: bytes) -> None:
    """Readable by its owner from the moment it exists."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
