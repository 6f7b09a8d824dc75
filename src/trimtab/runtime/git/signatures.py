"""Who signed a commit, by keys that were told beforehand; and signing our own.

A signature says that a key made this commit, and nothing of whether the author it names is who has that key: compare
`Verified.principal` where that matters.
"""

from __future__ import annotations

import asyncio

import msgspec

from trimtab.model.redacted import Redacted
from trimtab.runtime.git import allowed_signers, pgp, ssh_keys, ssh_signature
from trimtab.runtime.git.objects import CommitInfo
from trimtab.runtime.git.wire import BadForm


class Untrusted(Exception):  # noqa: N818 - what it is
    """The commit is not signed, or not by a key that is trusted. The message says which of these, and of which key."""


class Trusted(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that are accepted."""

    ssh: str = ""
    """Lines of allowed signers: 'ann@example.com ssh-ed25519 AAAA…'."""
    pgp: str = ""
    """Armoured public keys."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    """ssh or pgp."""
    principal: str
    """As the allowed signers, or the PGP key, name it."""
    fingerprint: str


async def verify(commit: CommitInfo, trusted: Trusted) -> Verified:
    """Untrusted unless one of the keys signed it. ValueError when the trusted keys cannot be read."""
    if commit.signature is None:
        raise Untrusted(f"commit {commit.id} is not signed; sign it (git commit -S) with a trusted key")
    if commit.signature.startswith(ssh_signature.BEGIN):
        return _ssh(commit, commit.signature, trusted.ssh)
    if commit.signature.startswith(pgp.BEGIN):
        return await asyncio.to_thread(_pgp, commit, commit.signature, trusted.pgp)
    raise Untrusted(f"commit {commit.id} is signed in a way that is not known; SSH and PGP signatures are")


def _ssh(commit: CommitInfo, armoured: str, text: str) -> Verified:
    allowed = allowed_signers.parse(text)
    try:
        signature = ssh_signature.parse(armoured)
        holds = ssh_signature.holds(signature, commit.signed)
    except BadForm as error:
        raise Untrusted(f"commit {commit.id}: its signature {error}") from None
    mark = ssh_keys.fingerprint(signature.key)
    if not holds:
        raise Untrusted(f"commit {commit.id}: its signature by {mark} does not belong to it")
    for each in allowed:
        if each.allows(signature.key, signature.namespace, commit.time):
            return Verified(kind="ssh", principal=each.principals[0], fingerprint=mark)
    raise Untrusted(f"commit {commit.id} is signed by {mark}, which is no allowed signer at {commit.time:%Y-%m-%d}")


def _pgp(commit: CommitInfo, armoured: str, keys: str) -> Verified:
    if not keys.strip():
        raise Untrusted(f"commit {commit.id} is signed by PGP, and no PGP keys are trusted")
    found = pgp.checked(armoured, commit.signed, keys)
    if not found.fingerprint:
        raise Untrusted(f"commit {commit.id}: its PGP signature is not accepted: {found.why}")
    return Verified(kind="pgp", principal=found.user, fingerprint=found.fingerprint)


class SshSigner(msgspec.Struct, frozen=True, kw_only=True):
    """A private key in OpenSSH or PEM form: ed25519, ecdsa or rsa."""

    key: Redacted
    passphrase: Redacted | None = None

    def sign(self, payload: bytes) -> str:
        return ssh_signature.signed(payload, self.key, self.passphrase)


class PgpSigner(msgspec.Struct, frozen=True, kw_only=True):
    """An armoured private key; needs the program `gpg`."""

    key: Redacted
    passphrase: Redacted | None = None

    def sign(self, payload: bytes) -> str:
        return pgp.signed(payload, self.key, self.passphrase)
