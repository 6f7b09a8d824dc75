"""matchConditions: refused when they are written if they do not compile, and able to ask about rights. Messages are those
of kube-apiserver 1.32."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.api import Api
from tests.server.test_webhooks import BOB, Peer, asked, authority, configuration, hook, labels, peer
from trimtab.server.admission.request import Operation
from trimtab.server.admission.webhook_client import WebhookClient
from trimtab.server.admission.webhooks import VALIDATING, Webhooks
from trimtab.server.auth.rbac import Authorizer

__all__ = ["authority", "peer"]  # fixtures

URL = f"/apis/admissionregistration.k8s.io/v1/{VALIDATING}"


def conditional(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "c"},
        "webhooks": [
            {
                "name": "a.demo.dev",
                "clientConfig": {"url": "https://localhost/"},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "matchConditions": list(conditions),
            }
        ],
    }


def condition(expression: str, name: str = "a") -> dict[str, str]:
    return {"name": name, "expression": expression}


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("object.name", "must evaluate to bool but got dyn"),
        ("  'a' ", "must evaluate to bool but got string"),
        ("authorizer.requestResource.check('x')", "must evaluate to bool but got kubernetes.authorization.Decision"),
        (
            "request.uid == 'a'",
            "compilation failed: ERROR: <input>:1:8: undefined field 'uid'\n | request.uid == 'a'\n | .......^",
        ),
        (
            "params == 1",
            (
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n"
                " | params == 1\n | ^"
            ),
        ),
        (
            "authorizer.requestResource == 1",
            (
                "compilation failed: ERROR: <input>:1:28: found no matching overload for '_==_' applied to "
                "'(kubernetes.authorization.ResourceCheck, int)'\n"
                " | authorizer.requestResource == 1\n | ...........................^"
            ),
        ),
    ],
)
async def test_an_expression_that_is_no_question_is_refused_with_its_place(
    api: Api, expression: str, problem: str
) -> None:
    answer = await api.post(URL, conditional(condition(expression)))
    assert answer.code == 422
    assert answer.doc["message"] == (
        'ValidatingWebhookConfiguration.admissionregistration.k8s.io "c" is invalid: '
        f'webhooks[0].matchConditions[0].expression: Invalid value: "{expression.strip()}": {problem}'
    )


async def test_constants_that_fail_are_an_internal_error_of_the_field(api: Api) -> None:
    answer = await api.post(URL, conditional(condition("int('x') == 1")))
    (cause,) = answer.doc["details"]["causes"]
    assert cause == {
        "reason": "InternalError",
        "message": "Internal error: program instantiation failed: type conversion error from 'string' to 'int'",
        "field": "webhooks[0].matchConditions[0].expression",
    }


async def test_names_of_conditions_are_qualified_and_differ(api: Api) -> None:
    answer = await api.post(URL, conditional(condition("true", "a b"), condition("true", "x"), condition("", "x")))
    assert [(cause["field"].rpartition("[")[2], cause["reason"]) for cause in answer.doc["details"]["causes"]] == [
        ("0].name", "FieldValueInvalid"),
        ("2].expression", "FieldValueRequired"),
        ("2].name", "FieldValueDuplicate"),
    ]


async def test_there_are_at_most_64_conditions(api: Api) -> None:
    answer = await api.post(URL, conditional(*(condition("true", f"n{index}") for index in range(65))))
    assert answer.doc["message"].endswith(": webhooks[0].matchConditions: Too many: 65: must have at most 64 items")


async def test_a_condition_may_speak_of_all_variables_of_the_reference_server(api: Api) -> None:
    expressions = (
        "authorizer.group('').resource('configmaps').namespace('x').check('create').allowed()",
        "authorizer.serviceAccount('a', 'b').path('/x').check('get').allowed()",
        "authorizer . requestResource.check('authorizer.requestResource').reason() == ''",
        "namespaceObject == null || namespaceObject.metadata.name == 'a'",
        "has(request.dryRun) && request.options.fieldManager == 'a' && oldObject == null",
    )
    conditions = (condition(expression, f"n{index}") for index, expression in enumerate(expressions))
    assert (await api.post(URL, conditional(*conditions))).code == 201


def _allowing(verb: str, resource: str, user: str) -> Authorizer:
    authorizer = Authorizer()
    rules = [{"verbs": [verb], "apiGroups": ["", "demo.dev"], "resources": [resource]}]
    authorizer.upsert("clusterroles", {"metadata": {"name": "r"}, "rules": rules})
    subjects = [{"kind": "User", "name": user}]
    role = {"kind": "ClusterRole", "name": "r"}
    authorizer.upsert("clusterrolebindings", {"metadata": {"name": "b"}, "roleRef": role, "subjects": subjects})
    return authorizer


@pytest.mark.parametrize(
    ("expression", "authorizer", "called"),
    [
        (
            'authorizer.group("").resource("configmaps").namespace("x").check("create").allowed()',
            _allowing("create", "configmaps", BOB.name),
            True,
        ),
        (
            'authorizer.group("").resource("configmaps").namespace("x").check("create").allowed()',
            _allowing("get", "configmaps", BOB.name),
            False,
        ),
        ("!authorizer.requestResource.check('skip').allowed()", _allowing("skip", "widgets", BOB.name), False),
        ("!authorizer.requestResource.check('skip').allowed()", _allowing("skip", "widgets", "eve"), True),
        ("!authorizer.requestResource.check('skip').allowed()", _allowing("skip", "widgets/status", BOB.name), True),
        (
            "authorizer.serviceAccount('n', 's').group('').resource('pods').check('get').allowed()",
            _allowing("get", "pods", "system:serviceaccount:n:s"),
            True,
        ),
        (
            "authorizer.requestResource.check('skip').reason().contains('ClusterRole \"r\"')",
            _allowing("skip", "widgets", BOB.name),
            True,
        ),
    ],
)
async def test_a_condition_asks_what_the_user_may_do(
    peer: Peer, expression: str, authorizer: Authorizer, called: bool
) -> None:
    webhooks = Webhooks(WebhookClient(), labels, authorize=authorizer.authorize)
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", matchConditions=[condition(expression)])))
    await webhooks.validate(asked())
    await webhooks.close()
    assert bool(peer.asked) is called


@pytest.mark.parametrize(
    ("expression", "called"),
    [
        ("object == null && oldObject.metadata.name == 'w'", True),
        ("request.kind.kind == 'Widget' && request.resource.resource == 'widgets'", True),
        ("has(request.subResource)", False),
        ("'devs' in request.userInfo.groups && request.userInfo.extra['k'][0] == 'v'", True),
        ("namespaceObject == null", True),
    ],
)
async def test_a_condition_sees_the_request_and_both_states_of_the_object(
    peer: Peer, expression: str, called: bool
) -> None:
    webhooks = Webhooks(WebhookClient(), labels)
    webhooks.upsert(VALIDATING, configuration("c", hook(peer, "/v", matchConditions=[condition(expression)])))
    await webhooks.validate(asked(Operation.DELETE, object=None, old={"metadata": {"name": "w"}}))
    await webhooks.close()
    assert bool(peer.asked) is called
