"""Runs that a test asks for, one by one: a rule with a long period does nothing in between."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from tests.systems.discovery.station import Station, condition
from trimtab.lab.snmp import Personality
from trimtab.model.duration import Duration
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.kinds import DiscoveryRule, Fading
from trimtab.systems.discovery.kinds.rule import RELEASE_ANNOTATION, RUN_ANNOTATION

AT_ONCE = Fading(lost_after_misses=1, lost_after=Duration("0s"), delete_after_misses=2, delete_after=Duration("0s"))


def face(number: int, **more: Any) -> Personality:
    """A switch with an engine ID of its own."""
    engine_id = bytes.fromhex(f"80001f8805{number:012x}aa")
    return Personality(**{"name": f"switch-{number}", "engine_id": engine_id, **more})


async def begin(station: Station, port: int, prefix: str, *, patience: str = "200ms", **more: Any) -> DiscoveryRule:
    """The rule `lab`, by SNMP, after its first run. Give more patience where nobody may be missed: this very process
    plays the devices, and may be busy."""
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port, probe_timeout=Duration(patience))
    await station.ranges("lab", prefix)
    await station.rule("lab", ("snmp",), "login", **{"period": "1h", **more})
    return await until_ended(station, lambda rule: True)


async def sweep(station: Station, name: str = "lab") -> DiscoveryRule:
    """One more run. The rule, when it has ended."""
    token = uuid.uuid4().hex
    await annotate(station, RUN_ANNOTATION, token, name)
    return await until_ended(station, lambda rule: rule.status.handled_run == token, name)


async def until_ended(station: Station, holds: Callable[[DiscoveryRule], Any], name: str = "lab") -> DiscoveryRule:
    """The rule, when the newest of its runs has ended and this is true of it."""

    def is_over(rule: DiscoveryRule) -> bool:
        history = (rule.status.history if rule.status else UNSET) or ()
        return bool(history) and history[0].outcome != "Running" and bool(holds(rule))

    found: DiscoveryRule = await station.until(DiscoveryRule, name, is_over)
    return found


async def release(station: Station, rule: DiscoveryRule) -> None:
    """As a person does who reads the condition MassLoss."""
    await annotate(station, RELEASE_ANNOTATION, held_run(rule))


def held_run(rule: DiscoveryRule) -> str:
    """The run that the condition names."""
    named = re.search(r"release-mass-loss=(\S+)", condition(rule, "MassLoss").message)
    assert named
    return named[1]


async def annotate(station: Station, key: str, value: str, name: str = "lab") -> None:
    """Each annotation by a manager of its own, so that one does not take another away."""
    metadata = ObjectMeta(name=name, namespace=station.namespace, annotations={key: value})
    partial = DiscoveryRule(metadata=metadata, spec=UNSET)
    await station.client.apply(partial, manager=f"test-{key.rpartition('/')[2]}", force=True)
