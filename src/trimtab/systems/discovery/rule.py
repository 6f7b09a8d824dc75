"""The controller of DiscoveryRules: what wakes it. What it then does is in `keeper`.

A server that only defines the kinds and judges writes imports this too, so nothing heavy is loaded before `start`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from trimtab.model.kubernetes import Pod, Secret, Service
from trimtab.model.resource import Resource, definition_of
from trimtab.runtime import (
    Context,
    Controller,
    Request,
    Result,
    Watch,
    annotations_changed,
    generation_changed,
    labels_changed,
)
from trimtab.runtime.changes import Change
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.index import Index
from trimtab.runtime.predicates import any_change
from trimtab.systems.discovery.kinds import (
    DiscoveryRule,
    DiscoveryVendorProfile,
    Target,
    TargetConnectionProfile,
    TargetSyncProfile,
)

if TYPE_CHECKING:
    from trimtab.systems.discovery.keeper import Keeper

FINALIZER = "discovery.trimtab.dev/rule"


def _names(rule: DiscoveryRule) -> Iterable[str]:
    """What the rule refers to, as `Kind/namespace/name`."""
    spec, place = rule.spec, rule.namespace
    yield f"{spec.rule_ref.kind}/{place}/{spec.rule_ref.name}"
    if spec.discovery_profile:
        profile = spec.discovery_profile
        for secret in (profile.credentials, *profile.fallback_credentials, profile.tls_secret or ""):
            yield f"Secret/{place}/{secret}"
        for name in profile.connection_profiles:
            yield f"TargetConnectionProfile/{place}/{name}"
    for entry in spec.target_connection_profiles:
        yield f"TargetConnectionProfile/{place}/{entry.connection_profile}"
        yield f"Secret/{place}/{entry.credentials}"
        yield f"Secret/{place}/{entry.tls_secret or ''}"
        yield f"TargetSyncProfile/{place}/{entry.sync_profile or ''}"


def _naming(kind: str) -> Callable[[Change], list[Request]]:
    def to(change: Change) -> list[Request]:
        return change.informers.indexed(DiscoveryRule, "names", f"{kind}/{change.request}")

    return to


def _in_namespace(change: Change) -> list[Request]:
    return change.informers.indexed(DiscoveryRule, "namespace", change.request.namespace)


def _when_gone(change: Change) -> list[Request]:
    """A Target that somebody deleted: its rule may want it back at once."""
    if change.after is not None or change.heads[0] is None:
        return []
    owners = [o for o in change.heads[0].owner_references or () if o.controller and o.kind == "DiscoveryRule"]
    return [Request(change.request.namespace, owner.name) for owner in owners]


def watching(sources: Iterable[type[Resource]]) -> type[RuleController]:
    """The controller, for rules whose `ruleRef` names objects of these kinds."""

    class Watching(RuleController):
        watches = (
            *(Watch(kind=kind, to=_naming(definition_of(kind).kind), when=generation_changed) for kind in sources),
            *RuleController.watches,
        )

    return Watching


class RuleController(Controller[DiscoveryRule]):
    """Made by `watching`, which adds where addresses come from to what is watched."""

    when = generation_changed | annotations_changed | labels_changed
    indexes = (Index("names", _names), Index("namespace", lambda rule: [rule.namespace]))
    watches: ClassVar[tuple[Watch, ...]] = (
        Watch(kind=TargetConnectionProfile, to=_naming("TargetConnectionProfile"), when=generation_changed),
        Watch(kind=TargetSyncProfile, to=_naming("TargetSyncProfile"), when=generation_changed),
        Watch(kind=DiscoveryVendorProfile, to=_in_namespace, when=generation_changed),
        Watch(kind=Secret, to=_naming("Secret"), when=any_change),
        Watch(kind=Pod, to=_in_namespace, when=any_change),
        Watch(kind=Service, to=_in_namespace, when=any_change),
        Watch(kind=Target, to=_when_gone, when=generation_changed),
    )

    keeper: Keeper

    def __init__(self, context: Context) -> None:
        self._context = context

    async def start(self) -> None:
        from trimtab.systems.discovery.keeper import Keeper

        self.keeper = Keeper(self._context, self.client, self.clock, self.events)
        self.keeper.start()

    async def pause(self) -> None:
        await self.keeper.pause()

    async def stop(self) -> None:
        await self.keeper.stop()

    async def reconcile(self, request: Request) -> Result | None:
        rule = await self.client.find(DiscoveryRule, request.name, request.namespace)
        if rule is None:
            await self.keeper.end(request, "")
            return None
        return await finalizer(self.client, rule, FINALIZER, apply=self.keeper.keep_up, cleanup=self.keeper.let_go)
