"""Webhooks of whole groups: any resource of such a group is judged, and configurations made later are found."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.runtime.test_certificates import configuration
from tests.runtime.test_webhooks import Nothing, review
from tests.runtime.webhooks_gadgets import ADMISSION
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model import kubernetes
from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Reader
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.certificates.keeper import Certificates, serving_context
from trimtab.runtime.certificates.publish import VALIDATING, Targets
from trimtab.runtime.prepare import prepare
from trimtab.runtime.rights import account, grants, rules_by_place
from trimtab.runtime.system import NAMESPACE, Rule, System
from trimtab.runtime.webhooks.manifest import configurations
from trimtab.runtime.webhooks.review import BadReview
from trimtab.runtime.webhooks.server import WebhookServer
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import LocalTransport, local_client
from trimtab.store.memory import MemoryStore

LABEL = "made.trimtab.dev/webhook"
_numbers = itertools.count(1)


async def said(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
    kind = request.kind
    return Denied(message=f"{kind.kind} {kind.resource} {kind.version} {request.subresource} {request.namespace}")


WIDE = Admission(name="wide", groups=("*.made",), function=said, subresources=("", "scale"))


async def judged(**request: Any) -> str:
    """What the server says to a review, without a socket."""
    server = WebhookServer((WIDE,), tls=serving_context(), reader=Nothing())
    document = {"apiVersion": "a.made.trimtab.dev/v2", "kind": "Pump", "metadata": {"name": "a"}, "spec": {}}
    answered = await server._judge(WIDE, json.dumps(review(document, **request)).encode())
    message: str = msgspec.json.decode(answered)["response"]["status"]["message"]
    return message


PUMPS = {"group": "a.made.trimtab.dev", "version": "v2", "resource": "pumps"}


async def test_any_resource_of_a_matching_group_is_judged() -> None:
    text = await judged(resource=PUMPS, kind={"group": PUMPS["group"], "version": "v2", "kind": "Pump"})
    assert text.endswith("Pump pumps.a.made.trimtab.dev v2  default")


async def test_of_a_scale_the_resource_stands_for_the_kind() -> None:
    text = await judged(
        resource=PUMPS, subResource="scale", kind={"group": "autoscaling", "version": "v1", "kind": "Scale"}
    )
    assert text.endswith("pumps pumps.a.made.trimtab.dev v2 scale default")


async def test_a_resource_of_another_group_is_not() -> None:
    with pytest.raises(BadReview, match="does not judge"):
        await judged(resource=PUMPS | {"group": "made.trimtab.dev"})


def test_configurations_have_no_rules_for_a_function_of_groups() -> None:
    names = {
        hook["name"]
        for document in configurations((*ADMISSION, WIDE), name="x", at="https://127.0.0.1")
        for hook in document["webhooks"]
    }
    assert names == {"gadget-owner.trimtab.dev", "gadget-size.trimtab.dev", "gadget-last.trimtab.dev"}
    assert configurations((WIDE,), name="x", at="https://127.0.0.1") == []


@pytest.fixture
async def labelled(client: ApiClient) -> AsyncIterator[Callable[[], Awaitable[Untyped]]]:
    """Makes configurations with a label of the test's own."""
    number = next(_numbers)
    names: list[str] = []

    async def another() -> Untyped:
        names.append(f"labelled-{number}-{len(names)}")
        found: Untyped = await client.create(made(names[-1], f"{LABEL}=yes-{number}"))
        return found

    yield another
    for name in names:
        await client.delete(Ref(VALIDATING, name))


def made(name: str, labels: str) -> Untyped:
    raw = configuration("ValidatingWebhookConfiguration", name).raw
    key, _, value = labels.partition("=")
    return Untyped({**raw, "metadata": {"name": name, "labels": {key: value}}})


def label_of(document: Untyped) -> str:
    return f"{LABEL}={document.raw['metadata']['labels'][LABEL]}"


async def carried(client: ApiClient, name: str) -> bool:
    found = (await client.get(VALIDATING, name)).raw
    return all(hook["clientConfig"].get("caBundle") for hook in found["webhooks"])


async def until_carried(client: ApiClient, document: Untyped) -> None:
    query, since = Query(labels=label_of(document)), document.raw["metadata"]["resourceVersion"]
    async with asyncio.timeout(20), contextlib.aclosing(client.watch(VALIDATING, query, since)) as events:
        async for _ in events:
            if await carried(client, document.name):
                return


async def test_a_configuration_with_the_label_gets_the_bundle(
    client: ApiClient, namespace: str, labelled: Callable[[], Awaitable[Untyped]]
) -> None:
    document = await labelled()
    targets = Targets(labels=label_of(document))
    await Certificates(client, namespace=namespace, name="a", hosts=("h",), targets=targets).refresh()
    assert await carried(client, document.name)


