"""Objects are brought to what is wanted on both homes, and what is not ours is never touched."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.runtime.conftest import client, scheme
from tests.systems.delivery.objects_kit import REVISION, TEMPLATE, canary
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Ref
from trimtab.model import istio
from trimtab.model.errors import StatusError, not_found
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.objects.driving import drive, release
from trimtab.systems.delivery.objects.enforcing import Enforced, enforce, remove
from trimtab.systems.delivery.objects.routing import Traffic, destination_rules, owned_virtual_service, weight_of
from trimtab.systems.delivery.objects.services import canary_service, stable_service
from trimtab.systems.delivery.objects.workloads import stable_deployment

__all__ = ["client", "scheme"]

DEPLOYMENT, SERVICE = Named("apps/v1", "Deployment"), Named("v1", "Service")
ROUTES = Named("networking.istio.io/v1", "VirtualService")
ALL = [
    ("Service", "web"),
    ("Service", "web-canary"),
    ("Deployment", "web"),
    ("DestinationRule", "web"),
    ("DestinationRule", "web-canary"),
    ("VirtualService", "web"),
]
SECRET = "hush"


@pytest.fixture
async def shop(client: ApiClient, scheme: Scheme) -> ApiClient:
    """The kinds are served, Istio's too, which nobody else defines here."""
    system = System(name="delivery", kinds=(CanaryDeployment,), borrowed=istio.KINDS)
    for kind in (*system.kinds, *system.borrowed):
        scheme.register(kind)
    await prepare(client, (system,), rights=False, borrowed=True)
    return client


@pytest.fixture
async def owner(shop: ApiClient) -> CanaryDeployment:
    """In a namespace of its own."""
    name = f"shop-{uuid.uuid4().hex[:12]}"
    await shop.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return await made(shop, name)


