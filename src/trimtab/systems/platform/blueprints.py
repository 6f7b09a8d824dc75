"""What a blueprint comes to: its addons and those of its base, in an order in which each follows what it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Client
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Addon, Blueprint
from trimtab.systems.platform.resolving import published, resolve

DEEPEST = 8


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """An addon at the version that is meant, and what must be well before it."""

    addon: Addon
    depends_on: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.addon.name


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """A blueprint with everything that it means."""

    blueprint: Blueprint
    addons: tuple[Chosen, ...]

    @property
    def digest(self) -> str:
        """Of which blueprint it is and which addons are in it, so the same for all clusters: what consent is given to."""
        found = self.blueprint
        told = (found.namespace, found.name, found.version(), sorted(chosen.name for chosen in self.addons))
        return f"sha256:{hashlib.sha256(msgspec.json.encode(told)).hexdigest()}"


async def whole(client: Client, api: ApiClient, name: str, version: str, project: str) -> Whole:
    """Resolved and in order. Fault when any of it is missing, ambiguous, or goes in a circle."""
    blueprint = await published(api, await resolve(client, Blueprint, name, project), version)
    chosen: dict[str, Chosen] = {}
    for layer in reversed(await _layers(client, api, blueprint)):  # what is built upon comes first, and is overridden
        for entry in layer.spec.addons:
            addon = await published(api, await resolve(client, Addon, entry.name, layer.namespace), entry.version)
            needs = tuple(dict.fromkeys((*entry.depends_on, *addon.spec.depends_on)))
            chosen[entry.name] = Chosen(addon=addon, depends_on=needs)
    order = ordered({name: each.depends_on for name, each in chosen.items()})
    return Whole(blueprint=blueprint, addons=tuple(chosen[name] for name in order))


async def _layers(client: Client, api: ApiClient, blueprint: Blueprint) -> list[Blueprint]:
    layers = [blueprint]
    seen = [(blueprint.namespace, blueprint.name)]
    while base := layers[-1].spec.base:
        found = await resolve(client, Blueprint, base.name, layers[-1].namespace)
        key = (found.namespace, found.name)
        if key in seen or len(layers) >= DEEPEST:
            path = " → ".join(name for _, name in (*seen, key))
            raise Fault(
                "BlueprintCycle", f"a blueprint must not be its own base, nor {DEEPEST} deep: {path}", again=False
            )
        seen.append(key)
        layers.append(await published(api, found, base.version))
    return layers


def ordered(needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Every name after those that it needs, else in the order given. Pure. Fault for a circle, and for what is not there."""
    for name, wanted in needs.items():
        absent = [each for each in wanted if each not in needs]
        if absent:
            raise Fault(
                "DependencyMissing", f"addon {name} depends on {', '.join(absent)}, which is not in the blueprint"
            )
    done: dict[str, None] = {}
    left = list(needs)
    while left:
        ready = next((name for name in left if all(each in done for each in needs[name])), None)
        if ready is None:
            raise Fault("DependencyCycle", f"addons depend on each other: {', '.join(sorted(left))}", again=False)
        left.remove(ready)
        done[ready] = None
    return tuple(done)
