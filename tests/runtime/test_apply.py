"""An apply that would change nothing is not sent; one that would, always is. The server is the oracle."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.follow import follow
from trimtab.client.protocol import Listing, Named, Query
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.apply import apply, changes
from trimtab.runtime.owners import own, owner_reference

ME = "me"
Document = dict[str, Any]


def config_map(namespace: str, **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": namespace}, "data": data}


def deployment(namespace: str) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace, "labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"a/b": "1"}},
                "spec": {
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                    "imagePullSecrets": [{"name": "pull"}],
                    "containers": [
                        {
                            "name": "web",
                            "image": "web:1",
                            "command": ["web", "--port=80"],
                            "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
                            "env": [
                                {"name": "A", "value": "1"},
                                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                                {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                            ],
                            "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
                            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                            "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
                        }
                    ],
                },
            },
        },
    }


def named(api_version: str, kind: str, **more: Any) -> Any:
    """A maker of documents of a namespaced kind."""
    return lambda namespace: {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "namespace": namespace},
        **more,
    }


RBAC = "rbac.authorization.k8s.io"
TYPICAL = {
    "deployment": deployment,
    "config map": lambda namespace: config_map(namespace, a="1"),
    "definition": lambda _: definition(),
    "service": named(
        "v1",
        "Service",
        spec={"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    ),
    "secret": named("v1", "Secret", type="Opaque", data={"k": "AAAA"}),
    "role": named(
        f"{RBAC}/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    ),
    "role binding": named(
        f"{RBAC}/v1",
        "RoleBinding",
        roleRef={"apiGroup": RBAC, "kind": "Role", "name": "x"},
        subjects=[{"kind": "ServiceAccount", "name": "x", "namespace": "y"}],
    ),
    "disruption budget": named(
        "policy/v1",
        "PodDisruptionBudget",
        spec={"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
    ),
    "lease": named("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "me", "leaseDurationSeconds": 15}),
}

WIDGET = Named("apply.test.trimtab.dev/v1", "Widget")


def definition() -> Document:
    """A kind with every way that a schema has to say how fields are merged."""
    text = {"type": "string"}
    item = {"type": "object", "properties": {"name": text, "port": {"type": "integer", "default": 80}, "note": text}}
    spec = {
        "number": {"type": "number"},
        "count": {"type": "integer"},
        "nullable": {"type": "string", "nullable": True},
        "either": {"x-kubernetes-int-or-string": True},
        "map": {"type": "object", "additionalProperties": text},
        "atomicMap": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "inner": {"type": "object", "properties": {"a": {"type": "string", "default": "one"}, "b": text}},
        "named": {
            "type": "array",
            "items": {**item, "required": ["name"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "port"],
        },
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": item},
        "objects": {"type": "object", "additionalProperties": item},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": {"said": text}},
        },
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.apply.test.trimtab.dev"},
        "spec": {
            "group": "apply.test.trimtab.dev",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


def widget(namespace: str, **spec: Any) -> Document:
    metadata = {"name": "w", "namespace": namespace}
    return {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "metadata": metadata, "spec": spec}


@pytest.fixture
async def widgets(client: ApiClient) -> None:
    """The kind is served."""
    await client.apply(Untyped(definition()), manager="test")
    query = Query(fields="metadata.name=widgets.apply.test.trimtab.dev")
    following = follow(client, Named("apiextensions.k8s.io/v1", "CustomResourceDefinition"), query)
    async for told in following:
        found = told.items if isinstance(told, Listing) else [told.object]
        conditions = [c for item in found for c in item.raw.get("status", {}).get("conditions") or ()]
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            break
    await following.aclose()


async def applied_twice(client: ApiClient, document: Document) -> tuple[Document, Document]:
    first = await client.apply(Untyped(copy.deepcopy(document)), manager=ME)
    second = await apply(client, Untyped(document), manager=ME)
    return first.raw, second.raw


class Counting:
    """A client that counts the applies that go through it."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.applies = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def apply(self, partial: Any, **options: Any) -> Any:
        self.applies += 1
        return await self._client.apply(partial, **options)


