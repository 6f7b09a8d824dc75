"""A NATS credentials file: a JWT that says who we are, and the seed of the key that proves it.

The server sends a nonce, we sign it: the seed never leaves this machine. The file is read at each connection, so that a
mounted secret is renewed in place. The library would need PyNaCl for this; the key is plain Ed25519.

A seed is base32 of two bytes of kind, 32 bytes of key, and two of CRC-16 (XMODEM).
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_MAX_BYTES = 64 << 10
_BLOCK = r"-+BEGIN {0}-+\s+([A-Za-z0-9_.=-]+)\s+-+END {0}-+"


class NatsCredentialsError(Exception):
    """The file cannot be used; the message never has anything of its content."""


class NatsCredentials:
    """What a connection asks for: `jwt` and the signature of a nonce."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def jwt(self) -> bytes:
        return self._block("NATS USER JWT")

    def sign(self, nonce: str) -> bytes:
        return base64.b64encode(self._key().sign(nonce.encode()))

    def check(self) -> None:
        """NatsCredentialsError when the file has not both."""
        self.jwt()
        self._key()

    def _key(self) -> Ed25519PrivateKey:
        seed = self._block("USER NKEY SEED")
        try:
            raw = base64.b32decode(seed + b"=" * (-len(seed) % 8))
        except binascii.Error:
            raise NatsCredentialsError(f"the seed in {self._file} is no base32") from None
        if len(raw) != 36 or binascii.crc_hqx(raw[:-2], 0) != int.from_bytes(raw[-2:], "little"):
            raise NatsCredentialsError(f"the seed in {self._file} is damaged")
        return Ed25519PrivateKey.from_private_bytes(raw[2:-2])

    def _block(self, name: str) -> bytes:
        try:
            with self._file.open("rb") as file:
                text = file.read(_MAX_BYTES).decode("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise NatsCredentialsError(f"{self._file} cannot be read: {type(error).__name__}") from None
        found = re.search(_BLOCK.format(name), text)
        if found is None:
            raise NatsCredentialsError(f"{self._file} has no {name}: it must be a credentials file as `nsc` writes it")
        return found[1].encode()
