"""From a Repository and its Secret to a mirror of it on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UnsetType

from trimtab.model.redacted import Redacted
from trimtab.runtime.credentials import Credentials, SecretRef
from trimtab.runtime.git.access import Access, Remote
from trimtab.systems.gitops.kinds import Repository

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror
    from trimtab.storage.scratch import Scratch

SCRATCH = 10 << 30


class Mirrors:
    """The mirrors of this process, one a Repository. What is fetched is scratch: losing it costs a fetch.

    A mirror is used by one at a time, so whoever only asks has a `place` of its own: a slow answer then delays no sync."""

    def __init__(self, scratch: Scratch, credentials: Credentials, place: str = "git") -> None:
        self._scratch, self._credentials, self._place = scratch, credentials, place
        self._made: dict[str, Mirror] = {}

    @asynccontextmanager
    async def open(self, repository: Repository) -> AsyncIterator[Mirror]:
        """CredentialError when its Secret is not there; BadAddress when its endpoint is not allowed."""
        from trimtab.runtime.git.mirror import Mirror

        remote = await self.remote(repository)
        key = str(repository.metadata.uid)
        folder = self._scratch.dir(self._place, SCRATCH)
        async with folder.fill(key, _made) as path:
            mirror = self._made.get(key)
            if mirror is None or mirror.remote != remote or mirror.folder != path:
                mirror = self._made[key] = Mirror(path, remote)
            yield mirror

    async def remote(self, repository: Repository) -> Remote:
        """Where it is, and who we are there."""
        values: Mapping[str, Redacted] = {}
        if not isinstance(repository.spec.secret_ref, UnsetType):
            ref = SecretRef(repository.spec.secret_ref.name, repository.namespace)
            values = await self._credentials.resolve_all(ref)
        return Remote(url=repository.spec.endpoint, access=access_of(values, insecure=repository.spec.insecure))

    def forget(self, uid: str) -> None:
        self._made.pop(uid, None)


def access_of(values: Mapping[str, Redacted], *, insecure: bool = False) -> Access:
    """Of the keys of a Secret; those that it does not have are not used."""
    return Access(
        username=_text(values, "username"),
        password=values.get("password"),
        token=_stripped(values.get("token")),
        key=values.get("identity"),
        passphrase=_stripped(values.get("passphrase")),
        known_hosts=_text(values, "known_hosts"),
        ca=_text(values, "ca.crt"),
        insecure=insecure,
    )


def _text(values: Mapping[str, Redacted], key: str) -> str:
    found = values.get(key)
    return found.reveal_bytes().decode("utf-8", "replace").strip() if found is not None else ""


def _stripped(value: Redacted | None) -> Redacted | None:
    return Redacted(value.reveal_bytes().strip()) if value is not None else None


async def _made(path: Path) -> None:
    await asyncio.to_thread(path.mkdir, mode=0o700)
