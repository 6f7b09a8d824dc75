"""Discovery at work for a test: its controller in this process, on either server, and simulated devices on loopback."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import UNSET

from tests.runtime.widgets import until_found, until_gone
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.model.clock import SystemClock
from trimtab.model.duration import Duration
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Event, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.system import Context, System
from trimtab.runtime.workers import Workers
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.discovery.kinds import (
    DiscoveryProfile,
    DiscoveryRule,
    DiscoveryRuleIPRange,
    DiscoveryRuleIPRangeSpec,
    DiscoveryRuleSpec,
    PrefixEntry,
    RuleRef,
    Target,
    TargetConnection,
    TargetConnectionProfile,
    TargetConnectionProfileSpec,
)
from trimtab.systems.discovery.rule import RuleController
from trimtab.systems.discovery.system import SYSTEM

GROUP = "discovery.trimtab.dev"
QUICK = {"probe_timeout": "200ms", "connect_retry": "0s", "timeout": "3s"}


class Station:
    """One namespace, with the controller at work in it. Everything that a test writes goes by `client`."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path, system: System = SYSTEM) -> None:
        self.client, self.namespace, self.system = client, namespace, system
        self.metrics = Metrics()
        self.blobs = FolderBlobs(folder / "blobs")
        self._folder = folder

    def controller(self) -> RuleController:
        """A new one, as a process has it."""
        clock = SystemClock()
        self.metrics = Metrics()
        context = Context(
            client=self.client,
            clock=clock,
            blobs=self.blobs,
            scratch=Scratch(self._folder / "scratch", 1 << 20),
            queue=connect_queue(None, clock=clock),
            workers=Workers(1),
            metrics=self.metrics,
        )
        (made,) = self.system.made(context)
        assert isinstance(made, RuleController)
        return made

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The controller runs inside; leaving it is a clean stop."""
        manager = Manager(self.client, name="discovery", metrics=Metrics())
        manager.add(self.controller())
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        try:
            yield
        finally:
            stop.set()
            await task

    async def secret(self, name: str, **values: str) -> None:
        data = {key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.client.create(Secret(metadata=self._meta(name), data=data))

    async def profile(self, name: str, protocol: Any, port: int, **more: Any) -> None:
        quick = {name: Duration(value) for name, value in QUICK.items()} | {"probe_retries": 0} | more
        spec = TargetConnectionProfileSpec(protocol=protocol, port=port, **quick)
        await self.client.create(TargetConnectionProfile(metadata=self._meta(name), spec=spec))

    async def ranges(self, name: str, *prefixes: str, **more: Any) -> DiscoveryRuleIPRange:
        entries = tuple(PrefixEntry(prefix=prefix) for prefix in prefixes)
        spec = DiscoveryRuleIPRangeSpec(prefixes=entries, **more)
        return await self.client.create(DiscoveryRuleIPRange(metadata=self._meta(name), spec=spec))

    async def rule(
        self,
        name: str,
        profiles: tuple[str, ...],
        secret: str,
        *,
        kind: str = "DiscoveryRuleIPRange",
        source: str = "",
        period: str = "500ms",
        annotations: Mapping[str, str] | None = None,
        fallback: tuple[str, ...] = (),
        connections: tuple[TargetConnection, ...] = (),
        **more: Any,
    ) -> DiscoveryRule:
        spec = DiscoveryRuleSpec(
            rule_ref=RuleRef(group=GROUP, version="v1alpha1", kind=kind, name=source or name),
            discovery_profile=DiscoveryProfile(
                credentials=secret, connection_profiles=profiles, fallback_credentials=fallback
            )
            if profiles
            else UNSET,
            target_connection_profiles=connections
            or tuple(TargetConnection(connection_profile=profile, credentials=secret) for profile in profiles),
            period=Duration(period),
            **more,
        )
        metadata = self._meta(name, annotations)
        return await self.client.create(DiscoveryRule(metadata=metadata, spec=spec))

    async def until(self, kind: Any, name: str, holds: Callable[[Any], Any]) -> Any:
        """The object, as soon as this is true of it."""
        return await until_found(self.client, kind, name, self.namespace, holds)

    async def until_any(self, kind: Any, query: Query, holds: Callable[[Any], Any]) -> Any:
        """The first object of a kind of which this is true."""
        async with asyncio.timeout(30):
            listing = await self.client.list(kind, query)
            for item in listing.items:
                if holds(item):
                    return item
            async with contextlib.aclosing(self.client.watch(kind, query, listing.revision)) as events:
                async for event in events:
                    if event.object is not None and holds(event.object):
                        return event.object
        raise AssertionError("a watch has no end")

    async def until_gone(self, kind: Any, name: str) -> None:
        await until_gone(self.client, kind, name, self.namespace)

    async def until_swept(self, name: str, times: int = 1) -> DiscoveryRule:
        """The rule, when so many more of its runs have ended than now."""
        rule = await self.client.get(DiscoveryRule, name, self.namespace)
        before = {run.id for run in ended(rule)}
        return await self.until(
            DiscoveryRule, name, lambda rule: len([run for run in ended(rule) if run.id not in before]) >= times
        )

    async def change(self, kind: Any, name: str, **fields: Any) -> Any:
        """Change fields of a spec, whoever else writes the object meanwhile."""
        while True:
            held = await self.client.get(kind, name, self.namespace)
            try:
                return await self.client.patch(held, held.replace(spec=held.spec.replace(**fields)))
            except StatusError as error:
                if error.code != 409:
                    raise

    async def annotate(self, obj: Any, key: str, value: str) -> Any:
        metadata = ObjectMeta(name=obj.name, namespace=self.namespace, annotations={key: value})
        partial = type(obj)(metadata=metadata, spec=UNSET)
        return await self.client.apply(partial, manager="somebody")

    async def everything(self) -> list[Any]:
        """What a reader of the namespace sees, without Secrets."""
        query = Query(namespace=self.namespace)
        return [item.raw for kind in (*SYSTEM.kinds, Event) for item in (await self.client.list(kind, query)).items]

    async def targets(self) -> dict[str, Target]:
        listed = await self.client.list(Target, Query(namespace=self.namespace))
        return {target.name: target for target in listed.items}

    def _meta(self, name: str, annotations: Mapping[str, str] | None = None) -> ObjectMeta:
        return ObjectMeta(name=name, namespace=self.namespace, annotations=dict(annotations) if annotations else UNSET)


def ended(rule: DiscoveryRule) -> list[Any]:
    """Its runs that have."""
    return [run for run in (rule.status.history if rule.status else UNSET) or () if run.outcome != "Running"]


def condition(obj: Any, kind: str) -> Any:
    """The condition of this type, or None."""
    found = (obj.status.conditions if obj.status else UNSET) or ()
    return next((c for c in found if c.type == kind), None)


def is_ready(obj: Any) -> bool:
    said = condition(obj, "Ready")
    return said is not None and said.status == "True"
