"""The kinds of image discovery on our server and on a real kube-apiserver: what the CRDs alone take, default and refuse."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.systems.images.documents import SPECS, VERSION, made
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.systems.images.kinds import DiscoveryJob, Registry

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def refusal(client: ApiClient, obj: Untyped) -> str:
    with pytest.raises(StatusError) as refused:
        await client.create(obj, dry_run=True)
    assert refused.value.code == 422
    return refused.value.message


async def changed(client: ApiClient, old: Untyped, **spec: Any) -> str:
    """What is said to a change of an object's spec; "" when it is taken."""
    now = await client.get(Named(VERSION, old.kind), old.name, old.namespace)
    try:
        await client.patch(now, Untyped({**now.raw, "spec": {**now.raw["spec"], **spec}}))
    except StatusError as error:
        return f"{error.reason}: {error.message}"
    return ""


@pytest.mark.parametrize("kind", SPECS)
async def test_every_kind_is_served(defined: ApiClient, namespace: str, kind: str) -> None:
    await defined.create(made(kind, "one", namespace))
    assert (await defined.get(Named(VERSION, kind), "one", namespace)).kind == kind


async def test_the_defaults_are_those_of_the_classes(defined: ApiClient, namespace: str) -> None:
    await defined.create(made("Registry", "usual", namespace, discoverySchedule={}))
    await defined.create(made("DiscoveryJob", "usual", namespace))
    spec = (await defined.get(Named(VERSION, "Registry"), "usual", namespace)).raw["spec"]
    assert {name: spec[name] for name in ("catalogType", "skipTLSVerify", "plainHTTP", "discoveryTimeout")} == {
        "catalogType": "Auto",
        "skipTLSVerify": False,
        "plainHTTP": False,
        "discoveryTimeout": "1h",
    }
    assert spec["removal"] == {"grace": "1d", "maxPercent": 50}
    assert spec["discoverySchedule"]["timeZone"] == "UTC"
    assert (await defined.get(DiscoveryJob, "usual", namespace)).spec.until == "SBOMs"


LONG = "x" * 2049


@pytest.mark.parametrize(
    ("kind", "spec", "says"),
    [
        ("Registry", {"uri": None}, "spec.uri: Required value"),
        ("Registry", {"uri": "x" * 256}, "spec.uri"),
        ("Registry", {"plainHTTP": True, "skipTLSVerify": True}, "plainHTTP has no certificate to verify"),
        ("Registry", {"catalogType": "Guess"}, 'Unsupported value: "Guess"'),
        ("Registry", {"repositories": ["a", "b", "a"]}, "Duplicate value"),
        ("Registry", {"repositories": [""]}, "spec.repositories[0]"),
        ("Registry", {"repositories": ["x" * 256]}, "spec.repositories[0]"),
        ("Registry", {"filters": [{"matchConditions": []}]}, "spec.filters[0].matchConditions"),
        (
            "Registry",
            {"filters": [{"matchConditions": [{"name": "a", "expression": LONG}]}]},
            "spec.filters[0].matchConditions[0].expression",
        ),
        (
            "Registry",
            {"filters": [{"matchConditions": [{"name": "a", "expression": "true"}] * 2}]},
            "Duplicate value",
        ),
        (
            "Registry",
            {"filters": [{"matchConditions": [{"name": "a", "expression": "true"}], "matchOperator": "Xor"}]},
            'Unsupported value: "Xor"',
        ),
        ("Registry", {"discoverySchedule": {"discoveryPeriod": "soon"}}, "spec.discoverySchedule.discoveryPeriod"),
        ("Registry", {"discoverySchedule": {"cronSchedule": ["@daily"] * 17}}, "spec.discoverySchedule.cronSchedule"),
        ("Registry", {"removal": {"maxPercent": 0}}, "spec.removal.maxPercent"),
        ("Registry", {"removal": {"maxPercent": 101}}, "spec.removal.maxPercent"),
        ("Registry", {"jobsHistoryLimit": -1}, "spec.jobsHistoryLimit"),
        ("Registry", {"caBundle": "x" * 65537}, "spec.caBundle"),
        ("Registry", {"notifications": {}}, "spec.notifications.tokenSecret"),
        ("DiscoveryJob", {"registry": None}, "spec.registry: Required value"),
        ("DiscoveryJob", {"registry": ""}, "spec.registry"),
        ("DiscoveryJob", {"manualGUID": "x" * 129}, "spec.manualGUID"),
        ("DiscoveryJob", {"until": "Tomorrow"}, 'Unsupported value: "Tomorrow"'),
        ("Image", {"digest": None}, "spec.digest: Required value"),
        ("SBOM", {"documents": None}, "spec.documents: Required value"),
        ("VulnerabilityReport", {"summary": {"critical": -1}}, "spec.summary.critical"),
        ("VulnerabilityReport", {"scannedAt": "yesterday"}, "spec.scannedAt"),
        ("VEXSource", {"inline": None}, "spec"),
        ("VEXSource", {"configMap": {"name": "statements"}}, "spec"),
        ("VEXSource", {"inline": "x" * 131073}, "spec.inline"),
    ],
)
async def test_a_schema_refuses(defined: ApiClient, namespace: str, kind: str, spec: dict[str, Any], says: str) -> None:
    assert says in await refusal(defined, made(kind, "bad", namespace, **spec))