async def test_one_that_comes_later_is_found_at_once(
    client: ApiClient, namespace: str, labelled: Callable[[], Awaitable[Untyped]]
) -> None:
    first = await labelled()
    targets = Targets(labels=label_of(first))
    keeper = Certificates(client, namespace=namespace, name="a", hosts=("h",), targets=targets, interval=3600.0)
    running = asyncio.create_task(keeper.run())
    try:
        await until_carried(client, first)
        await until_carried(client, await labelled())
    finally:
        running.cancel()
        await asyncio.wait({running})


SYSTEM = System(
    name="makers",
    admissions=(WIDE,),
    webhook_labels=f"{LABEL}=yes",
    rules=(
        Rule(
            kinds=("validatingwebhookconfigurations.admissionregistration.k8s.io",), verbs=("patch",), names=("second",)
        ),
    ),
    managed_rules=(
        Rule(kinds=("clusterroles.rbac.authorization.k8s.io",), verbs=("create", "escalate", "bind")),
        Rule(kinds=("clusterrolebindings.rbac.authorization.k8s.io",), verbs=("create",)),
    ),
)
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")


@contextlib.asynccontextmanager
async def as_account(*, manage: bool = False, system: System = SYSTEM) -> AsyncIterator[tuple[ApiClient, ApiClient]]:
    """The owner of a server, and the system's account there."""
    store = MemoryStore()
    server = Server(store)
    await server.start()
    scheme = kubernetes.register(Scheme())
    owner = local_client(server, User("admin", groups=(MASTERS, "system:authenticated")), scheme)
    await prepare(owner, [system], manage=manage)
    client = ApiClient(LocalTransport(server, User(account(system), groups=GROUPS)), scheme)
    await until_allowed(client)
    yield owner, client
    await server.stop()
    await store.close()


async def until_allowed(client: ApiClient) -> None:
    """A server tells nobody when it has taken rights in, so it is asked."""
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(StatusError):
                await client.list(VALIDATING)
                return
            await asyncio.sleep(0)


ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "pumps"},
    "rules": [{"apiGroups": ["a.made.trimtab.dev"], "resources": ["pumps"], "verbs": ["get"]}],
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "pumps"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pumps"},
    "subjects": [{"kind": "ServiceAccount", "name": "makers", "namespace": NAMESPACE}],
}


async def test_a_system_that_may_manage_grants_itself_the_rights_to_a_new_kind() -> None:
    async with as_account(manage=True) as (_, client):
        await client.create(Untyped(ROLE))
        await client.create(Untyped(BINDING))


async def test_one_that_may_not_is_refused() -> None:
    async with as_account(manage=False) as (_, client):
        with pytest.raises(StatusError, match="forbidden"):
            await client.create(Untyped(ROLE))


async def test_one_configuration_that_may_not_be_written_keeps_no_other_from_its_bundle() -> None:
    async with as_account(manage=False) as (owner, client):
        for name in ("first", "second"):
            await owner.create(made(name, f"{LABEL}=yes"))
        targets = Targets(labels=SYSTEM.webhook_labels)
        keeper = Certificates(client, namespace=NAMESPACE, name="makers", hosts=("h",), targets=targets)
        with pytest.raises(StatusError, match=r"first.*forbidden"):
            await keeper.refresh()
        assert await carried(owner, "second")
        assert keeper.ready


async def test_who_may_not_watch_finds_configurations_with_the_next_interval() -> None:
    looks = Rule(
        kinds=("validatingwebhookconfigurations.admissionregistration.k8s.io",), verbs=("get", "list", "patch")
    )
    async with as_account(system=System(name="makers", admissions=(WIDE,), rules=(looks,))) as (owner, client):
        targets = Targets(labels=f"{LABEL}=yes")
        keeper = Certificates(client, namespace=NAMESPACE, name="makers", hosts=("h",), targets=targets, interval=0.02)
        running = asyncio.create_task(keeper.run())
        try:
            for name in ("first", "second"):
                await until_carried(owner, await owner.create(made(name, f"{LABEL}=yes")))
        finally:
            running.cancel()
            await asyncio.wait({running})


def test_who_finds_configurations_by_labels_may_watch_them_all_and_patch_only_by_name() -> None:
    rules = rules_by_place(SYSTEM, Scheme())[""]
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        (["trimtab-makers"], ["get", "patch"]),
        (None, ["get", "list", "watch"]),
        (["second"], ["patch"]),
    ]


def test_managed_rules_are_granted_only_where_systems_manage() -> None:
    def verbs(*, manage: bool) -> set[str]:
        documents = grants(SYSTEM, Scheme(), manage=manage)
        return {verb for d in documents if d["kind"] == "ClusterRole" for r in d["rules"] for verb in r["verbs"]}

    assert "escalate" in verbs(manage=True)
    assert "escalate" not in verbs(manage=False)