@pytest.mark.parametrize("make", TYPICAL.values(), ids=TYPICAL)
async def test_a_second_apply_of_the_same_is_not_sent(client: ApiClient, namespace: str, make: Any) -> None:
    first = (await client.apply(Untyped(make(namespace)), manager=ME)).raw
    while True:  # the server's own controllers write too: CRDs get conditions
        assert not changes(first, make(namespace), ME)
        again = (await client.apply(Untyped(make(namespace)), manager=ME)).raw
        if again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]:
            break
        first = again
    counting = Counting(client)
    await apply(counting, Untyped(make(namespace)), manager=ME)  # type: ignore[arg-type]
    assert counting.applies == 0


async def test_a_custom_object_is_not_sent_twice(client: ApiClient, namespace: str, widgets: None) -> None:
    partial = widget(
        namespace,
        number=1.5,
        count=3,
        either="80%",
        map={"a": "1"},
        inner={"a": "two", "b": "x"},
        named=[{"name": "x", "note": "n"}, {"name": "x", "port": 81}],
        set=["b", "a"],
        list=[{"name": "x", "port": 1}],
        objects={"k": {"name": "x"}},
        free={"any": {"thing": [1]}},
    )
    first, second = await applied_twice(client, partial)
    assert not changes(first, partial, ME)
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_typed_object_is_read_compared_and_sent_only_when_it_differs(client: ApiClient, namespace: str) -> None:
    counting: Any = Counting(client)

    def partial(**data: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace), data=data)

    made = await apply(counting, partial(a="1"), manager=ME)
    same = await apply(counting, partial(a="1"), manager=ME, current=made)
    assert counting.applies == 1
    assert same is made
    changed = await apply(counting, partial(a="2"), manager=ME)
    assert counting.applies == 2
    assert changed.data == {"a": "2"}


async def test_a_child_with_its_owner_is_not_sent_twice(client: ApiClient, namespace: str) -> None:
    owners = [ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)) for name in ("one", "two")]
    one, two = [await client.create(owner) for owner in owners]
    child = ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace, finalizers=("x.dev/y",)), data={"a": "1"})
    counting: Any = Counting(client)
    await apply(counting, own(child, one), manager=ME)
    await apply(counting, own(child, one), manager=ME)
    assert counting.applies == 1
    changed = await apply(counting, own(child, one, block=False), manager=ME)
    assert changed.metadata.owner_references == (owner_reference(one, block=False),)
    both = own(own(child, one), two, controller=False)
    await apply(counting, both, manager=ME)
    await apply(counting, both, manager=ME)
    assert counting.applies == 3
    left = await apply(counting, own(child, one), manager=ME)
    assert left.metadata.owner_references == (owner_reference(one),)


async def test_a_field_left_out_is_a_change_that_is_sent(client: ApiClient, namespace: str) -> None:
    await client.apply(Untyped(config_map(namespace, a="1", b="2")), manager=ME)
    left = await apply(client, Untyped(config_map(namespace, a="1")), manager=ME)
    assert left.raw["data"] == {"a": "1"}


async def test_a_field_of_another_manager_is_taken_over_by_default_and_refused_on_demand(
    client: ApiClient, namespace: str
) -> None:
    await client.apply(Untyped(config_map(namespace, a="theirs")), manager="other")
    with pytest.raises(StatusError) as refused:
        await apply(client, Untyped(config_map(namespace, a="mine")), manager=ME, force=False)
    assert refused.value.code == 409
    taken = await apply(client, Untyped(config_map(namespace, a="mine")), manager=ME)
    assert taken.raw["data"] == {"a": "mine"}


async def test_the_status_has_an_owner_of_its_own(client: ApiClient, namespace: str, widgets: None) -> None:
    await client.create(Untyped(widget(namespace, count=1)))
    partial = {**widget(namespace), "status": {"said": "hello"}}
    del partial["spec"]
    counting: Any = Counting(client)
    said = await apply(counting, Untyped(partial), manager=ME, subresource="status")
    assert said.raw["status"] == {"said": "hello"}
    await apply(counting, Untyped(partial), manager=ME, subresource="status")
    assert counting.applies == 1