async def test_the_name_of_a_registry_leaves_room_for_that_of_its_job(defined: ApiClient, namespace: str) -> None:
    assert "239 characters at most" in await refusal(defined, made("Registry", "x" * 240, namespace))
    await defined.create(made("Registry", "x" * 239, namespace))
    await defined.create(made("DiscoveryJob", f"discovery-job-{'x' * 239}", namespace, registry="x" * 239))


async def test_a_job_stays_with_its_registry(defined: ApiClient, namespace: str) -> None:
    old = made("DiscoveryJob", "one", namespace)
    await defined.create(old)
    said = await changed(defined, old, registry="other")
    assert said.startswith("Invalid: ")
    assert "may not be changed" in said
    assert await changed(defined, old, manualGUID="again", until="Reports") == ""


async def test_a_registry_is_as_it_was_when_it_comes_back(defined: ApiClient, namespace: str) -> None:
    spec = {
        "repositories": ["team/app", "team/web"],
        "filters": [{"repository": "team/*", "matchConditions": [{"name": "a", "expression": "tag != 'x'"}]}],
        "platforms": [{"os": "linux", "architecture": "arm64"}],
        "discoverySchedule": {"cronSchedule": ["30 2 * * *"], "discoveryPeriod": "1d", "timeZone": "Europe/Berlin"},
        "scanSchedule": {"scanPeriod": "2w"},
        "notifications": {"tokenSecret": "told"},
    }
    await defined.create(made("Registry", "whole", namespace, **spec))
    found = await defined.get(Registry, "whole", namespace)
    assert found.spec.repositories == ("team/app", "team/web")
    assert found.spec.filters[0].match_operator == "And"
    assert found.spec.discovery_schedule
    assert found.spec.discovery_schedule.discovery_period.seconds == 86400  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["Image", "SBOM", "VulnerabilityReport"])
async def test_images_and_what_is_theirs_are_found_by_tag_and_digest(
    defined: ApiClient, namespace: str, kind: str
) -> None:
    await defined.create(made(kind, "one", namespace))
    await defined.create(made(kind, "two", namespace, tag="2.0"))
    query = Query(namespace=namespace, fields="spec.registry=lab,spec.repository=team/app,spec.tag=2.0")
    assert [item.name for item in (await defined.list(Named(VERSION, kind), query)).items] == ["two"]


CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Discovered",
    "message": "3 images",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("kind", "status", "row"),
    [
        (
            "Registry",
            {"conditions": [CONDITION], "images": 3},
            {"URI": "https://registry.example.com", "Ready": "True", "Reason": "Discovered", "Images": 3},
        ),
        (
            "DiscoveryJob",
            {
                "type": "manual",
                "conditions": [{**CONDITION, "type": "Completed", "reason": "Succeeded"}],
                "images": {"discovered": 3, "sboms": 2, "failed": 1},
            },
            {"Registry": "lab", "Type": "manual", "Completed": "True", "Reason": "Succeeded", "Images": 3, "Failed": 1},
        ),
        (
            "Image",
            {"conditions": [CONDITION]},
            {"Repository": "team/app", "Tag": "1.0", "Platform": "linux/amd64", "Ready": "True"},
        ),
        ("SBOM", None, {"Repository": "team/app", "Tag": "1.0", "Packages": 0}),
        ("VulnerabilityReport", None, {"Tag": "1.0", "Critical": 1, "High": 0, "Suppressed": 0}),
        ("VEXSource", {"conditions": [CONDITION], "documents": 1}, {"Ready": "True", "Documents": 1}),
    ],
)
async def test_kubectl_get_shows_what_matters(
    defined: ApiClient, namespace: str, kind: str, status: Any, row: dict[str, Any]
) -> None:
    one = await defined.create(made(kind, "one", namespace))
    raw = one.raw if isinstance(one, Untyped) else defined.scheme.document(one)
    if status is not None:
        await defined.patch(Untyped(raw), Untyped({**raw, "status": status}), subresource="status")
    place = await defined.place(Named(VERSION, kind))
    reply = await defined.transport.call(Call(method="GET", path=place.path(namespace), accept=TABLE))
    table = msgspec.json.decode(reply.body)
    names = [column["name"] for column in table["columnDefinitions"]]
    shown = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert {name: shown[name] for name in row} == row
    assert names[0] == "Name"
    assert names[-1] == "Age"


async def test_the_last_discovery_shows_as_an_age(defined: ApiClient, namespace: str) -> None:
    document = made("Registry", "one", namespace).raw
    document["metadata"]["annotations"] = {"images.trimtab.dev/last-discovered-at": "2026-01-01T00:00:00Z"}
    await defined.create(Untyped(document))
    place = await defined.place(Registry)
    reply = await defined.transport.call(Call(method="GET", path=place.path(namespace), accept=TABLE))
    table = msgspec.json.decode(reply.body)
    names = [column["name"] for column in table["columnDefinitions"]]
    assert str(table["rows"][0]["cells"][names.index("Last")]).endswith("d")
