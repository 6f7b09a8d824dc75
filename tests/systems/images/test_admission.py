"""Admission of image discovery in both homes: our server calls the functions itself, a kube-apiserver asks a webhook."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.runtime.conftest import ADMIN, HOMES
from tests.runtime.webhooks_gadgets import NAME, serving
from tests.systems.images.documents import KINDS, SPECS, VERSION, VEX, made
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Ref
from trimtab.model.admission import AdmissionRequest, Allowed, Operation, UserInfo
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.webhooks.manifest import configurations
from trimtab.runtime.webhooks.reader import ClientReader
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.systems.images import admission
from trimtab.systems.images.admission import ACCOUNT, ADMISSIONS
from trimtab.systems.images.kinds import Registry
from trimtab.systems.images.runs.claim import PREFIX
from trimtab.testing.pki import Authority

PROBE = made("Registry", "probe", "default", uri="https://")


@pytest.fixture(params=HOMES)
async def judged(request: pytest.FixtureRequest, scheme: Scheme) -> AsyncIterator[ApiClient]:
    """A client of a server that knows the kinds and asks about them."""
    for kind in KINDS:
        scheme.register(kind)
    if request.param == "local":
        store = MemoryStore()
        server = Server(store, admission=ADMISSIONS, scheme=scheme)
        await server.start()
        client = local_client(server, ADMIN, scheme)
        await define(client, scheme)
        yield client
        await server.stop()
        await store.close()
        return
    client = connect(request.getfixturevalue("real_cluster").kubeconfig, scheme=scheme)
    await define(client, scheme)
    async with serving(client, "default", ADMISSIONS, ClientReader(client), scheme=scheme) as (url, certificates):
        hooks = [Untyped(document) for document in configurations(ADMISSIONS, name=NAME, at=url, scheme=scheme)]
        for hook in hooks:
            await client.create(hook)
        await certificates.refresh()
        await until_judged(client)
        yield client
        for hook in hooks:
            await client.delete(Ref(Named(hook.api_version, hook.kind), hook.name))
    await client.close()


@pytest.fixture
async def namespace(judged: ApiClient) -> str:
    name = f"judged-{uuid.uuid4().hex[:12]}"
    await judged.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


async def define(client: ApiClient, scheme: Scheme) -> None:
    for kind in KINDS:
        try:
            await client.create(Untyped(crd(kind, scheme=scheme)))
        except StatusError as error:
            if error.code != 409:
                raise


async def until_judged(client: ApiClient) -> None:
    """API servers tell nobody when they have taken a configuration in, so they are asked."""
    async with asyncio.timeout(30):
        while True:
            if "names no host" in await said(client, PROBE):
                return
            await asyncio.sleep(0.05)


async def said(client: ApiClient, obj: Untyped) -> str:
    """What is said to a creation that is only tried; "" when it would be taken."""
    try:
        await client.create(obj, dry_run=True)
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


async def changed(client: ApiClient, obj: Untyped, **spec: Any) -> str:
    now = await client.get(Named(VERSION, obj.kind), obj.name, obj.namespace)
    raw = now.raw
    try:
        await client.patch(Untyped(raw), Untyped({**raw, "spec": {**raw["spec"], **spec}}))
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


def conditions(*expressions: str) -> list[dict[str, str]]:
    return [{"name": f"c{i}", "expression": expression} for i, expression in enumerate(expressions)]


@pytest.mark.parametrize(
    ("kind", "spec", "says"),
    [
        ("Registry", {"uri": "ftp://registry.example.com"}, "spec.uri: Invalid value"),
        ("Registry", {"uri": "https://registry.example.com/team"}, "has a path: name the registry alone"),
        ("Registry", {"uri": "http://registry.example.com"}, "set plainHTTP to true as well"),
        ("Registry", {"repositories": ["team/app", "Team/App"]}, "spec.repositories[1]: Invalid value"),
        ("Registry", {"repositories": ["team/app:1.0"]}, "without registry and without tag"),
        (
            "Registry",
            {"uri": "docker.io", "repositories": ["nginx", "library/nginx"]},
            "spec.repositories[1]: Duplicate",
        ),
        ("Registry", {"catalogType": "NoCatalog"}, "spec.repositories: Required value"),
        ("Registry", {"filters": [{"matchConditions": conditions("tag ==")}]}, "matchConditions[0].expression"),
        ("Registry", {"filters": [{"matchConditions": conditions("size > 1")}]}, "matchConditions[0].expression"),
        ("Registry", {"filters": [{"matchConditions": conditions("tag")}]}, "matchConditions[0].expression"),
        (
            "Registry",
            {"filters": [{"repository": "te*am", "matchConditions": conditions("true")}]},
            "filters[0].repository",
        ),
        ("Registry", {"caBundle": "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"}, "spec.caBundle"),
        (
            "Registry",
            {"caBundle": "/etc/ssl/ca.crt"},
            "must be certificates that begin with -----BEGIN CERTIFICATE-----",
        ),
        ("Registry", {"caBundle": " "}, "there is nothing in it"),
        ("Registry", {"authSecret": "Registry_Login"}, "spec.authSecret: Invalid value"),
        ("Registry", {"notifications": {"tokenSecret": "a b"}}, "spec.notifications.tokenSecret: Invalid value"),
        ("Registry", {"discoverySchedule": {"cronSchedule": ["@daily", "* * *"]}}, "discoverySchedule.cronSchedule[1]"),
        ("Registry", {"discoverySchedule": {"cronSchedule": ["0 0 2 * * *"]}}, "must have five fields"),
        ("Registry", {"discoverySchedule": {"timeZone": "Mars/Olympus"}}, "spec.discoverySchedule.timeZone"),
        ("Registry", {"discoverySchedule": {"discoveryPeriod": "59s"}}, "discoveryPeriod: Invalid value"),
        ("Registry", {"scanSchedule": {"scanPeriod": "0s"}}, "spec.scanSchedule.scanPeriod"),
        ("Registry", {"discoveryTimeout": "500ms"}, "must be at least 1s and at most 7d"),
        ("Registry", {"discoveryTimeout": "8d"}, "must be at least 1s and at most 7d"),
        ("DiscoveryJob", {"manualGUID": "a\nb"}, "must be printable"),
        ("VEXSource", {"inline": "{"}, "it must be an OpenVEX document in JSON"),
        ("VEXSource", {"inline": '{"statements": []}'}, "spec.inline"),
    ],
)
async def test_what_is_wrong_in_itself_is_refused(
    judged: ApiClient, namespace: str, kind: str, spec: dict[str, Any], says: str
) -> None:
    answer = await said(judged, made(kind, "bad", namespace, **spec))
    assert answer.startswith("422 ")
    assert says in answer


@pytest.mark.parametrize("kind", SPECS)
async def test_what_is_right_is_taken_though_nothing_else_exists(judged: ApiClient, namespace: str, kind: str) -> None:
    assert await said(judged, made(kind, "good", namespace)) == ""


@pytest.mark.parametrize(
    "spec",
    [
        {"uri": "docker.io", "repositories": ["nginx", "team/app"]},
        {"uri": "http://127.0.0.1:5000", "plainHTTP": True},
        {"discoverySchedule": {"cronSchedule": ["30 2 * * MON-FRI", "@weekly"], "timeZone": "Europe/Berlin"}},
        {
            "discoverySchedule": {"discoveryPeriod": "1d"},
            "scanSchedule": {"scanPeriod": "2w"},
            "discoveryTimeout": "7d",
        },
        {"catalogType": "NoCatalog", "repositories": ["team/app"]},
        {"filters": [{"repository": "team/*", "matchConditions": conditions("tag.startsWith('v')", "tag != 'vx'")}]},
    ],
)
async def test_what_registries_need_is_taken(judged: ApiClient, namespace: str, spec: dict[str, Any]) -> None:
    assert await said(judged, made("Registry", "good", namespace, **spec)) == ""


async def test_all_that_is_wrong_is_said_at_once(judged: ApiClient, namespace: str) -> None:
    answer = await said(
        judged,
        made(
            "Registry",
            "bad",
            namespace,
            uri="https://registry.example.com/team",
            repositories=["A", "b", "C"],
            filters=[
                {"repository": "a*b", "matchConditions": conditions("tag ==", "true", "tag")},
                {"matchConditions": conditions("nothing")},
            ],
            discoverySchedule={"cronSchedule": ["x", "@daily", "y"], "timeZone": "X", "discoveryPeriod": "1s"},
            discoveryTimeout="0s",
            caBundle="x",
        ),
    )
    for path in (
        "uri",
        "repositories[0]",
        "repositories[2]",
        "filters[0].repository",
        "filters[0].matchConditions[0].expression",
        "filters[0].matchConditions[2].expression",
        "filters[1].matchConditions[0].expression",
        "caBundle",
        "discoverySchedule.cronSchedule[0]",
        "discoverySchedule.cronSchedule[2]",
        "discoverySchedule.timeZone",
        "discoverySchedule.discoveryPeriod",
        "discoveryTimeout",
    ):
        assert f"spec.{path}: Invalid value" in answer


async def test_every_condition_that_does_not_compile_is_named(judged: ApiClient, namespace: str) -> None:
    filters = [
        {"matchConditions": conditions("true")},
        {"matchConditions": conditions("tag ==", "tag != 'x'", "other == 1")},
    ]
    answer = await said(judged, made("Registry", "bad", namespace, filters=filters))
    assert "spec.filters[1].matchConditions[0].expression" in answer
    assert "spec.filters[1].matchConditions[2].expression" in answer
    assert "matchConditions[1]" not in answer
    assert "spec.filters[0]" not in answer


async def test_a_login_in_a_uri_is_refused_and_not_repeated(judged: ApiClient, namespace: str) -> None:
    answer = await said(judged, made("Registry", "bad", namespace, uri="https://robot:hunter2@registry.example.com"))
    assert "name a Secret in authSecret" in answer
    assert "hunter2" not in answer


async def test_certificates_are_taken_and_a_private_key_is_not(
    judged: ApiClient, namespace: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    ca, key = authority.certificate.read_text(), authority.server("registry").key.read_text()
    assert await said(judged, made("Registry", "good", namespace, caBundle=ca)) == ""
    answer = await said(judged, made("Registry", "bad", namespace, caBundle=ca + key))
    assert "holds a private key" in answer
    assert key.splitlines()[1] not in answer


@pytest.mark.parametrize("name", ["discovery-job-lab", "discovery-job-"])
async def test_the_name_of_a_reserved_job_is_for_its_registry_alone(
    judged: ApiClient, namespace: str, name: str
) -> None:
    if name.endswith("-"):
        document = made("DiscoveryJob", "", namespace, registry="other").raw
        document["metadata"] = {"generateName": name, "namespace": namespace}
        answer = await said(judged, Untyped(document))
    else:
        assert await said(judged, made("DiscoveryJob", name, namespace, registry="lab")) == ""
        answer = await said(judged, made("DiscoveryJob", name, namespace, registry="other"))
    assert answer.startswith("422 ")
    assert "ReservedNameConflict" in answer


async def test_a_registry_that_would_be_refused_today_can_still_be_annotated(
    judged: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = made("Registry", "lab", namespace)
    await judged.create(registry)
    monkeypatch.setattr(admission, "problems", lambda spec: [admission._wrong("spec", "", "it is refused today")])
    assert "it is refused today" in await changed(judged, registry, jobsHistoryLimit=1)
    now = await judged.get(Registry, "lab", namespace)
    await judged.patch(now, now.replace(metadata=msgspec.structs.replace(now.metadata, annotations={"a": "b"})))
    assert (await judged.get(Registry, "lab", namespace)).metadata.annotations == {"a": "b"}


def asked(scheme: Scheme, new: Untyped, old: Untyped | None = None, user: str = "eve") -> AdmissionRequest[Any]:
    for kind in KINDS:
        scheme.register(kind)
    obj = scheme.decode(new.raw)
    return AdmissionRequest(
        operation=Operation.CREATE if old is None else Operation.UPDATE,
        kind=scheme.kind_of(type(obj)),  # type: ignore[arg-type]
        namespace="default",
        name=obj.name,
        object=obj,
        old=None if old is None else scheme.decode(old.raw),
        user=UserInfo(username=user),
    )


class Nothing:
    """A reader of an empty namespace."""

    async def find(self, kind: Any, name: str, namespace: str = "") -> Any:
        return None

    async def list(self, kind: Any, namespace: str = "", labels: str = "") -> Any:
        return []


STATEMENT = {"vulnerability": {"name": "CVE-1"}, "products": [{"@id": "pkg:deb/debian/a"}], "status": "perhaps"}


@pytest.mark.parametrize(
    ("obj", "warning"),
    [
        (made("Registry", "odd", "default", skipTLSVerify=True, authSecret="a"), "is trusted, and gets the login"),
        (
            made("Registry", "odd", "default", uri="a.example.com", plainHTTP=True, authSecret="a"),
            "the login is sent without encryption",
        ),
        (made("Registry", "odd", "default", platforms=[{}]), "spec.platforms[0]: it names nothing, so every platform"),
        (
            made("Registry", "odd", "default", platforms=[{"os": "linux"}, {"os": "Linux", "architecture": "x86_64"}]),
            "spec.platforms[1]: names are those of Go, in lower case: did you mean {os: linux, architecture: amd64}?",
        ),
        (
            made("Registry", "odd", "default", platforms=[{"os": "linux", "architecture": "aarch64"}]),
            "did you mean {os: linux, architecture: arm64}?",
        ),
        (
            made("Registry", "odd", "default", platforms=[{"architecture": "armhf"}]),
            "did you mean {architecture: arm, variant: v7}?",
        ),
        (
            made("Registry", "odd", "default", discoverySchedule={"cronSchedule": ["@daily", "0 0 30 2 *"]}),
            "spec.discoverySchedule.cronSchedule[1]: `0 0 30 2 *` never comes",
        ),
        (made("DiscoveryJob", "odd", "default"), 'there is no Registry "lab" in this namespace'),
        (
            made("VEXSource", "odd", "default", inline=json.dumps({**json.loads(VEX), "statements": [STATEMENT]})),
            "spec.inline: statement 0: its status 'perhaps'",
        ),
        (
            made("VEXSource", "odd", "default", inline=json.dumps({**json.loads(VEX), "timestamp": "nonsense"})),
            "spec.inline: its timestamp 'nonsense' is no time",
        ),
    ],
)
async def test_what_is_hardly_meant_is_taken_with_a_warning(scheme: Scheme, obj: Untyped, warning: str) -> None:
    request = asked(scheme, obj)
    function = next(each.function for each in ADMISSIONS if each.kinds == (type(request.object),))
    answer = await function(request, Nothing())
    assert isinstance(answer, Allowed)
    assert warning in answer.warnings[0]


@pytest.mark.parametrize(
    "spec",
    [
        {"platforms": [{"os": "linux", "architecture": "arm", "variant": "v7"}, {"architecture": "s390x"}]},
        {"discoverySchedule": {"cronSchedule": ["0 0 29 2 *", "@daily", "0 0 31 * *"]}},
    ],
)
async def test_what_may_well_be_meant_has_no_warning(scheme: Scheme, spec: dict[str, Any]) -> None:
    answer = await admission.registry(asked(scheme, made("Registry", "good", "default", **spec)), Nothing())
    assert isinstance(answer, Allowed)
    assert answer.warnings == ()


def annotated(**annotations: str) -> Untyped:
    document = made("Registry", "lab", "default").raw
    document["metadata"]["annotations"] = {f"{PREFIX}{name.replace('_', '-')}": v for name, v in annotations.items()}
    return Untyped(document)


HELD = annotated(running_id="r1", running_discovery_type="manual", last_discovery_type="scheduled")


@pytest.mark.parametrize(
    ("new", "user", "warning"),
    [
        (annotated(last_discovery_type="scheduled"), "eve", "the discovery r1 is canceled"),
        (annotated(running_id="r2", running_discovery_type="manual"), "eve", "change none"),
        (annotated(running_discovery_type="manual"), "eve", "change none"),
        (HELD, "eve", ""),
        (annotated(), ACCOUNT, ""),
    ],
)
async def test_who_changes_a_claim_is_told_what_it_means(scheme: Scheme, new: Untyped, user: str, warning: str) -> None:
    answer = await admission.registry(asked(scheme, new, HELD, user), Nothing())
    assert isinstance(answer, Allowed)
    assert [text for text in answer.warnings if warning in text] == list(answer.warnings)
    assert bool(answer.warnings) is bool(warning)