async def made(client: ApiClient, namespace: str, name: str = "web", **spec: Any) -> CanaryDeployment:
    if name == "web":
        spec = {"virtualService": {"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}, **spec}
    return await client.create(canary(name, namespace, **spec))


def wanted(owner: CanaryDeployment, weight: int = 10) -> list[dict[str, Any]]:
    return [
        stable_service(owner),
        canary_service(owner),
        stable_deployment(owner, TEMPLATE, REVISION),
        *destination_rules(owner),
        owned_virtual_service(owner, Traffic(weight=weight)),
    ]


async def enforced(client: ApiClient, owner: CanaryDeployment, weight: int = 10, **options: Any) -> Enforced:
    return await enforce(client, owner, wanted(owner, weight), **{"adopt": False, **options})


async def changed(client: ApiClient, kind: Named, owner: CanaryDeployment, change: Any, name: str = "web") -> None:
    """Someone changes an object by hand."""
    found = await client.get(kind, name, owner.namespace)
    before = Untyped({**found.raw, "apiVersion": kind.api_version, "kind": kind.kind})
    await client.patch(before, Untyped(change(before.raw)))


def in_spec(**fields: Any) -> Any:
    return lambda raw: {**raw, "spec": {**raw["spec"], **fields}}


def revisions(result: Enforced) -> dict[Any, str]:
    return {key: document["metadata"]["resourceVersion"] for key, document in result.objects.items()}


async def test_all_are_made_once_with_owner_and_label(shop: ApiClient, owner: CanaryDeployment) -> None:
    first = await enforced(shop, owner)
    assert list(first.made) == list(first.objects) == ALL
    for document in first.objects.values():
        (reference,) = document["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (owner.metadata.uid, True)
        assert document["metadata"]["labels"]["delivery.trimtab.dev/canary"] == "web"


async def test_nothing_is_written_when_nothing_differs(shop: ApiClient, owner: CanaryDeployment) -> None:
    first = await enforced(shop, owner)
    refusing = Untouchable(shop)
    again = await enforced(refusing, owner)  # type: ignore[arg-type]
    assert (again.drifts, again.conflicts, again.made) == ((), (), ())
    assert revisions(again) == revisions(first)


async def test_a_change_of_mind_is_no_drift(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner, 10)
    after = await enforced(shop, owner, 20)
    assert after.drifts == ()
    assert weight_of(after.objects["VirtualService", "web"], owner) == 20


async def test_what_others_change_is_put_back_and_told(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    http = [
        {
            "route": [
                {"destination": {"host": "web"}, "weight": 50},
                {"destination": {"host": "web-canary"}, "weight": 50},
            ]
        }
    ]
    await changed(shop, ROUTES, owner, in_spec(http=http))
    await changed(shop, DEPLOYMENT, owner, in_spec(replicas=9))
    after = await enforced(shop, owner)
    told = {(drift.kind, drift.field): (drift.found, drift.wanted) for drift in after.drifts}
    assert told == {
        ("Deployment", "spec.replicas"): ("9", "4"),
        ("VirtualService", "spec.http[0].route[0].weight"): ("50", "90"),
        ("VirtualService", "spec.http[0].route[1].weight"): ("50", "10"),
    }
    assert all(drift.manager for drift in after.drifts), "and who did it"
    assert weight_of(after.objects["VirtualService", "web"], owner) == 10
    assert after.objects["Deployment", "web"]["spec"]["replicas"] == 4
    assert (await enforced(shop, owner)).drifts == ()


async def test_what_others_add_to_our_routes_goes(shop: ApiClient, owner: CanaryDeployment) -> None:
    first = await enforced(shop, owner)
    (route,) = first.objects["VirtualService", "web"]["spec"]["http"]
    await changed(shop, ROUTES, owner, in_spec(http=[{**route, "timeout": "1s"}]))
    (drift,) = (await enforced(shop, owner)).drifts
    assert (drift.field, drift.found, drift.wanted) == ("spec.http[0].timeout", "1s", "absent")
    await changed(shop, ROUTES, owner, in_spec(http=[{"redirect": {"uri": "/"}}, route]))
    (drift,) = (await enforced(shop, owner)).drifts
    assert (drift.field, drift.found, drift.wanted) == ("spec.http", "a list of 2", "a list of 1")


async def test_a_selector_that_was_widened_is_put_back(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    await changed(shop, SERVICE, owner, lambda raw: {**raw, "spec": {**raw["spec"], "selector": {"app": "web"}}})
    after = await enforced(shop, owner)
    assert [drift.field for drift in after.drifts] == ["spec.selector.delivery.trimtab.dev/role"]
    assert after.objects["Service", "web"]["spec"]["selector"]["delivery.trimtab.dev/role"] == "stable"


async def test_values_that_may_be_secrets_are_not_told(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)

    def spoilt(raw: Any) -> Any:
        template = raw["spec"]["template"]
        (container,) = template["spec"]["containers"]
        worse = {**container, "env": [{"name": "TOKEN", "value": "found-out"}]}
        return in_spec(template={**template, "spec": {**template["spec"], "containers": [worse]}})(raw)

    await changed(shop, DEPLOYMENT, owner, spoilt)
    (drift,) = (await enforced(shop, owner)).drifts
    assert drift.field.endswith("env[0].value")
    assert SECRET not in str(drift)
    assert "found-out" not in str(drift)


async def test_fields_of_others_stay(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    await changed(
        shop,
        DEPLOYMENT,
        owner,
        lambda raw: {
            **raw,
            "metadata": {**raw["metadata"], "annotations": {**raw["metadata"]["annotations"], "team": "a"}},
        },
    )
    after = await enforced(shop, owner, 20)
    assert after.drifts == ()
    assert after.objects["Deployment", "web"]["metadata"]["annotations"]["team"] == "a"


async def test_what_was_deleted_is_made_again_and_told(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    await shop.delete(Ref(ROUTES, "web", owner.namespace))
    assert (await enforced(shop, owner, expected=ALL, dry=True)).drifts[0].field == ""
    after = await enforced(shop, owner, expected=ALL)
    (drift,) = after.drifts
    assert (drift.kind, drift.name, drift.field) == ("VirtualService", "web", "")
    assert after.made == (("VirtualService", "web"),)


async def test_an_owner_that_was_taken_off_is_set_again(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    await changed(shop, ROUTES, owner, lambda raw: {**raw, "metadata": {**raw["metadata"], "ownerReferences": []}})
    after = await enforced(shop, owner)
    assert [drift.field for drift in after.drifts] == ["metadata.ownerReferences"]
    assert after.objects["VirtualService", "web"]["metadata"]["ownerReferences"][0]["uid"] == owner.metadata.uid


async def test_dry_tells_drift_and_writes_nothing(shop: ApiClient, owner: CanaryDeployment) -> None:
    assert (await enforced(shop, owner, dry=True)).objects == {}
    await enforced(shop, owner)
    await changed(shop, DEPLOYMENT, owner, in_spec(replicas=9))
    dry = await enforced(shop, owner, dry=True)
    assert [drift.field for drift in dry.drifts] == ["spec.replicas"]
    assert (await shop.get(DEPLOYMENT, "web", owner.namespace)).spec["replicas"] == 9
    other = await enforced(shop, owner, 50, dry=True)
    assert weight_of(other.objects["VirtualService", "web"], owner) == 10


async def test_what_exists_and_is_not_ours_is_left_alone(shop: ApiClient, owner: CanaryDeployment) -> None:
    foreign = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": owner.namespace}}
    before = await shop.create(Untyped({**foreign, "spec": {"ports": [{"port": 1}]}}))
    after = await enforced(shop, owner)
    (conflict,) = after.conflicts
    assert (conflict.kind, conflict.name) == ("Service", "web")
    assert "spec.adopt" in conflict.why
    assert ("Service", "web") not in after.objects
    assert (await shop.get(SERVICE, "web", owner.namespace)).raw == before.raw
    assert len(after.made) == len(ALL) - 1, "and the others are made"


@pytest.mark.parametrize("by", ["spec", "annotation"])
async def test_what_nobody_controls_is_adopted_when_that_is_allowed(
    shop: ApiClient, owner: CanaryDeployment, by: str
) -> None:
    metadata: dict[str, Any] = {"name": "web", "namespace": owner.namespace}
    if by == "annotation":
        metadata["annotations"] = {"delivery.trimtab.dev/adopt": "web"}
    foreign = {"apiVersion": ROUTES.api_version, "kind": "VirtualService", "metadata": metadata}
    before = await shop.create(Untyped({**foreign, "spec": {"hosts": ["web"], "http": []}}))
    after = await enforced(shop, owner, adopt=by == "spec")
    assert after.conflicts == ()
    assert ("VirtualService", "web") not in after.made
    taken = after.objects["VirtualService", "web"]["metadata"]
    assert (taken["uid"], taken["ownerReferences"][0]["uid"]) == (before.metadata.uid, owner.metadata.uid)
    assert weight_of(after.objects["VirtualService", "web"], owner) == 10
    assert (await enforced(shop, owner)).drifts == ()


async def test_an_annotation_for_another_allows_nothing(shop: ApiClient, owner: CanaryDeployment) -> None:
    annotations = {"delivery.trimtab.dev/adopt": "other"}
    metadata = {"name": "web", "namespace": owner.namespace, "annotations": annotations}
    await shop.create(
        Untyped({"apiVersion": ROUTES.api_version, "kind": "VirtualService", "metadata": metadata, "spec": {}})
    )
    assert len((await enforced(shop, owner)).conflicts) == 1


async def test_what_another_controls_is_never_taken(shop: ApiClient, owner: CanaryDeployment) -> None:
    other = await made(shop, owner.namespace, "other")
    await enforce(shop, other, [{**stable_service(other), "metadata": stable_service(owner)["metadata"]}], adopt=True)
    before = await shop.get(SERVICE, "web", owner.namespace)
    (conflict,) = (await enforced(shop, owner, adopt=True)).conflicts
    assert "controlled by CanaryDeployment other" in conflict.why
    assert (await shop.get(SERVICE, "web", owner.namespace)).raw == before.raw


async def test_a_deployment_with_another_selector_cannot_be_adopted(shop: ApiClient, owner: CanaryDeployment) -> None:
    plain = stable_deployment(owner, TEMPLATE, REVISION)
    plain["metadata"] = {"name": "web", "namespace": owner.namespace}
    plain["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    before = await shop.create(Untyped(plain))
    (conflict,) = (await enforced(shop, owner, adopt=True)).conflicts
    assert "never changes" in conflict.why
    assert (await shop.get(DEPLOYMENT, "web", owner.namespace)).metadata.uid == before.metadata.uid


async def test_what_the_server_refuses_is_a_conflict(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    broken = stable_deployment(owner, {"metadata": TEMPLATE["metadata"], "spec": {"containers": []}}, REVISION)
    broken["spec"]["selector"] = {"matchLabels": {"app": "else"}}
    try:
        after = await enforce(shop, owner, [broken], adopt=False)
    except StatusError as error:
        pytest.fail(f"{error.code} {error.message}")
    if after.conflicts:  # a home that validates Deployments
        assert after.conflicts[0].why.startswith("is refused by the server")


async def test_replicas_stay_when_they_are_left_to_an_autoscaler(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    scaled = canary(namespace=owner.namespace, uid=owner.metadata.uid or "", autoscalerRef={"name": "web"})
    documents = [stable_deployment(scaled, TEMPLATE, REVISION)]
    after = await enforce(shop, scaled, documents, adopt=False)
    assert after.objects["Deployment", "web"]["spec"]["replicas"] == 4
    await changed(shop, DEPLOYMENT, owner, in_spec(replicas=7))
    for _ in range(2):
        after = await enforce(shop, scaled, documents, adopt=False)
        assert after.objects["Deployment", "web"]["spec"]["replicas"] == 7
        assert after.drifts == ()


async def test_only_what_is_ours_is_removed(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    other = await made(shop, owner.namespace, "other")
    assert await remove(shop, other, ROUTES, "web")
    assert (await shop.get(ROUTES, "web", owner.namespace)).name == "web"
    await remove(shop, owner, ROUTES, "web")
    with pytest.raises(StatusError, match="not found"):
        await shop.get(ROUTES, "web", owner.namespace)
    assert await remove(shop, owner, ROUTES, "web"), "again and again"


async def test_a_cache_that_is_behind_takes_nothing(shop: ApiClient, owner: CanaryDeployment) -> None:
    """It knows nothing of an object that others just made."""
    foreign = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": owner.namespace}}
    before = await shop.create(Untyped({**foreign, "spec": {"ports": [{"port": 1}]}}))
    after = await enforced(Behind(shop, {}), owner)  # type: ignore[arg-type]
    assert [(conflict.kind, conflict.name) for conflict in after.conflicts] == [("Service", "web")]
    assert (await shop.get(SERVICE, "web", owner.namespace)).raw == before.raw


async def test_what_was_made_in_between_is_not_taken(shop: ApiClient, owner: CanaryDeployment) -> None:
    """The server, too, said that there is none; then others were faster."""
    foreign = {"apiVersion": ROUTES.api_version, "kind": "VirtualService"}
    metadata = {"name": "web", "namespace": owner.namespace}
    before = await shop.create(Untyped({**foreign, "metadata": metadata, "spec": {"hosts": ["theirs"]}}))
    after = await enforced(Behind(shop, {}, Late(shop)), owner)  # type: ignore[arg-type]
    assert [(conflict.kind, conflict.name) for conflict in after.conflicts] == [("VirtualService", "web")]
    assert (await shop.get(ROUTES, "web", owner.namespace)).raw == before.raw


async def test_another_that_took_the_name_is_left_alone(shop: ApiClient, owner: CanaryDeployment) -> None:
    """The cache still has ours, which was deleted."""
    await enforced(shop, owner)
    old = await shop.get(ROUTES, "web", owner.namespace)
    await shop.delete(Ref(ROUTES, "web", owner.namespace))
    foreign = {"apiVersion": ROUTES.api_version, "kind": "VirtualService"}
    metadata = {"name": "web", "namespace": owner.namespace}
    before = await shop.create(Untyped({**foreign, "metadata": metadata, "spec": {"hosts": ["theirs"]}}))
    cached = Behind(shop, {("VirtualService", "web"): old})
    after = await enforced(cached, owner, 20)  # type: ignore[arg-type]
    assert [(conflict.kind, conflict.name) for conflict in after.conflicts] == [("VirtualService", "web")]
    assert (await shop.get(ROUTES, "web", owner.namespace)).raw == before.raw


async def test_one_that_was_deleted_in_between_is_made_again(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforced(shop, owner)
    old = await shop.get(ROUTES, "web", owner.namespace)
    await shop.delete(Ref(ROUTES, "web", owner.namespace))
    cached = Behind(shop, {("VirtualService", "web"): old})
    after = await enforced(cached, owner, 20, expected=ALL)  # type: ignore[arg-type]
    assert after.made == (("VirtualService", "web"),)
    assert [drift.kind for drift in after.drifts] == ["VirtualService"]
    assert after.objects["VirtualService", "web"]["metadata"]["uid"] != old.metadata.uid


async def test_nothing_is_made_for_one_that_is_being_deleted(shop: ApiClient, owner: CanaryDeployment) -> None:
    await enforce(shop, owner, [stable_service(owner)], adopt=False)
    going = owner.replace(metadata=msgspec.structs.replace(owner.metadata, deletion_timestamp=datetime.now(UTC)))
    after = await enforced(shop, going, adopt=True)
    assert (list(after.objects), after.made) == ([("Service", "web")], ())


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


class Behind:
    """A client whose cache is behind: it has these objects, and no others."""

    def __init__(self, client: ApiClient, objects: dict[tuple[str, str], Any], live: Any = None) -> None:
        self._objects, self.live = objects, live or client
        self.scheme, self.apply, self.patch = client.scheme, client.apply, client.patch

    async def get(self, kind: Named, name: str, namespace: str = "") -> Any:
        if (kind.kind, name) not in self._objects:
            raise not_found("things", "", name)
        return self._objects[kind.kind, name]


class Late:
    """A server that was asked a moment too early: at first there is none of anything."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._asked: set[tuple[Any, str]] = set()

    async def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        if (kind, name) not in self._asked:
            self._asked.add((kind, name))
            raise not_found("things", "", name)
        return await self._client.get(kind, name, namespace)


class Untouchable:
    """A client that refuses to write."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.get, self.scheme = client.get, client.scheme

    async def apply(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("nothing is to be written")

    patch = create = delete = apply
