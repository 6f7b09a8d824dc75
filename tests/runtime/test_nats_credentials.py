"""Credentials files against a real NATS server that trusts an operator: made here as `nsc` would make them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from trimtab.runtime.queue import QueueUnavailable
from trimtab.runtime.queue.nats import NatsQueue
from trimtab.runtime.queue.nats_credentials import NatsCredentials, NatsCredentialsError
from trimtab.testing.nats import NatsServer

OPERATOR, ACCOUNT, USER = 14 << 3, 0, 20 << 3


class Key:
    """A key of NATS: its seed and its public half, in their base32 form."""

    def __init__(self, kind: int) -> None:
        self._private = Ed25519PrivateKey.generate()
        raw = self._private.private_bytes_raw()
        self.seed = _base32(bytes([(18 << 3) | (kind >> 5), (kind & 31) << 3]) + raw)
        self.public = _base32(bytes([kind]) + self._private.public_key().public_bytes_raw())

    def token(self, subject: Key, claims: dict[str, Any], name: str) -> str:
        """A JWT about the subject, signed by this key."""
        body: dict[str, Any] = {"iat": 1, "iss": self.public, "name": name, "sub": subject.public, "nats": claims}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        signed = f"{_base64(json.dumps(head).encode())}.{_base64(json.dumps(body).encode())}"
        return f"{signed}.{_base64(self._private.sign(signed.encode()))}"


def _base32(raw: bytes) -> str:
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def credentials(folder: Path, token: str, seed: str) -> Path:
    file = folder / "user.creds"
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"*** keep it secret ***\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    return file


def server_that_trusts(folder: Path, operator: Key, account: Key) -> NatsServer:
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1}
    stored = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    system = Key(ACCOUNT)
    tokens = {
        account.public: operator.token(
            account, {"type": "account", "version": 2, "limits": {**limits, **stored}}, "work"
        ),
        system.public: operator.token(system, {"type": "account", "version": 2, "limits": limits}, "SYS"),
    }
    trusted = operator.token(operator, {"type": "operator", "version": 2, "system_account": system.public}, "op")
    preload = "\n".join(f"{key}: {token}" for key, token in tokens.items())
    config = folder / "nats.conf"
    config.write_text(f"operator: {trusted}\nresolver: MEMORY\nresolver_preload: {{\n{preload}\n}}\n")
    return NatsServer(folder, flags=["--config", str(config)])


async def test_a_credentials_file_gets_in_and_another_key_does_not(tmp_path: Path) -> None:
    operator, account, user = Key(OPERATOR), Key(ACCOUNT), Key(USER)
    token = account.token(user, {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}, "me")
    with server_that_trusts(tmp_path, operator, account) as server:
        queue = NatsQueue(server.url, credentials_file=credentials(tmp_path, token, user.seed))
        assert await queue.publish("s", b"in")
        assert user.seed not in repr(queue)
        await queue.close()
        other = NatsQueue(server.url, credentials_file=credentials(tmp_path, token, Key(USER).seed))
        with pytest.raises(QueueUnavailable, match="Authorization") as caught:
            await other.ready()
        assert token not in str(caught.value)


@pytest.mark.parametrize("content", ["", "not a file of credentials", "\xff"])
def test_a_file_that_has_no_credentials_is_said(tmp_path: Path, content: str) -> None:
    file = tmp_path / "user.creds"
    file.write_text(content, encoding="latin-1")
    with pytest.raises(NatsCredentialsError, match=r"user\.creds"):
        NatsCredentials(file).check()


@pytest.mark.parametrize(
    "damage", [lambda seed: seed[:-1], lambda seed: f"{seed[:9]}{'A' if seed[9] != 'A' else 'B'}{seed[10:]}"]
)
def test_a_damaged_seed_is_said_and_not_shown(tmp_path: Path, damage: Any) -> None:
    seed = damage(Key(USER).seed)
    with pytest.raises(NatsCredentialsError, match="seed in") as caught:
        NatsCredentials(credentials(tmp_path, "a.b.c", seed)).check()
    assert seed not in str(caught.value)
