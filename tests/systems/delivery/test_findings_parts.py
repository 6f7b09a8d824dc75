"""Single rules of measuring, revisions and objects that nothing else would miss."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.systems.delivery.objects_home import ROUTES, made, owner, shop, wanted
from tests.systems.delivery.objects_kit import canary
from trimtab.client.api import ApiClient
from trimtab.model.scheme import Untyped
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.measuring.contract import Series, Window
from trimtab.systems.delivery.measuring.counting import Growth, growths, requests
from trimtab.systems.delivery.objects.enforcing import enforce
from trimtab.systems.delivery.problems import problems
from trimtab.systems.delivery.revisions.configs import ConfigReference, references

__all__ = ["owner", "shop"]

START = datetime(2026, 1, 1, tzinfo=UTC)


def window(begin: float, end: float) -> Window:
    return Window(START + timedelta(seconds=begin), START + timedelta(seconds=end))


def series(*samples: tuple[float, float]) -> Series:
    return Series({"response_code": "503"}, tuple((START.timestamp() + at, value) for at, value in samples))


def test_a_series_that_begins_where_two_windows_meet_is_counted_once() -> None:
    one = series((10, 100), (20, 100))
    first = requests(growths([series((10, 100))], window(0, 10)))
    second = requests(growths([one], window(10, 20)))
    assert first.failed + second.failed == 100


def test_on_a_tie_the_source_is_believed_whoever_else_reports() -> None:
    said = [Growth({"reporter": who, "response_code": code}, ((1.0, 5.0),)) for who, code in REPORTERS]
    assert requests(said).failed == 0
    assert requests(said[::-1]).failed == 0


REPORTERS = (("source", "200"), ("waypoint", "503"), ("destination", "503"))


@pytest.mark.parametrize("optional", [(True, False), (False, True), (False, None), (None, True)])
def test_what_is_needed_once_is_needed(optional: tuple[bool | None, bool | None]) -> None:
    sources = [{"configMapRef": {"name": "colors", "optional": each}} for each in optional]
    template = {"spec": {"containers": [{"name": "web", "envFrom": sources}]}}
    assert references(template) == (ConfigReference("ConfigMap", "colors", False),)


async def test_who_goes_takes_nothing_back_that_it_let_go(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforce(shop, owner, wanted(owner), adopt=False)
    found = await shop.get(ROUTES, "web", owner.namespace)
    orphan = _with(found.raw, ownerReferences=[])
    await shop.patch(Untyped({**found.raw, **_named(ROUTES)}), Untyped({**orphan, **_named(ROUTES)}))
    going = owner.replace(metadata=msgspec.structs.replace(owner.metadata, deletion_timestamp=datetime.now(UTC)))
    await enforce(shop, going, wanted(owner, 0), adopt=False)
    left = (await shop.get(ROUTES, "web", owner.namespace)).raw
    assert not left["metadata"].get("ownerReferences")
    assert left["spec"] == found.raw["spec"]


async def test_an_owner_that_is_gone_adopts_nothing(shop: ApiClient, owner: CanaryDeployment) -> None:
    other = await made(shop, owner.namespace, "other")
    document = next(each for each in wanted(owner) if each["kind"] == "VirtualService")
    await shop.create(Untyped(document))
    ghost = owner.replace(metadata=msgspec.structs.replace(owner.metadata, uid=other.metadata.uid))
    await enforce(shop, ghost, [document], adopt=True)
    assert not (await shop.get(ROUTES, "web", owner.namespace)).raw["metadata"].get("ownerReferences")


def _with(raw: Any, **metadata: Any) -> dict[str, Any]:
    return {**raw, "metadata": {**raw["metadata"], **metadata}}


def _named(kind: Any) -> dict[str, str]:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def test_an_analysis_that_no_status_could_hold_is_refused() -> None:
    long = {f"key{i}": "x" * 1024 for i in range(32)}
    hooks = [{"name": f"h{i}", "type": "Rollout", "url": "http://127.0.0.1:1/", "metadata": long} for i in range(16)]
    metrics = [{"name": f"m{i}", "query": "up", "thresholdRange": {"min": 1}, "variables": long} for i in range(16)]
    analysis = {"interval": "300s", "stepWeight": 10, "webhooks": hooks, "metrics": metrics}
    assert any("characters" in str(each) for each in problems(canary(analysis=analysis)))
