"""The key of an installation, with which digests of secrets are made: in a Secret of the system's own namespace, made once.

When it is lost, every write-only field looks changed once, and is written once more."""

from __future__ import annotations

import base64
import secrets
from typing import Any

import msgspec

from trimtab.client.protocol import Client
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import uncached
from trimtab.runtime.system import NAMESPACE

NAME, KEY = "rest-key", "hmac"
BYTES = 32


async def installation_key(client: Client) -> bytes:
    """Read, or made where there is none. Two that make it at once end with the same one."""
    direct = uncached(client)
    try:
        return _read(await direct.get(Secret, NAME, NAMESPACE))
    except StatusError as error:
        if error.code != 404:
            raise
    made = base64.b64encode(secrets.token_bytes(BYTES)).decode()
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/part-of": "trimtab"}}
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {KEY: made}}
    try:
        await direct.create(Untyped(document))
    except StatusError as error:
        if error.code != 409:
            raise
    return _read(await direct.get(Secret, NAME, NAMESPACE))


def _read(secret: Secret) -> bytes:
    raw: Any = secret.raw or {}
    raw = msgspec.json.decode(raw) if isinstance(raw, bytes) else raw
    found = base64.b64decode((raw.get("data") or {}).get(KEY, ""))
    if len(found) < BYTES:
        raise ValueError(
            f"Secret {NAMESPACE}/{NAME} has no key {KEY!r} of {BYTES} bytes: delete it, and it is made anew"
        )
    return found
