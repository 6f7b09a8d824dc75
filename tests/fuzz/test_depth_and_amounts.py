"""Objects that grow by patches, and amounts out of all proportion: refused with a reason, and never a failure of the server."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.server.api import Api, running
from trimtab.model.quantity import Quantity
from trimtab.model.schema import Schema
from trimtab.model.schema.finding import MAX_ERRORS
from trimtab.model.schema.native import _quantity
from trimtab.server.auth.aggregation import aggregated_rules
from trimtab.server.lifecycle.roles import _same

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYS = "/apis/deep.example.com/v1/anys"
ANY = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "anys.deep.example.com"},
    "spec": {
        "group": "deep.example.com",
        "scope": "Cluster",
        "names": {"plural": "anys", "singular": "any", "kind": "Any", "listKind": "AnyList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}


def nested(depth: int) -> Any:
    inner: Any = 1
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def deep(name: str, depth: int) -> dict[str, Any]:
    return {"apiVersion": "deep.example.com/v1", "kind": "Any", "metadata": {"name": name}, "spec": nested(depth)}


LONG = "9" * 5000  # Python reads no number of more than 4300 digits
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    "url",
    [
        f"{MAPS}?resourceVersion={LONG}",
        f"{MAPS}?resourceVersion={2**64}",
        f"{MAPS}?watch=true&resourceVersion={LONG}",
        f"{MAPS}?resourceVersionMatch=Exact&resourceVersion={LONG}",
        f"{MAPS}/kube-root-ca.crt?resourceVersion={LONG}",
        f"{MAPS}?limit={LONG}",
        f"{MAPS}?limit=1_0",
        f"{MAPS}?timeoutSeconds={LONG}",
    ],
)
async def test_numbers_of_thousands_of_digits_are_refused_in_parameters(url: str) -> None:
    async with running() as api:
        assert (await api.get(url)).code == 400


@pytest.mark.parametrize("share", [f"{LONG}%", f"{'0' * 5000}{LONG}%"])
@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment", "PodDisruptionBudget"])
async def test_shares_of_thousands_of_digits_are_refused(kind: str, share: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    selected = {"selector": {"matchLabels": {"a": "b"}}}
    rolling = {"rollingUpdate": {"maxUnavailable": share}}
    url, spec = {
        "DaemonSet": ("apps/v1/namespaces/default/daemonsets", {"updateStrategy": rolling, "template": template}),
        "Deployment": ("apps/v1/namespaces/default/deployments", {"strategy": rolling, "template": template}),
        "PodDisruptionBudget": ("policy/v1/namespaces/default/poddisruptionbudgets", {"minAvailable": share}),
    }[kind]
    async with running() as api:
        answer = await api.post(f"/apis/{url}", {"metadata": {"name": "a"}, "spec": {**selected, **spec}})
        assert answer.code == 422
        assert "must not be greater than 100%" in answer.doc["message"]


@pytest.mark.parametrize("indexes", [LONG, f"0-{LONG}", f"+{LONG},1"])
async def test_indexes_of_thousands_of_digits_are_refused(indexes: str) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    policy = {"rules": [{"succeededIndexes": indexes}]}
    spec = {"completionMode": "Indexed", "completions": 3, "successPolicy": policy, "template": template}
    async with running() as api:
        answer = await api.post("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "a"}, "spec": spec})
        assert answer.code == 422
        assert "too large index" in answer.doc["message"]


def owner(uid: int, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "A", "name": "a", "uid": str(uid), **more}


async def test_tens_of_thousands_of_owners_are_compared_once_each() -> None:
    """Nobody else is answered meanwhile. To compare each with all others took minutes."""
    async with running() as api:
        body = {"metadata": {"name": "a", "ownerReferences": [*map(owner, range(30_000)), owner(7)]}}
        began = time.process_time()
        answer = await api.post(f"{MAPS}?dryRun=All", body)
        assert (answer.code, len(answer.doc["metadata"]["ownerReferences"])) == (201, 30_000)
        assert answer.warnings[0].endswith("please fix your requests; duplicate UID(s) observed: 7")
        assert time.process_time() - began < 10


async def test_thousands_of_controlling_owners_are_not_each_told_with_all_others() -> None:
    async with running() as api:
        owners = [owner(uid, controller=True) for uid in range(3_000)]
        answer = await api.post(MAPS, {"metadata": {"name": "a", "ownerReferences": owners}})
        assert answer.code == 422
        assert "Only one reference can have Controller set to true" in answer.doc["message"]
        assert len(answer.raw) < 10_000_000


def test_thousands_of_problems_in_a_keyed_list_are_compared_with_the_old_state_once_each() -> None:
    """Each was looked for among all items of the old list."""
    item = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 5}}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    schema = Schema(lambda: {"type": "object", "properties": {"spec": {"type": "object", "properties": {"l": keyed}}}})
    old, new = ({"spec": {"l": [{"k": f"k{i}", "v": v} for i in range(20_000)]}} for v in (7, 8))
    new["spec"]["l"][19_999]["v"] = 7  # as it was
    began = time.process_time()
    errors = schema.walk(new, old).errors
    assert (len(errors), errors[-1].path) == (MAX_ERRORS, f"spec.l[{MAX_ERRORS - 1}].v")
    new["spec"]["l"] = [{"k": f"k{i}", "v": 7} for i in range(20_000)]
    assert schema.walk(new, old).errors == []
    assert time.process_time() - began < 10


def test_roles_of_thousands_of_rules_are_gathered_and_compared_once_each() -> None:
    rules = [{"apiGroups": [""], "resources": [f"r{i}"], "verbs": ["get"]} for i in range(10_000)]
    source = {"metadata": {"name": "a", "labels": {"x": "y"}}, "rules": [*rules, rules[0]]}
    chosen = {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}
    began = time.process_time()
    found = aggregated_rules({"metadata": {"name": "b"}, "aggregationRule": chosen}, [source])
    assert found == rules
    assert _same(found, rules[::-1])
    assert time.process_time() - began < 5


async def test_what_is_kept_can_be_listed_in_every_form_however_deep_it_is() -> None:
    async with running() as api:
        await defined(api)
        codes = {depth: (await api.post(ANYS, deep(f"d{depth}", depth))).code for depth in range(225, 253)}
        assert set(codes.values()) == {201, 400}
        for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml"):
            for query in ("", "?pretty=true"):
                assert (await api.get(ANYS + query, accept=accept)).code == 200


async def test_nothing_grows_by_patches_beyond_what_can_be_kept() -> None:
    async with running() as api:
        await defined(api)
        assert (await api.post(ANYS, deep("grows", 200))).code == 201
        more = [{"op": "add", "path": "/spec" + "/a" * 199, "value": nested(200)}]
        answer = await api.send("PATCH", f"{ANYS}/grows", more, "application/json-patch+json")
        assert (answer.code, answer.doc["message"]) == (400, "the object is nested too deeply to be kept")


@pytest.mark.parametrize("amount", ["1e100", "1e999999999", "1" * 100, "1e-65", "1e000099"])
async def test_an_amount_that_nobody_can_count_is_a_bad_request(amount: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": amount}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": amount}},
    }
    async with running() as api:
        assert (await api.post("/api/v1/namespaces/default/pods", pod)).code == 400
        assert (await api.post("/api/v1/namespaces/default/resourcequotas", quota)).code == 400


@given(st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,3}([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,4})?", fullmatch=True))
def test_every_amount_that_a_schema_lets_pass_can_be_read(text: str) -> None:
    if _quantity(text) is None:
        Quantity(text)


async def defined(api: Api) -> None:
    assert (await api.post(CRDS, ANY)).code == 201
    await api.until(ANYS, lambda answer: answer.code == 200)
