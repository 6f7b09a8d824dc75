"""Objects are brought to what is wanted on both homes, and what is not ours is never touched."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.runtime.conftest import client, scheme
from tests.systems.delivery.objects_home import (
    ALL,
    DEPLOYMENT,
    ROUTES,
    SERVICE,
    Behind,
    Late,
    Untouchable,
    changed,
    enforced,
    in_spec,
    made,
    owner,
    shop,
)
from tests.systems.delivery.objects_kit import REVISION, TEMPLATE, canary
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.objects.enforcing import Enforced, enforce, remove
from trimtab.systems.delivery.objects.routing import weight_of
from trimtab.systems.delivery.objects.services import stable_service
from trimtab.systems.delivery.objects.workloads import stable_deployment

__all__ = ["client", "owner", "scheme", "shop"]

SECRET = "hush"


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
