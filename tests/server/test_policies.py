"""ValidatingAdmissionPolicies refuse, warn and note. Messages are those of kube-apiserver 1.32; tests/differential compares
more of them with a real one."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.server.api import Answer, Api, config_map
from trimtab.server.admission.request import AdmissionRequest
from trimtab.server.auth.identity import User
from trimtab.server.auth.pki import ensure_pki
from trimtab.server.auth.tokens import TokenKey

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
BAD = f"{MAPS}?dryRun=All"


def rule(**fields: Any) -> dict[str, Any]:
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]} | fields


def policy(*validations: Any, name: str = "p", **spec: Any) -> dict[str, Any]:
    checks = [{"expression": one} if isinstance(one, str) else one for one in validations]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [rule()]}, "validations": checks} | spec,
    }


def binding(*actions: str, name: str = "b", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": "p", "validationActions": list(actions or ("Deny",))} | spec,
    }


async def enforced(api: Api, document: dict[str, Any], bound: dict[str, Any] | None = None) -> None:
    """The policy and its binding are written, and the server has seen them."""
    for url, one in ((POLICIES, document), (BINDINGS, bound or binding())):
        answer = await api.post(url, one)
        assert answer.code == 201, answer.doc
    await settled(api)


async def settled(api: Api) -> None:
    """A policy that is written after another is followed after it."""
    secrets = {"resourceRules": [rule(resources=["secrets"])]}
    await api.post(POLICIES, policy("false", name="last", matchConstraints=secrets))
    await api.post(BINDINGS, binding(name="last", policyName="last"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    await answered(lambda: api.post("/api/v1/namespaces/default/secrets?dryRun=All", secret), 422)


async def answered(ask: Callable[[], Awaitable[Answer]], code: int) -> Answer:
    """Asked until the answer is this one."""
    async with asyncio.timeout(10):
        while True:
            answer = await ask()
            if answer.code == code:
                return answer
            await asyncio.sleep(0)


def refusal(answer: Answer) -> str:
    assert answer.code == 422, answer.doc
    return str(answer.doc["message"])


async def test_a_write_that_does_not_fulfil_an_expression_is_refused(api: Api) -> None:
    await enforced(api, policy("object.metadata.name.size() < 5"))
    answer = await api.post(MAPS, config_map("too-long"))
    why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.metadata.name.size() < 5"
    assert refusal(answer) == f'configmaps "too-long" is forbidden: {why}'
    assert answer.doc["reason"] == "Invalid"
    assert answer.doc["details"]["causes"] == [{"message": why}]
    assert (await api.post(MAPS, config_map("a"))).code == 201


async def test_a_policy_without_a_binding_does_nothing(api: Api) -> None:
    await api.post(POLICIES, policy("false"))
    await settled(api)
    assert (await api.post(MAPS, config_map("a"))).code == 201


async def test_what_is_gone_refuses_nothing(api: Api) -> None:
    await enforced(api, policy("object.metadata.name != 'a'"))
    assert (await api.post(BAD, config_map("a"))).code == 422
    await api.delete(f"{BINDINGS}/b")
    await answered(lambda: api.post(BAD, config_map("a")), 201)


async def test_a_policy_that_refuses_everything_can_be_repaired(api: Api) -> None:
    """Nobody could ever write again if it judged policies and bindings, too."""
    everything = rule(apiGroups=["*"], apiVersions=["*"], resources=["*/*"])
    await enforced(api, policy("false", matchConstraints={"resourceRules": [everything]}))
    assert (await api.post(BAD, config_map("a"))).code == 422
    assert (await api.merge(f"{POLICIES}/p", {"metadata": {"labels": {"a": "b"}}})).code == 200
    assert (await api.post(f"{BINDINGS}?dryRun=All", binding(name="c"))).code == 201
    assert (await api.delete(f"{BINDINGS}/b")).code == 200
    await answered(lambda: api.post(BAD, config_map("a")), 201)
    assert (await api.delete(f"{POLICIES}/p")).code == 200


@pytest.mark.parametrize(("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)])
async def test_the_reason_of_a_validation_is_the_reason_of_the_answer(api: Api, reason: str, code: int) -> None:
    await enforced(api, policy({"expression": "false", "reason": reason}))
    answer = await api.post(BAD, config_map("a"))
    assert (answer.code, answer.doc["reason"]) == (code, reason)


async def test_a_warning_lets_the_write_pass(api: Api) -> None:
    await enforced(api, policy({"expression": "false", "message": "not nice"}), binding("Warn"))
    answer = await api.post(MAPS, config_map("a"))
    assert answer.code == 201
    assert answer.warnings == ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': not nice"]


async def test_failures_and_annotations_are_handed_to_the_audit_log(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: dict[str, str] = {}
    validate = api.server.admission.validate

    async def watched(request: AdmissionRequest) -> None:
        await validate(msgspec.structs.replace(request, annotate=noted.__setitem__))

    notes = [
        {"key": "who", "valueExpression": "'by ' + request.userInfo.username"},
        {"key": "nothing", "valueExpression": "null"},
    ]
    await enforced(api, policy("false", auditAnnotations=notes), binding("Audit"))
    monkeypatch.setattr(api.server.admission, "validate", watched)
    assert (await api.post(MAPS, config_map("a"))).code == 201
    assert noted == {
        "p/who": "by admin",
        "validation.policy.admission.k8s.io/validation_failure": (
            '[{"message":"failed expression: false","policy":"p","binding":"b","expressionIndex":0,'
            '"validationActions":["Audit"]}]'
        ),
    }


async def test_a_variable_is_evaluated_when_it_is_read_and_once(api: Api) -> None:
    variables = [
        {"name": "fails", "expression": "object.none"},
        {"name": "size", "expression": "size(object.metadata.name)"},
        {"name": "long", "expression": "variables.size > 3"},
        {"name": "maybe", "expression": "has(object.data) ? object.data : null"},
    ]
    told = "'size ' + string(variables.size)"
    checks = ({"expression": "!variables.long", "messageExpression": told}, "variables.maybe == null")
    await enforced(api, policy(*checks, variables=variables))
    assert (await api.post(MAPS, config_map("a"))).code == 201
    assert refusal(await api.post(MAPS, config_map("long"))).endswith("denied request: size 4")
    assert refusal(await api.post(MAPS, config_map("b") | {"data": {"a": "b"}})).endswith("variables.maybe == null")


async def test_a_variable_that_refers_to_its_namesake_ends(api: Api) -> None:
    twice = [{"name": "a", "expression": "1"}, {"name": "a", "expression": "variables.a + 1"}]
    await enforced(api, policy("variables.a > 0", variables=twice))
    assert 'composited variable \\"a\\"' in refusal(await api.post(BAD, config_map("a"))).replace('"', '\\"')


@pytest.mark.parametrize(("failure", "code"), [("Fail", 422), ("Ignore", 201)])
@pytest.mark.parametrize(
    "spec",
    [
        {"validations": [{"expression": "object.none == 1"}]},
        {"matchConditions": [{"name": "a", "expression": "object.none == 1"}]},
        {"variables": [{"name": "a", "expression": "object.none"}], "validations": [{"expression": "variables.a"}]},
        {"paramKind": {"apiVersion": "none.example.com/v1", "kind": "None"}},
    ],
    ids=["validation", "condition", "variable", "parameters"],
)
async def test_what_cannot_be_judged_is_refused_by_the_failure_policy(
    api: Api, spec: dict[str, Any], failure: str, code: int
) -> None:
    if "variables" in spec:
        spec = spec | {"validations": [{"expression": "variables.a == 1"}]}
    await enforced(api, policy("true", failurePolicy=failure, **spec))
    assert (await api.post(BAD, config_map("a"))).code == code


async def test_conditions_choose_what_a_policy_is_asked_about(api: Api) -> None:
    conditions = [
        {"name": "big", "expression": "has(object.data)"},
        {"name": "err", "expression": "object.data.a == 'b'"},
    ]
    await enforced(api, policy("false", matchConditions=conditions))
    assert (await api.post(MAPS, config_map("a"))).code == 201
    assert (await api.post(MAPS, config_map("b") | {"data": {"a": "b"}})).code == 422


async def test_expressions_can_ask_about_rights_and_the_namespace(api: Api) -> None:
    may = "authorizer.requestResource.check('create').allowed()"
    here = "namespaceObject.metadata.name == 'default'"
    never = "!authorizer.serviceAccount('default', 'default').group('').resource('secrets').check('get').allowed()"
    await enforced(api, policy(f"!({may} && {here} && {never})"))
    assert (await api.post(BAD, config_map("a"))).code == 422


async def test_a_deletion_is_judged_by_the_object_as_it_was(api: Api) -> None:
    await api.post(MAPS, config_map("kept"))
    delete = {"resourceRules": [rule(operations=["DELETE"])]}
    await api.post(POLICIES, policy("oldObject.metadata.name != 'kept'", matchConstraints=delete))
    await api.post(BINDINGS, binding())
    await settled(api)
    assert (await api.delete(f"{MAPS}/kept")).code == 422
    assert (await api.get(f"{MAPS}/kept")).code == 200


async def test_bindings_and_rules_narrow_what_is_meant(api: Api) -> None:
    labelled = {"objectSelector": {"matchLabels": {"a": "b"}}}
    constraints = {"resourceRules": [rule()], "excludeResourceRules": [rule(resourceNames=["free"])]}
    await enforced(api, policy("false", matchConstraints=constraints), binding(matchResources=labelled))
    assert (await api.post(MAPS, config_map("plain"))).code == 201
    assert (await api.post(MAPS, config_map("free", labels={"a": "b"}))).code == 201
    assert (await api.post(MAPS, config_map("a", labels={"a": "b"}))).code == 422


async def test_parameters_come_from_an_object(api: Api) -> None:
    maps = {"apiVersion": "v1", "kind": "ConfigMap"}
    ref = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    await enforced(api, policy("params.data.no != object.metadata.name", paramKind=maps), binding(paramRef=ref))
    missing = refusal(await api.post(MAPS, config_map("a")))
    assert missing.endswith(
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    )
    await api.delete(f"{BINDINGS}/b")
    await answered(lambda: api.post(BAD, config_map("limits")), 201)
    await api.post(MAPS, config_map("limits") | {"data": {"no": "a"}})
    await api.post(BINDINGS, binding(paramRef=ref))
    await answered(lambda: api.post(BAD, config_map("a")), 422)
    assert (await api.post(MAPS, config_map("b"))).code == 201


async def test_each_object_of_parameters_is_asked(api: Api) -> None:
    for name in ("x", "y"):
        await api.post(MAPS, config_map(name, labels={"limits": "yes"}) | {"data": {"no": name + name}})
    ref = {"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Allow"}
    maps = {"apiVersion": "v1", "kind": "ConfigMap"}
    await enforced(api, policy("params.data.no != object.metadata.name", paramKind=maps), binding(paramRef=ref))
    assert (await api.post(BAD, config_map("xx"))).code == 422
    assert (await api.post(BAD, config_map("yy"))).code == 422
    assert (await api.post(BAD, config_map("a"))).code == 201


async def test_who_may_not_read_parameters_may_not_name_them(api: Api) -> None:
    rights = [
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r"},
        "rules": rights,
    }
    await api.post(f"{rbac}/clusterroles", role)
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await api.post(f"{rbac}/clusterrolebindings", bound)
    eve = Api(api.server, User("eve"))
    await answered(lambda: eve.get(POLICIES), 200)
    answer = await eve.post(POLICIES, policy("true", paramKind={"apiVersion": "v1", "kind": "Secret"}))
    assert refusal(answer).endswith(
        'spec.paramKind: Forbidden: user &{eve  [] map[]} must have "get" permission on all objects of the referenced '
        "paramKind (kind=Secret, apiVersion=v1)"
    )
    answer = await eve.post(BINDINGS, binding(paramRef={"name": "a", "parameterNotFoundAction": "Deny"}))
    assert "unable to get policy p to determine minimum required permissions" in refusal(answer)


async def test_an_expression_that_costs_too_much_ends(api: Api) -> None:
    many = "[" + ",".join(["1"] * 300) + "]"
    await enforced(api, policy(f"{many}.all(x, {many}.all(y, {many}.all(z, x + y + z < 10)))"))
    assert "cost limit exceeded" in refusal(await api.post(BAD, config_map("a")))


@pytest.mark.parametrize(
    ("door", "body", "expression"),
    [
        ("serviceaccounts/default/token", {"spec": {}}, "object.spec.expirationSeconds > 3600"),
        ("serviceaccounts/default/token", {"spec": {}}, "object.spec.audiences == ['others']"),
        (
            "pods/a/eviction",
            {"kind": "Eviction", "metadata": {"name": "a"}},
            "object.kind != 'Eviction' || object.metadata.name != 'a'",
        ),
        ("pods/a/binding", {"kind": "Binding", "target": {"name": "n"}}, "object.target.name != 'n'"),
    ],
)
async def test_what_is_created_at_a_door_of_an_object_is_judged(
    api: Api, tmp_path: Path, door: str, body: dict[str, Any], expression: str
) -> None:
    resource, name, part = door.split("/")
    api.server.token_key = TokenKey(ensure_pki(tmp_path).service_account_key.read_bytes())
    if resource == "pods":
        pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert (await api.post("/api/v1/namespaces/default/pods", pod)).code == 201
    one = rule(operations=["CREATE"], resources=[f"{resource}/{part}"])
    await enforced(api, policy(expression, matchConstraints={"resourceRules": [one]}))
    answer = await api.post(f"/api/v1/namespaces/default/{door}", body)
    assert refusal(answer).startswith(f'{resource} "{name}" is forbidden: ValidatingAdmissionPolicy')
    assert (await api.get(f"/api/v1/namespaces/default/{resource}/{name}")).doc.get("spec", {}).get("nodeName") is None
    await api.delete(f"{BINDINGS}/b")
    await answered(lambda: api.post(f"/api/v1/namespaces/default/{door}", body), 201)


async def test_the_status_says_which_generation_was_seen(api: Api) -> None:
    await api.post(POLICIES, policy("true"))
    await api.until(f"{POLICIES}/p", lambda answer: answer.doc["status"].get("observedGeneration") == 1)
    await api.merge(f"{POLICIES}/p", {"spec": {"failurePolicy": "Ignore"}})
    await api.until(f"{POLICIES}/p", lambda answer: answer.doc["status"].get("observedGeneration") == 2)


async def test_policies_outlive_the_server(api: Api) -> None:
    await enforced(api, policy("object.metadata.name != 'a'"))
    from trimtab.server.core import Server

    again = Server(api.server.store)
    await again.start()
    try:
        assert (await Api(again).post(BAD, config_map("a"))).code == 422
    finally:
        await again.stop()


async def test_the_status_warns_of_fields_that_the_kinds_do_not_have(api: Api) -> None:
    constraints = {"resourceRules": [rule(resources=["configmaps", "secrets"])]}
    checks = (
        "has(object.data) && object.kind != 'b'",
        "object.spec.a == 1",
        "object.metadata.labels.a == object.binaryData",
    )
    await api.post(POLICIES, policy(*checks, matchConstraints=constraints))
    answer = await api.until(f"{POLICIES}/p", lambda answer: answer.doc["status"].get("observedGeneration") == 1)
    warnings = answer.doc["status"]["typeChecking"]["expressionWarnings"]
    assert [warning["fieldRef"] for warning in warnings] == [
        "spec.validations[1].expression",
        "spec.validations[2].expression",
    ]
    undefined = "ERROR: <input>:1:7: undefined field 'spec'\n | object.spec.a == 1\n | ......^\n"
    assert warnings[0]["warning"] == f"/v1, Kind=ConfigMap: {undefined}\n/v1, Kind=Secret: {undefined}"


async def test_a_policy_for_all_kinds_is_not_warned_of(api: Api) -> None:
    for name, resource in (("all", "*"), ("part", "pods/status"), ("none", "nothing")):
        constraints = {"resourceRules": [rule(resources=[resource])]}
        await api.post(POLICIES, policy("object.spec.a == 1", name=name, matchConstraints=constraints))
        answer = await api.until(
            f"{POLICIES}/{name}", lambda answer: answer.doc["status"].get("observedGeneration") == 1
        )
        assert answer.doc["status"]["typeChecking"] == {}


async def test_others_are_served_between_what_a_slow_policy_judges(api: Api) -> None:
    await enforced(api, policy("object.data.all(x, object.data.all(y, x + y != ''))"))
    heavy = config_map("a") | {"data": {f"k{number}": "" for number in range(160)}}
    started = time.process_time()
    assert (await api.post(BAD, heavy)).code == 201
    alone = time.process_time() - started
    turns: list[float] = []

    async def others() -> None:
        while True:
            turns.append(time.process_time())
            await asyncio.sleep(0)

    watching = asyncio.create_task(others())
    found = await asyncio.gather(*(api.post(BAD, heavy) for _ in range(8)))
    watching.cancel()
    assert {each.code for each in found} == {201}
    assert max(after - before for before, after in itertools.pairwise(turns)) < 4 * alone


async def test_thousands_of_variables_are_composed_in_the_time_of_each(api: Api) -> None:
    variables = [{"name": f"v{number}", "expression": "1"} for number in range(3000)]
    started = time.process_time()
    answer = await api.post(POLICIES, policy("variables.v2999 == 1", variables=variables))
    assert answer.code == 201, answer.doc
    assert time.process_time() - started < 5
