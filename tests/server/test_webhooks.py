"""Admission webhooks against real HTTPS servers on loopback. Messages are those of kube-apiserver 1.32."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from trimtab.model.errors import StatusError
from trimtab.model.kind import Kind
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.admission.webhook_client import MAX_RESPONSE, WebhookClient
from trimtab.server.admission.webhooks import MUTATING, VALIDATING, Webhooks
from trimtab.server.auth.certificates import Issuer
from trimtab.server.auth.identity import User
from trimtab.server.auth.pki import split_pem

V1 = Kind(group="demo.dev", version="v1", kind="Widget", plural="widgets", schema=None)  # type: ignore[arg-type]
V2 = Kind(group="demo.dev", version="v2", kind="Widget", plural="widgets", schema=None)  # type: ignore[arg-type]
NAMESPACE = Kind(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False, schema=None)  # type: ignore[arg-type]
BOB = User("bob", "u-b", ("devs",), {"k": ("v",)})
NAMESPACES: dict[str, Mapping[str, str]] = {"default": {"team": "a"}, "other": {}}

Handler = Callable[[dict[str, Any]], dict[str, Any]]


class Peer:
    """A webhook server: one behaviour for each path, and what it was asked."""

    def __init__(self, port: int, ca: bytes) -> None:
        self.port = port
        self.ca = ca
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.behaviour: dict[str, Any] = {}
        self.ending = asyncio.Event()
        self.callers: set[asyncio.Transport] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        review = await request.json()
        if request.transport is not None:
            self.callers.add(request.transport)
        self.asked.append((request.path_qs, review))
        behaviour = self.behaviour.get(request.path, {})
        if callable(behaviour):
            behaviour = behaviour(review)
            if isinstance(behaviour, Awaitable):
                behaviour = await behaviour
        if isinstance(behaviour, web.StreamResponse):
            return behaviour
        response = {"uid": review["request"]["uid"], "allowed": True, **behaviour}
        answer = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
        return web.json_response(answer)

    def url(self, path: str) -> str:
        return f"https://localhost:{self.port}{path}"

    async def hang_up(self) -> None:
        """End what callers keep open for later."""
        for transport in self.callers:
            transport.abort()
        await asyncio.sleep(0)


@pytest.fixture(scope="module")
def authority() -> Issuer:
    return Issuer.create("test", datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1))


@pytest.fixture
async def peer(authority: Issuer, tmp_path: Path) -> AsyncIterator[Peer]:
    serving = tmp_path / "serving.pem"
    hosts = ("localhost", "127.0.0.1", "hook.ns.svc")
    serving.write_bytes(authority.serving(hosts, datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(serving)
    peer = Peer(0, authority.certificate_pem)
    application = web.Application()
    application.router.add_post("/{tail:.*}", peer.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    peer.port = runner.addresses[0][1]
    yield peer
    peer.ending.set()
    await runner.cleanup()


async def labels(namespace: str) -> Mapping[str, str] | None:
    return NAMESPACES.get(namespace)


@pytest.fixture
async def webhooks() -> AsyncIterator[Webhooks]:
    webhooks = Webhooks(WebhookClient(), labels, equivalents=lambda kind: (V1,) if kind is V2 else ())
    yield webhooks
    await webhooks.close()


def hook(peer: Peer, path: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": f"{path.strip('/')}.demo.dev",
        "clientConfig": {"url": peer.url(path), "caBundle": base64.b64encode(peer.ca).decode()},
        "rules": [
            {"operations": ["*"], "apiGroups": ["demo.dev"], "apiVersions": ["v1"], "resources": ["widgets"]},
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "admissionReviewVersions": ["v1"],
        **changes,
    }


def configuration(name: str, *hooks: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "webhooks": list(hooks)}


def asked(operation: Operation = Operation.CREATE, **changes: Any) -> AdmissionRequest:
    given: dict[str, Any] = {
        "operation": operation,
        "kind": V1,
        "subresource": "",
        "namespace": "default",
        "name": "w",
        "object": {"apiVersion": "demo.dev/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"l": "1"}}},
        "old": None,
        "user": BOB,
        "dry_run": False,
        "warn": lambda text: None,
    }
    return AdmissionRequest(**(given | changes))


def patching(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def setting(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


async def refused(webhooks: Webhooks, request: AdmissionRequest | None = None) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await webhooks.validate(request or asked())
    return caught.value


async def test_the_review_is_as_the_reference_server_sends_it(webhooks: Webhooks, peer: Peer) -> None:
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v")))
    request = asked()
    await webhooks.validate(request)
    ((path, review),) = peer.asked
    uid = review["request"].pop("uid")
    assert path == "/v?timeout=5s"
    assert len(uid) == 36
    assert review == {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "kind": {"group": "demo.dev", "version": "v1", "kind": "Widget"},
            "resource": {"group": "demo.dev", "version": "v1", "resource": "widgets"},
            "requestKind": {"group": "demo.dev", "version": "v1", "kind": "Widget"},
            "requestResource": {"group": "demo.dev", "version": "v1", "resource": "widgets"},
            "name": "w",
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "bob", "uid": "u-b", "groups": ["devs"], "extra": {"k": ["v"]}},
            "object": request.object,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ({"message": "no"}, 400, 'admission webhook "v.demo.dev" denied the request: no'),
        ({"reason": "Because", "code": 403}, 403, 'admission webhook "v.demo.dev" denied the request: Because'),
        ({"code": 200}, 400, 'admission webhook "v.demo.dev" denied the request without explanation'),
        (None, 400, 'admission webhook "v.demo.dev" denied the request without explanation'),
    ],
)
async def test_a_denial_is_passed_on_with_the_name_of_the_webhook(
    webhooks: Webhooks, peer: Peer, status: Any, code: int, message: str
) -> None:
    peer.behaviour["/v"] = {"allowed": False, "status": status}
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v")))
    error = await refused(webhooks)
    assert (error.code, error.message) == (code, message)


def _unknown_uid(review: dict[str, Any]) -> dict[str, Any]:
    return {"uid": "x"}


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (lambda _: web.Response(status=500, text="broken"), 'an error on the server ("broken") has prevented'),
        (lambda _: web.Response(status=404), "the server could not find the requested resource"),
        (lambda _: web.Response(text="{}"), "received invalid webhook response: webhook response was absent"),
        (lambda _: web.Response(text="[1"), "the answer is not an AdmissionReview"),
        (lambda _: web.Response(body=b" " * (MAX_RESPONSE + 1)), "the answer is over 8388608 bytes"),
        (_unknown_uid, "received invalid webhook response: expected response.uid="),
        (patching(), "received invalid webhook response: validating webhook may not return response.patch"),
    ],
)
async def test_a_webhook_that_fails_refuses_unless_failures_are_ignored(
    webhooks: Webhooks, peer: Peer, behaviour: Any, reason: str
) -> None:
    peer.behaviour["/v"] = behaviour
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v")))
    error = await refused(webhooks)
    assert error.code == 500
    assert error.message.startswith('Internal error occurred: failed calling webhook "v.demo.dev": ')
    assert reason in error.message
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", failurePolicy="Ignore")))
    await webhooks.validate(asked())


async def test_a_webhook_that_is_not_there_is_named_with_its_address(webhooks: Webhooks, peer: Peer) -> None:
    gone = hook(peer, "/v")
    gone["clientConfig"]["url"] = "https://127.0.0.1:1/v"
    webhooks.upsert(VALIDATING, configuration("c", gone))
    assert (await refused(webhooks)).message == (
        'Internal error occurred: failed calling webhook "v.demo.dev": failed to call webhook: '
        'Post "https://127.0.0.1:1/v?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused'
    )


async def test_a_slow_webhook_is_given_up_after_its_timeout(webhooks: Webhooks, peer: Peer) -> None:
    async def forever(_: Any) -> dict[str, Any]:
        await peer.ending.wait()
        return {}

    peer.behaviour["/v"] = forever
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", timeoutSeconds=1)))
    async with asyncio.timeout(10):
        assert (await refused(webhooks)).message.endswith('?timeout=1s": context deadline exceeded')


async def test_a_mutating_webhook_that_fails_changes_nothing_when_failures_are_ignored(
    webhooks: Webhooks, peer: Peer
) -> None:
    peer.behaviour["/m"] = lambda _: web.Response(body=b"not an AdmissionReview")
    webhooks.upsert(MUTATING, configuration("c", hook(peer, "/m", failurePolicy="Ignore")))
    wanted = asked()
    assert await webhooks.mutate(wanted) == wanted.object


async def test_a_bundle_may_hold_the_certificate_of_the_webhook_itself(
    webhooks: Webhooks, peer: Peer, tmp_path: Path
) -> None:
    """As Go has it, and as envtest does it."""
    peer.ca = split_pem((tmp_path / "serving.pem").read_bytes())[0]
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v")))
    await webhooks.validate(asked())
    assert len(peer.asked) == 1


async def test_the_path_of_a_webhooks_url_is_cleaned(webhooks: Webhooks, peer: Peer) -> None:
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "//v//w/")))
    await webhooks.validate(asked())
    assert [path for path, _ in peer.asked] == ["/v/w?timeout=5s"]


async def test_a_certificate_of_another_authority_is_not_trusted(webhooks: Webhooks, peer: Peer) -> None:
    peer.ca = Issuer.create("x", datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)).certificate_pem
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v")))
    message = (await refused(webhooks)).message
    assert message.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
    assert peer.asked == []


async def test_without_a_ca_bundle_the_roots_of_the_system_decide(webhooks: Webhooks, peer: Peer) -> None:
    open_hook = hook(peer, "/v")
    del open_hook["clientConfig"]["caBundle"]
    webhooks.upsert(VALIDATING, configuration("c", open_hook))
    assert "x509" in (await refused(webhooks)).message


@pytest.mark.parametrize("url", ["http://localhost:1/", "", "https:///x"])
async def test_only_https_is_called(webhooks: Webhooks, peer: Peer, url: str) -> None:
    plain = hook(peer, "/v")
    plain["clientConfig"]["url"] = url
    webhooks.upsert(VALIDATING, configuration("c", plain))
    assert "https" in (await refused(webhooks)).message


async def test_a_redirect_is_not_followed(webhooks: Webhooks, peer: Peer) -> None:
    peer.behaviour["/v"] = lambda _: web.Response(status=307, headers={"Location": peer.url("/other")})
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v")))
    await refused(webhooks)
    assert [path for path, _ in peer.asked] == ["/v?timeout=5s"]


async def test_a_service_is_reached_through_the_resolver_under_its_own_name(peer: Peer) -> None:
    async def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        assert (namespace, name, port) == ("ns", "hook", 443)
        return "127.0.0.1", peer.port

    webhooks = Webhooks(WebhookClient(resolve), labels)
    service = hook(peer, "/v")
    service["clientConfig"] = {**service["clientConfig"], "url": None}
    service["clientConfig"]["service"] = {"namespace": "ns", "name": "hook", "path": "/v"}
    webhooks.upsert(VALIDATING, configuration("c", service))
    await webhooks.validate(asked())
    await webhooks.close()
    assert len(peer.asked) == 1


async def test_a_service_without_a_resolver_fails_clearly(webhooks: Webhooks, peer: Peer) -> None:
    service = hook(peer, "/v", clientConfig={"service": {"namespace": "ns", "name": "hook"}})
    webhooks.upsert(VALIDATING, configuration("c", service))
    assert (await refused(webhooks)).message.endswith(
        'Post "https://hook.ns.svc:443/?timeout=5s": this server cannot reach Services: give the webhook a url'
    )


async def test_mutations_build_on_each_other_in_the_order_of_names(webhooks: Webhooks, peer: Peer) -> None:
    peer.behaviour["/first"] = patching(setting("/spec", {"by": "first"}))
    peer.behaviour["/second"] = patching(setting("/spec/then", "second"))
    webhooks.upsert(MUTATING, configuration("b", hook(peer, "/second")))
    webhooks.upsert(MUTATING, configuration("a", hook(peer, "/first")))
    mutated = await webhooks.mutate(asked())
    assert mutated["spec"] == {"by": "first", "then": "second"}
    assert peer.asked[1][1]["request"]["object"]["spec"] == {"by": "first"}


async def test_a_webhook_is_asked_again_when_a_later_one_changed_the_object(webhooks: Webhooks, peer: Peer) -> None:
    peer.behaviour["/a"] = {}
    peer.behaviour["/b"] = patching(setting("/spec", {"b": 1}))
    webhooks.upsert(
        MUTATING,
        configuration(
            "c",
            hook(peer, "/a", reinvocationPolicy="IfNeeded"),
            hook(peer, "/never"),
            hook(peer, "/b", reinvocationPolicy="IfNeeded"),
        ),
    )
    await webhooks.mutate(asked())
    assert [path.partition("?")[0] for path, _ in peer.asked] == ["/a", "/never", "/b", "/a"]


async def test_nothing_is_asked_again_when_nothing_changed(webhooks: Webhooks, peer: Peer) -> None:
    peer.behaviour["/b"] = patching(setting("/metadata/name", "w"))
    again = {"reinvocationPolicy": "IfNeeded"}
    webhooks.upsert(MUTATING, configuration("c", hook(peer, "/a", **again), hook(peer, "/b", **again)))
    await webhooks.mutate(asked())
    assert len(peer.asked) == 2


async def test_a_deletion_cannot_be_mutated(webhooks: Webhooks, peer: Peer) -> None:
    peer.behaviour["/m"] = patching(setting("/spec", {}))
    webhooks.upsert(MUTATING, configuration("c", hook(peer, "/m")))
    with pytest.raises(StatusError) as caught:
        await webhooks.mutate(asked(Operation.DELETE, object=None, old={"metadata": {"name": "w"}}))
    assert caught.value.message == (
        'Internal error occurred: admission webhook "m.demo.dev" attempted to modify the object, '
        "which is not supported for this operation"
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"patch": "W10="}, "webhook returned response.patch but not response.patchType"),
        ({"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
        ({"patch": "W10=", "patchType": "Merge"}, 'unsupported patch type "Merge"'),
    ],
)
async def test_half_a_patch_is_a_failure(webhooks: Webhooks, peer: Peer, answer: dict[str, str], reason: str) -> None:
    peer.behaviour["/m"] = answer
    webhooks.upsert(MUTATING, configuration("c", hook(peer, "/m")))
    with pytest.raises(StatusError, match=reason):
        await webhooks.mutate(asked())


async def test_warnings_and_audit_annotations_come_back(webhooks: Webhooks, peer: Peer) -> None:
    peer.behaviour["/v"] = {"warnings": ["careful"], "auditAnnotations": {"k": "v"}}
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v")))
    warnings: list[str] = []
    told: dict[str, str] = {}
    await webhooks.validate(asked(warn=warnings.append, annotate=told.__setitem__))
    assert told == {"v.demo.dev/k": "v"}
    assert warnings == ["careful"]


async def test_validating_webhooks_are_asked_at_the_same_time(webhooks: Webhooks, peer: Peer) -> None:
    barrier = asyncio.Barrier(2)

    async def together(_: Any) -> dict[str, Any]:
        await barrier.wait()
        return {}

    peer.behaviour = {"/a": together, "/b": together}
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/a"), hook(peer, "/b")))
    await webhooks.validate(asked())


@pytest.mark.parametrize(("effects", "supported"), [("None", True), ("NoneOnDryRun", True), ("Some", False)])
async def test_a_dry_run_needs_a_webhook_without_side_effects(
    webhooks: Webhooks, peer: Peer, effects: str, supported: bool
) -> None:
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", sideEffects=effects)))
    request = asked(dry_run=True)
    if supported:
        await webhooks.validate(request)
        assert peer.asked[0][1]["request"]["options"]["dryRun"] == ["All"]
    else:
        error = await refused(webhooks, request)
        assert (error.code, error.message) == (400, 'admission webhook "v.demo.dev" does not support dry run')


def rule(**changes: Any) -> dict[str, Any]:
    given = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    return {"rules": [given | changes]}


@pytest.mark.parametrize(
    ("changes", "request_changes", "called"),
    [
        (rule(), {}, True),
        (rule(operations=["UPDATE"]), {}, False),
        (rule(apiGroups=["apps"]), {}, False),
        (rule(resources=["widgets/*"]), {}, True),
        (rule(resources=["widgets/*"]), {"subresource": "status"}, True),
        (rule(resources=["*/status"]), {"subresource": "status"}, True),
        (rule(resources=["*"]), {"subresource": "status"}, False),
        (rule(resources=["*/*"]), {"subresource": "scale"}, True),
        (rule(scope="Cluster"), {}, False),
        (rule(scope="Namespaced"), {}, True),
        (rule(scope="Cluster"), {"kind": NAMESPACE, "namespace": ""}, True),
        (rule(apiVersions=["v1"]), {"kind": V2}, True),
        ({**rule(apiVersions=["v1"]), "matchPolicy": "Exact"}, {"kind": V2}, False),
        ({"objectSelector": {"matchLabels": {"l": "1"}}}, {}, True),
        ({"objectSelector": {"matchLabels": {"l": "2"}}}, {}, False),
        ({"objectSelector": {"matchLabels": {"l": "2"}}}, {"old": {"metadata": {"labels": {"l": "2"}}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, {}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, {"namespace": "other"}, False),
        ({**rule(), "namespaceSelector": {"matchLabels": {"l": "1"}}}, {"kind": NAMESPACE, "namespace": ""}, True),
        ({**rule(), "namespaceSelector": {"matchLabels": {"l": "2"}}}, {"kind": NAMESPACE, "namespace": ""}, False),
        ({"matchConditions": [{"name": "a", "expression": "object.metadata.name == 'w'"}]}, {}, True),
        ({"matchConditions": [{"name": "a", "expression": "request.userInfo.username != 'bob'"}]}, {}, False),
        (
            {
                "matchConditions": [
                    {"name": "a", "expression": "object.nothing == 1"},
                    {"name": "b", "expression": "request.operation == 'DELETE'"},
                ]
            },
            {},
            False,
        ),
    ],
)
async def test_a_webhook_is_called_for_what_it_asked_for(
    webhooks: Webhooks, peer: Peer, changes: dict[str, Any], request_changes: dict[str, Any], called: bool
) -> None:
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", **changes)))
    await webhooks.validate(asked(**request_changes))
    assert bool(peer.asked) is called


async def test_a_condition_that_cannot_be_evaluated_refuses_unless_failures_are_ignored(
    webhooks: Webhooks, peer: Peer
) -> None:
    conditions = {"matchConditions": [{"name": "a", "expression": "object.nothing == 1"}]}
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", **conditions)))
    error = await refused(webhooks)
    assert (error.code, error.message) == (
        403,
        (
            "widgets.demo.dev \"w\" is forbidden: expression 'object.nothing == 1' resulted in error: "
            "no such key: nothing"
        ),
    )
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", failurePolicy="Ignore", **conditions)))
    await webhooks.validate(asked())
    assert peer.asked == []


async def test_an_equivalent_version_is_sent_and_its_patch_comes_back_in_the_requested_one(
    webhooks: Webhooks, peer: Peer
) -> None:
    peer.behaviour["/m"] = patching(setting("/spec", {}))
    webhooks.upsert(MUTATING, configuration("c", hook(peer, "/m")))
    document = {"apiVersion": "demo.dev/v2", "kind": "Widget", "metadata": {"name": "w"}}
    mutated = await webhooks.mutate(asked(kind=V2, object=document))
    sent = peer.asked[0][1]["request"]
    assert (sent["kind"]["version"], sent["requestKind"]["version"]) == ("v1", "v2")
    assert sent["object"]["apiVersion"] == "demo.dev/v1"
    assert mutated == {**document, "spec": {}}


async def test_webhook_configurations_are_exempt(webhooks: Webhooks, peer: Peer) -> None:
    exempt = Kind(
        group="admissionregistration.k8s.io",
        version="v1",
        kind="ValidatingWebhookConfiguration",
        plural=VALIDATING,
        namespaced=False,
        schema=None,  # type: ignore[arg-type]
    )
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", **rule())))
    request = asked(kind=exempt, namespace="")
    await webhooks.validate(request)
    assert not webhooks.validates(request)
    assert peer.asked == []


async def test_a_removed_configuration_is_not_asked(webhooks: Webhooks, peer: Peer) -> None:
    webhooks.upsert(MUTATING, configuration("c", hook(peer, "/m")))
    assert webhooks.mutates(asked())
    webhooks.remove(MUTATING, "c")
    assert not webhooks.mutates(asked())


async def test_the_older_review_version_is_spoken_when_asked_for(webhooks: Webhooks, peer: Peer) -> None:
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", admissionReviewVersions=["v9", "v1beta1"])))
    await webhooks.validate(asked())
    assert peer.asked[0][1]["apiVersion"] == "admission.k8s.io/v1beta1"


async def test_no_known_review_version_is_a_failure(webhooks: Webhooks, peer: Peer) -> None:
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", admissionReviewVersions=["v9"])))
    assert (await refused(webhooks)).message == (
        'Internal error occurred: failed calling webhook "v.demo.dev": could not create admission objects: '
        "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    )
