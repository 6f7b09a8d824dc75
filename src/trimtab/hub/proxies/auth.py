"""Asks, before anything is done, whether this user may. The server has asked for its own clients, so this proxy is not in
their chain; whoever uses accessors in this process is asked here."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    Hub,
    HubBatch,
    HubList,
    HubStatus,
    ListOptions,
    Options,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.proxies.passing import Passing, closing

May = Callable[[str, str, str, str, str], Awaitable[None] | None]
"""(verb, plural, project, name, user); raises when the user may not. Of all projects the project is "", as of all names."""

LINEAGE = "lineage"
"""The verb for seeing and writing where a resource was synced from."""


class Auth(Passing):
    """`user` is who asks; an apply that says its own user is asked for that one."""

    def __init__(self, inner: Any, may: May, *, plural: str, user: str = "") -> None:
        super().__init__(inner)
        self._may = may
        self._plural = plural
        self._user = user

    def as_user(self, user: str) -> Auth:
        """The same chain for another user."""
        return Auth(self.inner, self._may, plural=self._plural, user=user)

    async def get(self, name: str, options: GetOptions) -> Hub:
        await self._ask(("get",), options, name)
        return await super().get(name, options)

    async def list(self, options: ListOptions) -> HubList:
        await self._ask(("list",), options, options.name)
        return await super().list(options)

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        await self._ask(("watch",), options, options.name)
        async with closing(super().watch(options, since)) as batches:
            async for batch in batches:
                yield batch

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        verbs = {None: ("create", "update"), 0: ("create",)}.get(options.expect, ("update",))
        name = str((hub.get("metadata") or {}).get("name", ""))
        await self._ask(verbs, options, name, options.user)
        return await super().apply(hub, options)

    async def delete(self, name: str, options: DeleteOptions) -> None:
        await self._ask(("delete",), options, name)
        await super().delete(name, options)

    async def status(self, name: str, options: StatusOptions) -> HubStatus:
        await self._ask(("get",), options, name, part="/status")
        return await super().status(name, options)

    async def published(self, name: str, options: GetOptions) -> Any:
        await self._ask(("get",), options, name)
        return await super().published(name, options)

    async def _ask(self, verbs: tuple[str, ...], options: Options, name: str, user: str = "", part: str = "") -> None:
        if options.include_lineage:
            verbs = (*verbs, LINEAGE)
        for verb in verbs:
            answer = self._may(verb, self._plural + part, options.project, name, user or self._user)
            if inspect.isawaitable(answer):
                await answer
