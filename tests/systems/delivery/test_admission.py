"""Delivery's admission in both homes: our server calls the functions itself, a kube-apiserver asks a webhook."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.runtime.conftest import HOMES
from tests.systems.delivery.admission_kit import canary, changed, judging, made, said
from tests.systems.delivery.problem_specs import spec
from trimtab.client.api import ApiClient
from trimtab.model.admission import AdmissionRequest, Allowed, Function, Operation
from trimtab.model.kubernetes import register
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.webhooks.reader import ClientReader
from trimtab.systems.delivery import admission
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus

ISTIO = "networking.istio.io/v1"
QUEUE = {"query": 'max(queue{app="{{ target }}",name="{{ variables.queue }}"})'}
USES = {"name": "queue", "templateRef": "queue", "thresholdRange": {"max": 9}}

_numbers = itertools.count(1)


@pytest.fixture
def scheme() -> Scheme:
    return register(Scheme())


@pytest.fixture(params=HOMES)
async def judged(request: pytest.FixtureRequest, scheme: Scheme) -> AsyncIterator[ApiClient]:
    cluster = None if request.param == "local" else request.getfixturevalue("real_cluster").kubeconfig
    async with judging(scheme, cluster) as client:
        yield client


@pytest.fixture
async def namespace(judged: ApiClient) -> str:
    name = f"delivery-admission-{next(_numbers)}"
    await judged.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


async def test_what_is_right_is_taken_though_nothing_else_exists(judged: ApiClient, namespace: str) -> None:
    edge = {"virtualService": {"name": "edge"}, "analysis.metrics.0": USES}
    for obj in (
        canary("web", namespace),
        canary("web", namespace, edge),
        made("MetricTemplate", "queue", namespace, QUEUE),
        made("ReleaseGroup", "shop", namespace, {"members": [{"name": "web"}, {"name": "api"}]}),
    ):
        assert await said(judged, obj) == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"deployment.replicas": "2"}, 'spec.deployment.replicas: Invalid value: "2": must be a whole number'),
        ({"service.ports": []}, "spec.service.ports: Required value"),
        ({"analysis.iterations": 2}, "spec.analysis.iterations: Forbidden"),
        ({"analysis.metrics.0": {**USES, "templateRef": None, "query": "sum("}}, "it is no PromQL"),
        ({"virtualService": {"name": "a", "spec": {}}}, "spec.virtualService"),
    ],
)
async def test_what_is_wrong_in_itself_is_refused(
    judged: ApiClient, namespace: str, changes: dict[str, Any], says: str
) -> None:
    if "analysis.metrics.0" in changes:
        changes = {"analysis.metrics.0": {k: v for k, v in changes["analysis.metrics.0"].items() if v is not None}}
    answer = await said(judged, canary("web", namespace, changes))
    assert answer.startswith("422 ")
    assert says in answer


async def test_templates_and_groups_that_are_wrong_in_themselves_are_refused(judged: ApiClient, namespace: str) -> None:
    assert "it is no PromQL" in await said(judged, made("MetricTemplate", "a", namespace, {"query": "sum("}))
    unknown = made("MetricTemplate", "a", namespace, {"query": "up{a='{{ canary }}'}"})
    assert "{{ canary }} is no variable" in await said(judged, unknown)
    twice = made("ReleaseGroup", "a", namespace, {"members": [{"name": "web"}, {"name": "web"}]})
    assert "spec.members[1]" in await said(judged, twice)


async def test_two_do_not_share_pods_names_or_a_virtual_service(judged: ApiClient, namespace: str) -> None:
    await judged.create(canary("web", namespace, {"virtualService": {"name": "edge"}}))
    same = {"deployment.selector.matchLabels.app": "web", "deployment.template.metadata.labels.app": "web"}
    answer = await said(judged, canary("api", namespace, same))
    assert 'it overlaps with that of the CanaryDeployment "web"' in answer
    assert 'is what the CanaryDeployment "web" calls its canary' in await said(judged, canary("web-canary", namespace))
    driven = canary("api", namespace, {"virtualService": {"name": "edge"}})
    assert "drives the VirtualService edge already" in await said(judged, driven)
    assert await said(judged, canary("api", namespace)) == ""
    assert await said(judged, canary("api", "default", same)) == ""


async def test_a_canary_waits_for_one_group_only(judged: ApiClient, namespace: str) -> None:
    await judged.create(made("ReleaseGroup", "shop", namespace, {"members": [{"name": "web"}, {"name": "api"}]}))
    other = made("ReleaseGroup", "bank", namespace, {"members": [{"name": "ledger"}, {"name": "api"}]})
    assert 'spec.members[1].name: Forbidden: api is in the ReleaseGroup "shop"' in await said(judged, other)


async def test_a_metric_gives_its_template_what_it_wants(judged: ApiClient, namespace: str) -> None:
    await judged.create(made("MetricTemplate", "queue", namespace, QUEUE))
    bare = canary("web", namespace, {"analysis.metrics.0": USES})
    assert "{{ variables.queue }} is not among the metric's variables" in await said(judged, bare)
    given = canary("web", namespace, {"analysis.metrics.0": {**USES, "variables": {"queue": "orders"}}})
    assert await said(judged, given) == ""


async def test_the_selector_does_not_change(judged: ApiClient, namespace: str) -> None:
    web = canary("web", namespace)
    await judged.create(web)
    deployment = spec({"deployment.selector.matchLabels": {"tier": "front"}})["deployment"]
    assert "field is immutable" in await changed(judged, web, deployment=deployment)
    assert await changed(judged, web, progressDeadline="5m") == ""


async def test_one_that_would_be_refused_today_can_still_be_annotated_and_stopped(
    judged: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = canary("web", namespace)
    await judged.create(web)
    wrong = await admission.canary(_request(judged.scheme, canary("web", namespace, {"service.ports": []})), None)  # type: ignore[arg-type]
    monkeypatch.setattr(admission, "problems", lambda canary: list(wrong.errors))  # type: ignore[union-attr]
    assert "spec.service.ports" in await changed(judged, web, progressDeadline="5m")
    assert await changed(judged, web, suspend=True) == ""
    assert await changed(judged, web, abort=True, skipAnalysis=True, retryToken="2") == ""
    now = await judged.get(CanaryDeployment, "web", namespace)
    await judged.patch(now, now.replace(metadata=msgspec.structs.replace(now.metadata, annotations={"a": "b"})))


@pytest.mark.parametrize("judged", ["local"], indirect=True)
async def test_another_virtual_service_is_for_when_nothing_runs(judged: ApiClient) -> None:
    def at(name: str) -> CanaryDeployment:
        found = judged.scheme.decode(canary("web", "default", {"virtualService": {"name": name}}).raw)
        assert isinstance(found, CanaryDeployment)
        return found

    old, new = at("edge").replace(status=CanaryDeploymentStatus(phase="Progressing")), at("other")
    request = AdmissionRequest(
        operation=Operation.UPDATE,
        kind=judged.scheme.kind_of(CanaryDeployment),
        namespace="default",
        name="web",
        object=new,
        old=old,
    )
    answer = await admission.canary(request, ClientReader(judged))
    assert "spec.virtualService.name: Forbidden" in str([str(error) for error in answer.errors])  # type: ignore[union-attr]


@pytest.mark.parametrize("judged", ["local"], indirect=True)
@pytest.mark.parametrize(
    ("function", "obj", "warning"),
    [
        (admission.canary, canary("web", "default", {"analysis.metrics.0": USES}), "no MetricTemplate queue yet"),
        (
            admission.canary,
            canary("web", "default", {"virtualService": {"name": "edge"}}),
            "no VirtualService edge yet",
        ),
        (
            admission.canary,
            canary("web", "default", {"virtualService": {"name": "elsewhere"}}),
            "elsewhere cannot be driven: its routes are not as Istio wants them",
        ),
        (
            admission.canary,
            canary("web", "default", {"virtualService": {"name": "there", "routes": ["first"]}}),
            "there cannot be driven: it has no http route named first",
        ),
        (
            admission.canary,
            canary("other", "default", {"virtualService": {"name": "there"}}),
            "there cannot be driven: no route of it goes to the host other",
        ),
        (
            admission.canary,
            canary("legacy", "default"),
            'it overlaps with that of the Deployment "old"',
        ),
        (admission.canary, canary("web", "default", {"analysis.mirror": True}), "requests that write"),
        (
            admission.template,
            made("MetricTemplate", "later", "default", {"query": 'a{b="{{ variables.new }}"}'}),
            'CanaryDeployment "api" would be wrong: spec.analysis.metrics[0].templateRef',
        ),
        (
            admission.group,
            made("ReleaseGroup", "shop", "default", {"members": [{"name": "web"}, {"name": "api"}]}),
            "spec.members[0]: there is no CanaryDeployment web yet",
        ),
    ],
)
async def test_what_may_come_later_is_taken_with_a_warning(
    judged: ApiClient, function: Function, obj: Untyped, warning: str
) -> None:
    route = {"name": "main", "route": [{"destination": {"host": "web"}}]}
    pods = {"metadata": {"labels": {"app": "legacy"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    for other in (
        made("VirtualService", "elsewhere", "default", {"http": [{"route": []}, "odd"]}, ISTIO),
        made("VirtualService", "there", "default", {"http": [route]}, ISTIO),
        made(
            "Deployment",
            "old",
            "default",
            {"selector": {"matchLabels": {"app": "legacy"}}, "template": pods},
            "apps/v1",
        ),
        canary("api", "default", {"analysis.metrics.0": {**USES, "templateRef": "later"}}),
    ):
        await judged.create(other)
    answer = await function(_request(judged.scheme, obj), ClientReader(judged))
    assert isinstance(answer, Allowed)
    (found,) = [one for one in answer.warnings if warning in one]
    assert found


def test_judging_carries_nothing_heavy() -> None:
    code = (
        "import sys; import trimtab.systems.delivery.admission; "
        "print([name for name in ('aiohttp', 'promql_parser', 'jinja2', 'cryptography') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _request(scheme: Scheme, obj: Untyped) -> AdmissionRequest[Any]:
    typed = scheme.decode(obj.raw)
    assert isinstance(typed, Resource)
    return AdmissionRequest(
        operation=Operation.CREATE,
        kind=scheme.kind_of(type(typed)),
        namespace=obj.namespace,
        name=obj.name,
        object=typed,
    )
