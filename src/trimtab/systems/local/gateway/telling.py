"""Tells Envoy a configuration, and waits until it says that it has it.

Flow: clusters with their endpoints, then routes, then listeners; what goes away goes last. So a route never names a cluster that
is not there yet, and a cluster goes only when no route names it any more. Each resource has a version made from its content;
it is in force when Envoy echoes it.

Guarantees: what `tell` reports as in force was echoed by the Envoy that runs now. Routes that Envoy refuses leave those in
force that it had.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from trimtab.systems.local.gateway.envoy.admin import Admin, Echo
from trimtab.systems.local.gateway.envoy.bootstrap import CLUSTERS, LISTENERS
from trimtab.systems.local.gateway.envoy.files import Files
from trimtab.systems.local.gateway.listeners import file_of
from trimtab.systems.local.gateway.translate import Config

Document = dict[str, Any]
Ask = Callable[[Iterable[str]], Awaitable[dict[str, Echo]]]

PATIENCE = 10.0
REJECTED = r"cluster_manager\.cds\.update_rejected"
SUSPECT = 0.03
"""Seconds without an echo before we ask whether it was refused."""


class NotEchoed(TimeoutError):  # noqa: N818 - it reads as what happened
    """Envoy neither took nor refused what it was told."""


class Outcome(msgspec.Struct, frozen=True):
    """Route configurations and clusters that Envoy refused, and listeners that it could not make, with its words."""

    refused: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    failed: dict[str, str] = {}


class Teller:
    """Remembers what the Envoy that runs now has echoed."""

    def __init__(self, files: Files, admin: Admin) -> None:
        self._files, self._admin = files, admin
        self._echoed: dict[str, str] = {}  # routes, by name
        self._refusals: dict[str, int] = {}
        self._clusters: dict[str, Document] = {}
        self._listeners: dict[str, Document] = {}
        self._failed: dict[str, str] = {}
        self._rejected = 0  # lists of clusters
        for file in (CLUSTERS, LISTENERS):
            if not files.version(file):
                files.put(file, ())
        self.forget()

    def forget(self) -> None:
        """Another Envoy runs: it has read the files, and nobody has asked it yet what it made of them."""
        self._echoed.clear()
        self._refusals.clear()
        self._clusters.clear()
        self._listeners.clear()
        self._failed.clear()

    async def tell(self, config: Config) -> Outcome:
        removed, clusters = await self._tell_clusters(config)
        versions = await self._write_routes(config)
        await self._tell_listeners(config)
        read = {name for name, readers in config.readers.items() if not self._listeners.keys().isdisjoint(readers)}
        refused = await self._await_routes({name: each for name, each in versions.items() if name in read})
        if removed:
            self._files.put(CLUSTERS, config.clusters.values())
        return Outcome(refused, clusters, dict(self._failed))

    # --- clusters ----------------------------------------------------------------------------------------------------

    async def _tell_clusters(self, config: Config) -> tuple[bool, frozenset[str]]:
        """Whether some are kept only until no route names them; and those that Envoy does not take."""
        if not self._clusters:
            self._rejected = await self._admin.count(REJECTED)
        known = self._clusters or {each["name"]: each for each in self._files.resources(CLUSTERS)}
        fresh = {name: each for name, each in config.clusters.items() if self._clusters.get(name) != each}
        kept = {name: each for name, each in known.items() if name not in config.clusters}
        refused: frozenset[str] = frozenset()
        if fresh or kept:
            version, _ = self._files.put(CLUSTERS, [*config.clusters.values(), *kept.values()])
            asked = {name: version if known.get(name) != each else "" for name, each in fresh.items()}
            refused = await self._await_clusters(asked)
        self._clusters = {name: each for name, each in config.clusters.items() if name not in refused}
        return bool(kept), refused

    async def _await_clusters(self, wanted: dict[str, str]) -> frozenset[str]:
        """Envoy takes the good ones of a list and refuses the others."""
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), 0.0005
        while wanted:
            for name, echo in (await self._admin.clusters(wanted)).items():
                if wanted.get(name) in ("", echo.version):
                    del wanted[name]
            waited = loop.time() - began
            if wanted and waited > SUSPECT and (count := await self._admin.count(REJECTED)) > self._rejected:
                self._rejected = count
                return frozenset(wanted)
            if waited > PATIENCE:
                raise NotEchoed(f"Envoy does not echo {', '.join(sorted(wanted)[:5])}")
            if wanted:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.02)
        return frozenset()

    # --- routes ------------------------------------------------------------------------------------------------------

    async def _write_routes(self, config: Config) -> dict[str, str]:
        """The versions that are to be echoed."""
        wanted = {}
        for name, routes in config.routes.items():
            file = file_of(name)
            before = self._files.version(file)
            if name not in self._refusals and before:
                self._refusals[name] = await self._admin.count(_rejected(name))
            version, written = self._files.put(file, (routes,))
            if not written and name in self._refusals and self._echoed.get(name) != version:
                self._refusals[name] = -1  # it was told in an earlier life: a refusal of then is one of now
            if self._echoed.get(name) != version:
                wanted[name] = version
        return wanted

    async def _await_routes(self, wanted: dict[str, str]) -> frozenset[str]:
        refused: set[str] = set()
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), 0.0005
        while wanted:
            announced = await self._admin.announced()
            ripe = [name for name, version in wanted.items() if version in announced]
            for name, echo in (await self._admin.routes(ripe) if ripe else {}).items():
                if wanted.get(name) == echo.version:
                    self._echoed[name] = wanted.pop(name)
            waited = loop.time() - began
            if wanted and waited > SUSPECT:
                for name in list(wanted):
                    count = await self._admin.count(_rejected(name))
                    if count > max(0, self._refusals.get(name, 0)) or (count and self._refusals.get(name) == -1):
                        self._refusals[name] = count
                        refused.add(name)
                        self._echoed.pop(name, None)
                        del wanted[name]
            if waited > PATIENCE:
                raise NotEchoed(f"Envoy does not echo the routes of {', '.join(sorted(wanted)[:5])}")
            if wanted:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.02)
        return frozenset(refused)

    # --- listeners ---------------------------------------------------------------------------------------------------

    async def _tell_listeners(self, config: Config) -> None:
        if config.listeners == self._listeners and not self._failed:
            return
        known = {each["name"]: each for each in self._files.resources(LISTENERS)}
        now = time.time() - 0.002  # Envoy tells times in milliseconds
        version, written = self._files.put(LISTENERS, config.listeners.values(), again=bool(self._failed))
        asked = {}
        for name, listener in config.listeners.items():
            if self._listeners.get(name) != listener or name in self._failed:
                asked[name] = version if written and known.get(name) != listener else ""
        self._failed = await self._until(self._admin.listeners, asked, now if written or self._failed else 0.0)
        self._listeners = {name: each for name, each in config.listeners.items() if name not in self._failed}

    async def _until(self, ask: Ask, wanted: dict[str, str], since: float) -> dict[str, str]:
        """Until all are echoed at their version, "" being any, or have failed since then; returns those that failed."""
        failed: dict[str, str] = {}
        loop = asyncio.get_running_loop()
        began, pause = loop.time(), 0.0005
        while wanted:
            for name, echo in (await ask(wanted)).items():
                version = wanted.get(name, "-")
                if name in wanted and echo.refused and echo.refused_at >= since:
                    failed[name] = echo.refused
                    del wanted[name]
                elif echo.version and version in ("", echo.version):
                    del wanted[name]
            if loop.time() - began > PATIENCE:
                raise NotEchoed(f"Envoy does not echo {', '.join(sorted(wanted)[:5])}")
            if wanted:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.02)
        return failed


def _rejected(route: str) -> str:
    """Filed under whichever listener asked for the table first."""
    return rf"http\..*\.rds\.{re.escape(route)}\.update_rejected"