def served(partial: Document, fields: Document, **entry: Any) -> Document:
    """A document as the API would serve it, owned by us."""
    owned = {"manager": ME, "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields, **entry}
    return {
        **partial,
        "metadata": {**partial["metadata"], "uid": "u", "resourceVersion": "1", "managedFields": [owned]},
    }


OWNED = {"f:data": {"f:a": {}}}


@pytest.mark.parametrize(
    ("current", "partial"),
    [
        (config_map("n", a="1"), config_map("n", a="1")),
        (served(config_map("n", a="1"), OWNED, operation="Update"), config_map("n", a="1")),
        (served(config_map("n", a="1"), OWNED, manager="other"), config_map("n", a="1")),
        (served(config_map("n", a="1"), OWNED, subresource="status"), config_map("n", a="1")),
        (served(config_map("n", a="1"), OWNED, apiVersion="v2"), config_map("n", a="1")),
        (served(config_map("n", a="1"), {}), config_map("n", a="1")),
        (served(config_map("n", a="1"), OWNED), config_map("n", a="2")),
        (served(config_map("n", a="1"), OWNED), {**config_map("n", a="1"), "apiVersion": "v2"}),
        (served(config_map("n", a="1"), OWNED), {**config_map("n", a="1"), "metadata": {"name": "c", "uid": "other"}}),
        (served(config_map("n", a="1"), OWNED), {**config_map("n"), "data": {"a": None}}),
        (served({**config_map("n"), "data": {"a": 1}}, OWNED), {**config_map("n"), "data": {"a": 1.0}}),
        (served({**config_map("n"), "data": {"a": 1}}, OWNED), {**config_map("n"), "data": {"a": True}}),
    ],
)
def test_in_doubt_it_is_sent(current: Document, partial: Document) -> None:
    assert changes(current, partial, ME)


def test_an_empty_map_that_defaults_filled_is_not_taken_for_an_atomic_one() -> None:
    current = {**widget("n", inner={"a": "one"}), "apiVersion": "x.dev/v1"}
    fields = {"f:spec": {"f:inner": {}}}
    assert changes(served(current, fields, apiVersion="x.dev/v1"), current, ME)


@pytest.mark.parametrize("seed", range(4))
async def test_what_is_dropped_would_have_changed_nothing(
    client: ApiClient, namespace: str, widgets: None, seed: int
) -> None:
    """Two managers apply at random, and someone patches. Whenever `changes` says no, the server agrees."""
    chance = random.Random(seed)
    partial, dropped = random_map(chance, namespace), 0
    for _ in range(60):
        manager = chance.choice([ME, "other"])
        if chance.random() < 0.7:
            partial = chance.choice([random_widget, random_map, random_deployment])(chance, namespace)
        current = await found_or_made(client, partial)
        if chance.random() < 0.2:
            current = await meddled(client, current, chance)
        verdict = changes(current, partial, manager)
        try:
            after = (await client.apply(Untyped(copy.deepcopy(partial)), manager=manager, force=True)).raw
        except StatusError as refused:  # a map whose last field goes is null for a moment, which a schema may forbid
            if refused.code != 422 or not verdict:
                raise
            continue
        moved = after["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]
        assert verdict or not moved, (current, partial)
        dropped += not changes(after, partial, manager)
    assert dropped > 8


async def found_or_made(client: ApiClient, partial: Document) -> Document:
    metadata = partial["metadata"]
    try:
        kind = Named(partial["apiVersion"], partial["kind"])
        found: Document = (await client.get(kind, metadata["name"], metadata["namespace"])).raw
    except StatusError:
        found = (await client.create(Untyped(copy.deepcopy(partial)))).raw
    return found


async def meddled(client: ApiClient, current: Document, chance: random.Random) -> Document:
    """Someone else's change, of the very fields that are applied."""
    new = copy.deepcopy(current)
    if current["kind"] == "ConfigMap":
        new["data"] = {**new.get("data", {}), chance.choice("ab"): chance.choice("12")}
    elif current["kind"] == "Deployment":
        new["spec"]["template"]["spec"]["containers"][0]["resources"] = random_resources(chance)
    else:
        new["spec"] = {**new.get("spec", {}), **random_widget(chance, "")["spec"]}
    patched: Document = (await client.patch(Untyped(current), Untyped(new))).raw
    return patched


def random_map(chance: random.Random, namespace: str) -> Document:
    made = config_map(namespace, **{key: chance.choice("12") for key in "abc" if chance.random() < 0.5})
    if chance.random() < 0.5:
        made["metadata"]["labels"] = {key: chance.choice("12") for key in "ab" if chance.random() < 0.5}
    if chance.random() < 0.3:
        made["metadata"]["finalizers"] = [f"x.dev/{key}" for key in chance.sample("ab", chance.randint(0, 2))]
    return made


def random_deployment(chance: random.Random, namespace: str) -> Document:
    made = deployment(namespace)
    made["spec"]["replicas"] = chance.choice([1, 2])
    pod = made["spec"]["template"]["spec"]
    container = pod["containers"][0]
    container["resources"] = random_resources(chance)
    container["ports"] = chance.sample(container["ports"], chance.randint(0, 2))
    container["env"] = chance.sample(container["env"], chance.randint(0, 3))
    if chance.random() < 0.5:
        pod["nodeSelector"] = chance.choice([{}, {"a": "b"}, {"a": "c"}])
    if chance.random() < 0.5:
        made["spec"]["strategy"] = chance.choice([{}, {"type": "RollingUpdate"}, {"rollingUpdate": {"maxSurge": 1}}])
    if chance.random() < 0.3:
        pod["securityContext"] = {}
    pod["imagePullSecrets"] = [{"name": name} for name in chance.sample("ab", chance.randint(0, 2))]
    return made


def random_resources(chance: random.Random) -> Document:
    amounts = {"cpu": ["1", "1000m", "1.0", "500m"], "memory": ["1Gi", "1024Mi", "1e9", "1G"]}
    chosen = chance.sample(sorted(amounts), chance.randint(0, 2))
    return {"limits": {name: chance.choice(amounts[name]) for name in chosen}} if chosen else {}


def random_widget(chance: random.Random, namespace: str) -> Document:
    def item() -> Document:
        made: Document = {"name": chance.choice("xy")}
        if chance.random() < 0.5:
            made["port"] = chance.choice([80, 81])
        if chance.random() < 0.5:
            made["note"] = chance.choice("pq")
        return made

    def keyed() -> list[Document]:
        found = {(made["name"], made.get("port", 80)): made for made in (item() for _ in range(chance.randint(0, 3)))}
        return list(found.values())

    def texts() -> Document:
        return {key: chance.choice("12") for key in chance.sample("abc", chance.randint(0, 3))}

    fields = {
        "number": lambda: chance.choice([1, 1.0, 1.5]),
        "count": lambda: chance.randint(0, 2),
        "nullable": lambda: chance.choice([None, "", "x"]),
        "either": lambda: chance.choice([80, "80"]),
        "map": texts,
        "atomicMap": texts,
        "inner": lambda: chance.choice([{}, {"a": "one"}, {"a": "two"}, {"b": "x"}]),
        "named": keyed,
        "set": lambda: chance.sample("abc", chance.randint(0, 3)),
        "list": lambda: [item() for _ in range(chance.randint(0, 2))],
        "objects": lambda: {key: item() for key in chance.sample("ab", chance.randint(0, 2))},
        "free": lambda: chance.choice([{}, {"a": 1}, {"a": {"b": [1]}}, {"a": None}]),
    }
    chosen = chance.sample(sorted(fields), chance.randint(0, 3))
    return widget(namespace, **{name: fields[name]() for name in chosen})


def test_a_long_list_is_compared_in_one_pass() -> None:
    """Ten thousand items, whose keys leave one field to its default."""
    items = [{"name": f"n{number}"} for number in range(10_000)]
    partial = {**widget("n", named=items), "apiVersion": "x.dev/v1"}
    held = {**widget("n", named=[{**item, "port": 80} for item in items]), "apiVersion": "x.dev/v1"}
    keys = {f'k:{{"name":"{item["name"]}","port":80}}': {".": {}, "f:name": {}} for item in items}
    current = served(held, {"f:spec": {"f:named": keys}}, apiVersion="x.dev/v1")
    assert not changes(current, partial, ME)
    partial["spec"]["named"] = list(reversed(items))
    assert changes(current, partial, ME)
