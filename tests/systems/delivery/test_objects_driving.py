"""A VirtualService of someone else is driven, and given back, on both homes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.conftest import client, scheme
from tests.systems.delivery.objects_home import (
    ALL,
    ROUTES,
    Behind,
    Untouchable,
    changed,
    enforced,
    in_spec,
    owner,
    shop,
    wanted,
)
from tests.systems.delivery.objects_kit import canary
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.scheme import Untyped
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.objects.driving import drive, release
from trimtab.systems.delivery.objects.routing import Traffic, weight_of
from trimtab.systems.delivery.objects.tidying import tidy

__all__ = ["client", "owner", "scheme", "shop"]

FRONT: dict[str, Any] = {
    "hosts": ["shop.example.com"],
    "http": [
        {"name": "main", "timeout": "2s", "route": [{"destination": {"host": "web"}, "weight": 100}]},
        {"name": "rest", "route": [{"destination": {"host": "else"}}]},
    ],
    "tcp": [{"route": [{"destination": {"host": "else"}}]}],
}


@pytest.fixture
async def driver(shop: ApiClient, owner: CanaryDeployment) -> CanaryDeployment:
    """Drives someone's VirtualService."""
    front = {"name": "front", "namespace": owner.namespace, "annotations": {"team": "edge"}}
    kind = {"apiVersion": ROUTES.api_version, "kind": "VirtualService"}
    await shop.create(Untyped({**kind, "metadata": front, "spec": FRONT}))
    return canary(namespace=owner.namespace, uid=owner.metadata.uid or "", virtualService={"name": "front"})


async def test_a_virtual_service_of_others_is_driven_and_given_back(shop: ApiClient, driver: CanaryDeployment) -> None:
    first = await drive(shop, driver, Traffic(weight=10))
    assert first.drifts == ()
    found = first.objects["VirtualService", "front"]
    assert weight_of(found, driver) == 10
    assert found["spec"]["http"][1:] == FRONT["http"][1:]
    assert "ownerReferences" not in found["metadata"]
    again = await drive(Untouchable(shop), driver, Traffic(weight=10))  # type: ignore[arg-type]
    assert again.objects["VirtualService", "front"] == found
    second = await drive(shop, driver, Traffic(weight=100, match=({"headers": {"x": {"exact": "y"}}},)))
    assert second.drifts == ()
    await release(shop, driver)
    left = (await shop.get(ROUTES, "front", driver.namespace)).raw
    assert left["spec"] == FRONT
    assert left["metadata"]["annotations"] == {"team": "edge"}
    assert (await release(shop, driver)) is not None, "again and again"


async def test_drift_of_what_is_driven_is_put_back_and_the_rest_stays(
    shop: ApiClient, driver: CanaryDeployment
) -> None:
    await drive(shop, driver, Traffic(weight=10))
    # The author applies the file again, with another host.
    await changed(shop, ROUTES, driver, in_spec(**{**FRONT, "hosts": ["new.example.com"]}), "front")
    dry = await drive(Untouchable(shop), driver, Traffic(weight=10), dry=True)  # type: ignore[arg-type]
    after = await drive(shop, driver, Traffic(weight=10))
    for told in (dry, after):
        (drift,) = told.drifts
        assert drift.field == "spec.http[0].route"
        assert drift.manager not in ("", "delivery")
    found = after.objects["VirtualService", "front"]
    assert (weight_of(found, driver), found["spec"]["hosts"]) == (10, ["new.example.com"])


async def test_our_writes_carry_our_name_and_their_time(shop: ApiClient, driver: CanaryDeployment) -> None:
    for weight in (10, 20):
        found = (await drive(shop, driver, Traffic(weight=weight))).objects["VirtualService", "front"]
        entries = [e for e in found["metadata"]["managedFields"] if e["manager"] == "delivery"]
        assert [entry["operation"] for entry in entries] == ["Apply"]
        assert entries[0]["time"]


async def test_what_cannot_be_driven_is_a_conflict(shop: ApiClient, driver: CanaryDeployment) -> None:
    absent = canary(namespace=driver.namespace, virtualService={"name": "nowhere"})
    assert [c.why for c in (await drive(shop, absent, Traffic())).conflicts] == ["does not exist"]
    assert await release(shop, absent) is None
    unnamed = canary(namespace=driver.namespace, virtualService={"name": "front", "routes": ["nothing"]})
    (conflict,) = (await drive(shop, unnamed, Traffic(weight=3))).conflicts
    assert "no http route named nothing (there are: main, rest)" in conflict.why


async def test_one_that_was_deleted_while_it_is_driven_is_not_made(shop: ApiClient, driver: CanaryDeployment) -> None:
    old = await shop.get(ROUTES, "front", driver.namespace)
    await shop.delete(Ref(ROUTES, "front", driver.namespace))
    cached = Behind(shop, {("VirtualService", "front"): old})
    after = await drive(cached, driver, Traffic(weight=10))  # type: ignore[arg-type]
    assert [conflict.why for conflict in after.conflicts] == ["does not exist"]


async def test_an_edit_in_between_is_not_lost(shop: ApiClient, driver: CanaryDeployment) -> None:
    old = await shop.get(ROUTES, "front", driver.namespace)
    more = [*FRONT["http"], {"name": "more", "route": [{"destination": {"host": "more"}}]}]
    await changed(shop, ROUTES, driver, in_spec(http=more), "front")
    cached = Behind(shop, {("VirtualService", "front"): old})
    after = await drive(cached, driver, Traffic(weight=10))  # type: ignore[arg-type]
    assert after.objects["VirtualService", "front"]["spec"]["http"][2] == more[2]
    await release(cached, driver)  # type: ignore[arg-type]
    assert (await shop.get(ROUTES, "front", driver.namespace)).raw["spec"]["http"] == more


async def test_what_a_changed_spec_leaves_behind_is_tidied(
    shop: ApiClient, owner: CanaryDeployment, driver: CanaryDeployment
) -> None:
    await enforced(shop, owner)
    await drive(shop, driver, Traffic(weight=10))
    other = canary("other", owner.namespace, virtualService={"name": "front"})
    assert await tidy(shop, other, []) == ()
    assert await tidy(shop, driver, wanted(owner)) == ()
    assert await tidy(shop, driver, []) == ALL_ROUTES
    assert weight_of((await shop.get(ROUTES, "front", owner.namespace)).raw, driver) == 10
    assert await tidy(shop, owner, []) == (("VirtualService", "front"),)
    assert (await shop.get(ROUTES, "front", owner.namespace)).raw["spec"] == FRONT
    assert (await enforced(shop, owner)).made == tuple(key for key in ALL if key in ALL_ROUTES)


ALL_ROUTES = (("VirtualService", "web"), ("DestinationRule", "web"), ("DestinationRule", "web-canary"))
