"""Whose commits are trusted, and what ours are signed with: keys from Secrets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from trimtab.runtime.credentials import Credentials, KeyMissing, Malformed, SecretRef
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.run.asking import destination_of

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror
    from trimtab.runtime.git.objects import Signer


class Untrusted(Exception):  # noqa: N818 - it reads as what it is
    """A commit that nobody signed whom the GitSync trusts."""


async def check_signature(mirror: Mirror, commit: str, sync: GitSync, credentials: Credentials) -> None:
    """Nothing when the commit is trusted, or is our own. Untrusted; CredentialError."""
    verify = sync.spec.verify
    if isinstance(verify, UnsetType) or _is_ours(commit, sync):
        return
    from trimtab.runtime.git import signatures

    chosen = verify.ssh or verify.pgp
    if not chosen:
        raise Untrusted("spec.verify: names no Secret; give ssh or pgp")
    values = await credentials.resolve_all(SecretRef(chosen.name, sync.namespace))
    text = "\n".join(value.reveal_bytes().decode("utf-8", "replace") for _, value in sorted(values.items()))
    trusted = signatures.Trusted(ssh=text) if verify.ssh else signatures.Trusted(pgp=text)
    try:
        await signatures.verify(await mirror.about(commit), trusted)
    except signatures.Untrusted as error:
        raise Untrusted(str(error)) from None
    except ValueError as error:
        raise Untrusted(f"spec.verify: the keys in the Secret {chosen.name} cannot be read: {error}") from None


def _is_ours(commit: str, sync: GitSync) -> bool:
    """Made upon one that was trusted. What a destination has beside ours, nobody looked at."""
    pushed = sync.status.last_pushed_revision if sync.status else ""
    return pushed == commit and not destination_of(sync)


class NamedSigner(msgspec.Struct, frozen=True):
    """Signs with the key of a Secret, and names that when the key is no good: Malformed."""

    signer: Signer
    ref: SecretRef

    def sign(self, payload: bytes) -> str:
        try:
            return self.signer.sign(payload)
        except ValueError as error:
            raise Malformed(self.ref, f"cannot sign: {error}") from None


async def check_signer(sync: GitSync, credentials: Credentials) -> None:
    """Nothing when our commits could be signed as the GitSync asks. CredentialError."""
    signer = await signer_of(sync, credentials)
    if signer is not None:
        await asyncio.to_thread(signer.sign, b"nothing")


async def signer_of(sync: GitSync, credentials: Credentials) -> Signer | None:
    """What signs our commits; None when they are not signed. CredentialError."""
    sign = sync.spec.sign
    if isinstance(sign, UnsetType):
        return None
    from trimtab.runtime.git import signatures

    ref = SecretRef(sign.secret_ref.name, sync.namespace, "identity")
    values = await credentials.resolve_all(ref)
    if "identity" not in values:
        raise KeyMissing(ref, "identity", values)
    key, passphrase = values["identity"], values.get("passphrase")
    if b"PGP PRIVATE KEY" in key.reveal_bytes():
        return NamedSigner(signatures.PgpSigner(key=key, passphrase=passphrase), ref)
    return NamedSigner(signatures.SshSigner(key=key, passphrase=passphrase), ref)
