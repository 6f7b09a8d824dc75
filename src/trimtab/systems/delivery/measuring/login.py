"""How one logs in to a Prometheus: what a Secret says of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trimtab.model.redacted import Redacted, bearer
from trimtab.runtime.credentials import types
from trimtab.runtime.credentials.types import CredentialError, SecretRef
from trimtab.runtime.outbound.tls import Tls


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """`secrets` are what must never be shown, should a server repeat them."""

    authorization: Redacted | None = None
    tls: Tls = Tls()
    secrets: tuple[Redacted, ...] = ()


def login_of(values: Mapping[str, Redacted], ref: SecretRef) -> Login:
    """A token; or user and password; and whom to trust. CredentialError when there is nothing of use."""
    ca = values.get("ca.crt")
    tls = Tls(ca=ca.reveal_bytes() if ca is not None else b"")
    if "token" in values:
        token = Redacted(values["token"].reveal_bytes().strip())
        return Login(authorization=bearer(token), tls=tls, secrets=(token,))
    if "username" in values or "password" in values:
        pair = types.basic_auth(values, ref)
        header = pair.authorization
        encoded = Redacted(header.reveal_bytes().removeprefix(b"Basic "))
        return Login(authorization=header, tls=tls, secrets=(pair.password, encoded))
    if ca is None:
        raise CredentialError(ref, "has neither token nor username and password nor ca.crt")
    return Login(tls=tls)
