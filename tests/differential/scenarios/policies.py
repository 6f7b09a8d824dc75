"""ValidatingAdmissionPolicies and bindings: what is filled in, what is refused when they are written, and what they refuse."""

from typing import Any

from ..exchange import Request
from ..kinds import ACCOUNTS, CONFIGMAPS, DEPLOYMENTS, GAUGES, GROUP, SECRETS, configmap, deployment, gauge, secret
from ..verbs import TABLE, delete, get, merge, post, put

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{ADMISSION}/validatingadmissionpolicies", f"{ADMISSION}/validatingadmissionpolicybindings"
NAME = "p-$id"
P, B = f"{POLICIES}/{NAME}", f"{BINDINGS}/{NAME}"


def rule(*resources: str, groups: Any = ("",), versions: Any = ("v1",), **rest: Any) -> dict[str, Any]:
    return {
        "apiGroups": list(groups),
        "apiVersions": list(versions),
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources),
    } | rest


def policy(*validations: Any, rules: Any = None, match: Any = None, **spec: Any) -> dict[str, Any]:
    """A policy for the scenario's own namespace."""
    here = {"matchLabels": {"kubernetes.io/metadata.name": "$ns"}}
    constraints = {"namespaceSelector": here, "resourceRules": rules or [rule("configmaps")]} | (match or {})
    checks = [{"expression": one} if isinstance(one, str) else one for one in validations]
    filled: dict[str, Any] = {"matchConstraints": constraints} | ({"validations": checks} if checks else {})
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": filled | spec,
    }


def binding(*actions: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": list(actions or ("Deny",))} | spec,
    }


def _asked(
    body: dict[str, Any], *requests: Request, bound: dict[str, Any] | None = None, before: tuple[Request, ...] = ()
) -> list[Request]:
    """The policy and its binding are written; then what it is asked; then it goes."""
    return [
        *before,
        post(POLICIES, body),
        post(BINDINGS, bound or binding()),
        *requests,
        delete(B),
        delete(P),
    ]


def _refused(document: Any, path: str = CONFIGMAPS, said: str = "denied request") -> Request:
    """Asked until the policy is known, without a trace."""
    return post(f"{path}?dryRun=All", document, until=said)


_ALL = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
PODS = "/api/v1/namespaces/$ns/pods"

_WRONG: dict[str, dict[str, Any]] = {
    "nothing in it": {"spec": {}},
    "no validations": policy(),
    "an empty expression": policy(" "),
    "an expression that is no question": policy("object.metadata.name"),
    "an expression of a wrong type": policy("'a' + 1 == 2"),
    "an expression that is none": policy("object.("),
    "params without a kind": policy("params.a == 1"),
    "a variable that is not there": policy("variables.a"),
    "an unknown variable": policy("variables.b", variables=[{"name": "a", "expression": "1"}]),
    "a variable of a wrong type": policy("variables.a == 'x'", variables=[{"name": "a", "expression": "1 + 1"}]),
    "a variable before its use": policy(
        "variables.a > 1", variables=[{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]
    ),
    "a variable without a name": policy("true", variables=[{"name": "", "expression": "1"}]),
    "a variable of a reserved name": policy("true", variables=[{"name": "loop", "expression": "1"}]),
    "a variable that is no name": policy("true", variables=[{"name": "a-b", "expression": ""}]),
    "a message of two lines": policy({"expression": "true", "message": "a\nb"}),
    "a message of spaces": policy({"expression": "true", "message": "  "}),
    "a message expression that is a number": policy({"expression": "true", "messageExpression": "1"}),
    "a message expression of spaces": policy({"expression": "true", "messageExpression": " "}),
    "a message that asks for rights": policy({"expression": "true", "messageExpression": "string(authorizer)"}),
    "an unknown reason": policy({"expression": "true", "reason": "Because"}),
    "a reason that is for others": policy({"expression": "true", "reason": "Unauthorized"}),
    "a failure policy that is none": policy("true", failurePolicy="Perhaps"),
    "a kind of parameters without a version": policy("true", paramKind={"kind": "ConfigMap"}),
    "a kind of parameters that is none": policy("true", paramKind={"apiVersion": "a/b/c", "kind": "1"}),
    "a kind of parameters in a bad group": policy("true", paramKind={"apiVersion": "A_b/V1", "kind": "Thing"}),
    "no rules": policy("true", match={"resourceRules": []}),
    "bad rules": policy("true", rules=[{"operations": ["CREATE", "*"], "apiGroups": [], "resources": ["a", "*"]}]),
    "names twice": policy("true", rules=[rule("configmaps", resourceNames=["a", "a", "b/c"])]),
    "a match policy that is none": policy("true", match={"matchPolicy": "Nearly"}),
    "a bad selector": policy("true", match={"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}),
    "conditions": policy(
        "true",
        matchConditions=[
            {"name": "a", "expression": "1"},
            {"name": "a", "expression": "variables.a"},
            {"name": "-", "expression": ""},
        ],
        variables=[{"name": "a", "expression": "true"}],
    ),
    "annotations": policy(
        auditAnnotations=[
            {"key": "a", "valueExpression": "1"},
            {"key": "a", "valueExpression": "'x'"},
            {"key": "b c", "valueExpression": ""},
            {"key": "d", "valueExpression": "null"},
            {"key": "e", "valueExpression": "object.a"},
        ]
    ),
}
_WRONG_BINDINGS: dict[str, dict[str, Any]] = {
    "nothing in it": binding() | {"spec": {}},
    "both ways to say no": binding("Deny", "Warn"),
    "an action twice": binding("Deny", "Deny"),
    "an unknown action": binding("Shout"),
    "a bad name": binding(policyName="A b"),
    "parameters by no means": binding(paramRef={"parameterNotFoundAction": "Deny"}),
    "parameters by both means": binding(paramRef={"name": "a", "selector": {}, "parameterNotFoundAction": "Allow"}),
    "parameters that may be missing somehow": binding(paramRef={"name": "a/b", "parameterNotFoundAction": "Maybe"}),
    "parameters without an action": binding(paramRef={"name": "a"}),
    "bad rules": binding(matchResources={"resourceRules": [{"operations": ["CREATE"]}]}),
}
_PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}
_LONG = "object.metadata.name.size() < 5"

SCENARIOS: dict[str, list[Request]] = {
    "a plain policy": [
        post(POLICIES, policy("true")),
        get(P, until="observedGeneration"),
        get(f"{POLICIES}?limit=1", accept=TABLE),
        delete(P),
    ],
    "the life of a policy": [
        post(POLICIES, policy("true", paramKind=_PARAMS)),
        get(P, until='observedGeneration": 1'),
        get(P, accept=TABLE),
        merge(P, {"spec": {"failurePolicy": "Ignore"}}),
        get(P, until='observedGeneration": 2'),
        merge(P, {"metadata": {"labels": {"a": "b"}}}),
        delete(P),
    ],
    "expressions that do not fit their kinds": [
        post(
            POLICIES,
            policy(
                "object.spec.replicas == 'x'",
                "object.spec.template.spec.containers.all(c, c.name != 1 && c.none)",
                {"expression": "object.metadata.labels['a'] == 'b'", "messageExpression": "'a' + object.metadata.uid"},
                "variables.replicas > 1 && variables.name + 1 == 'a'",
                "object.data.a == 'b' || params.data.a > 1 || params.none",
                variables=[
                    {"name": "replicas", "expression": "object.spec.replicas"},
                    {"name": "name", "expression": "object.metadata.name"},
                ],
                rules=[rule("deployments", groups=["apps"]), rule("configmaps")],
                paramKind=_PARAMS,
            ),
        ),
        get(P, until="expressionWarnings"),
        delete(P),
    ],
    "a plain binding": [
        post(BINDINGS, binding()),
        get(B, accept=TABLE),
        merge(B, {"spec": {"matchResources": {"resourceRules": [rule("configmaps")]}}}),
        delete(B),
    ],
    "a binding to a selector": [
        post(BINDINGS, binding(paramRef={"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"})),
        get(B, accept=TABLE),
        delete(B),
    ],
    "a binding to a name": [
        post(BINDINGS, binding(paramRef={"name": "n", "namespace": "m", "parameterNotFoundAction": "Allow"})),
        get(B, accept=TABLE),
        delete(B),
    ],
    **{f"a policy with {name}": [post(f"{POLICIES}?dryRun=All", body)] for name, body in _WRONG.items()},
    **{f"a binding with {name}": [post(f"{BINDINGS}?dryRun=All", body)] for name, body in _WRONG_BINDINGS.items()},
    "a write is refused": _asked(policy(_LONG), _refused(configmap("too-long")), post(CONFIGMAPS, configmap("a"))),
    "a message": _asked(policy({"expression": _LONG, "message": " keep it short "}), _refused(configmap("too-long"))),
    "a message that is computed": _asked(
        policy({"expression": _LONG, "messageExpression": "object.metadata.name + ' in ' + request.namespace"}),
        _refused(configmap("too-long")),
    ),
    "a message that cannot be computed": _asked(
        policy({"expression": _LONG, "message": "plain", "messageExpression": "string(object.none)"}),
        _refused(configmap("too-long")),
    ),
    "reasons": _asked(policy({"expression": "false", "reason": "Forbidden"}), _refused(configmap("a"))),
    "a reason that is not known to clients": _asked(
        policy({"expression": "false", "reason": "RequestEntityTooLarge"}), _refused(configmap("a"))
    ),
    "an error in an expression": _asked(policy("object.none == 1"), _refused(configmap("a"))),
    "an error that is ignored": _asked(
        policy("object.none == 1", _LONG, failurePolicy="Ignore"),
        _refused(configmap("too-long")),
        post(CONFIGMAPS, configmap("a")),
    ),
    "two validations": _asked(policy(_LONG, "has(object.data)"), _refused(configmap("too-long"))),
    "a warning": _asked(
        policy(_LONG), post(CONFIGMAPS, configmap("a")), post(SECRETS, secret("long-name")), bound=binding("Warn")
    ),
    "variables": _asked(
        policy(
            {"expression": "!variables.long", "messageExpression": "'it is ' + variables.name"},
            variables=[
                {"name": "name", "expression": "string(object.metadata.name)"},
                {"name": "long", "expression": "variables.name.size() > 5"},
            ],
        ),
        _refused(configmap("too-long")),
        post(CONFIGMAPS, configmap("a")),
    ),
    "a variable that fails": _asked(
        policy("variables.a == 1", variables=[{"name": "a", "expression": "object.none"}]), _refused(configmap("a"))
    ),
    "a variable that is null": _asked(
        policy("variables.a != null", variables=[{"name": "a", "expression": "has(object.data) ? object.data : null"}]),
        _refused(configmap("a")),
        post(CONFIGMAPS, configmap("b", data={"a": "b"})),
    ),
    "the namespace": _asked(
        policy(
            {"expression": "false", "messageExpression": "namespaceObject.metadata.name + namespaceObject.status.phase"}
        ),
        _refused(configmap("a")),
    ),
    "the request": _asked(
        policy(
            {
                "expression": "false",
                "messageExpression": "request.operation + request.kind.kind + request.resource.resource + "
                "request.name + request.namespace + string(request.dryRun) + string(has(request.subResource))",
            }
        ),
        _refused(configmap("a")),
    ),
    "rights": _asked(
        policy(
            {
                "expression": "!authorizer.requestResource.check('delete').allowed() || "
                "!authorizer.group('').resource('secrets').namespace('x').check('get').allowed()",
                "message": "may delete",
            }
        ),
        _refused(configmap("a")),
    ),
    "conditions": _asked(
        policy(
            "false",
            matchConditions=[
                {"name": "short", "expression": "size(object.metadata.name) < 3"},
                {"name": "named", "expression": "request.name != 'b'"},
            ],
        ),
        _refused(configmap("a")),
        post(CONFIGMAPS, configmap("b")),
        post(CONFIGMAPS, configmap("long-name")),
    ),
    "a condition that fails": _asked(
        policy("false", matchConditions=[{"name": "a", "expression": "object.none == 1"}]), _refused(configmap("a"))
    ),
    "labels of objects": _asked(
        policy("false", match={"objectSelector": {"matchLabels": {"a": "b"}}}),
        _refused(configmap("a", metadata={"labels": {"a": "b"}})),
        post(CONFIGMAPS, configmap("b")),
        merge(f"{CONFIGMAPS}/b", {"metadata": {"labels": {"a": "b"}}}),
    ),
    "rules that exclude": _asked(
        policy("false", match={"excludeResourceRules": [rule("configmaps", resourceNames=["b"])]}),
        _refused(configmap("a")),
        post(CONFIGMAPS, configmap("b")),
    ),
    "names in rules": _asked(
        policy("false", rules=[rule("configmaps", resourceNames=["a"])]),
        _refused(configmap("a")),
        post(CONFIGMAPS, configmap("b")),
    ),
    "resources of a binding": _asked(
        policy("false", rules=[rule("configmaps", "secrets")]),
        _refused(configmap("a")),
        post(SECRETS, secret("a")),
        bound=binding(matchResources={"resourceRules": [rule("configmaps")]}),
    ),
    "a deletion": _asked(
        policy("oldObject.metadata.name != 'a'", rules=[rule("configmaps", operations=["DELETE"])]),
        delete(f"{CONFIGMAPS}/a?dryRun=All", until="denied request"),
        delete(f"{CONFIGMAPS}/b"),
        before=(post(CONFIGMAPS, configmap("a")), post(CONFIGMAPS, configmap("b"))),
    ),
    "an update": _asked(
        policy("oldObject == null || object.data == oldObject.data"),
        put(f"{CONFIGMAPS}/a?dryRun=All", configmap("a", data={"a": "b"}), until="denied request"),
        merge(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"a": "b"}}}),
        before=(post(CONFIGMAPS, configmap("a")),),
    ),
    "a scale": _asked(
        policy("object.spec.replicas < 3", rules=[rule("deployments/scale", groups=["apps"])]),
        Request(
            method="PATCH",
            path=f"{DEPLOYMENTS}/a/scale?dryRun=All",
            body={"spec": {"replicas": 5}},
            headers=(("Content-Type", "application/merge-patch+json"),),
            until="denied request",
        ),
        merge(f"{DEPLOYMENTS}/a/scale", {"spec": {"replicas": 2}}),
        before=(post(DEPLOYMENTS, deployment()),),
    ),
    "a definition's objects": _asked(
        policy(
            "!has(object.wrong)",
            rules=[rule("gauges", groups=[GROUP], resourceNames=["g-$id"])],
            match={"namespaceSelector": {}},
        ),
        _refused(gauge(wrong=True), GAUGES),
        get(CONFIGMAPS + "/none"),
    ),
    "parameters": _asked(
        policy(
            {
                "expression": "object.metadata.name.size() <= int(params.data.most)",
                "messageExpression": "'at most ' + params.data.most + params.kind",
            },
            paramKind=_PARAMS,
        ),
        _refused(configmap("too-long")),
        post(CONFIGMAPS, configmap("b")),
        before=(post(CONFIGMAPS, configmap("p", data={"most": "3"})),),
        bound=binding(paramRef={"name": "p", "namespace": "$ns", "parameterNotFoundAction": "Deny"}),
    ),
    "parameters in the object's namespace": _asked(
        policy("object.metadata.name != params.data.no", paramKind=_PARAMS),
        _refused(configmap("a")),
        post(CONFIGMAPS, configmap("b")),
        before=(post(CONFIGMAPS, configmap("p", data={"no": "a"}, metadata={"labels": {"p": "p"}})),),
        bound=binding(paramRef={"selector": {"matchLabels": {"p": "p"}}, "parameterNotFoundAction": "Deny"}),
    ),
    "parameters that are missing": _asked(
        policy("true", paramKind=_PARAMS),
        _refused(configmap("a")),
        bound=binding(paramRef={"name": "p", "namespace": "$ns", "parameterNotFoundAction": "Deny"}),
    ),
    "parameters that may be missing": _asked(
        policy("false", paramKind=_PARAMS),
        post(CONFIGMAPS, configmap("a")),
        bound=binding(paramRef={"name": "p", "namespace": "$ns", "parameterNotFoundAction": "Allow"}),
    ),
    "parameters that are not asked for": _asked(policy("params != null", paramKind=_PARAMS), _refused(configmap("a"))),
    "a kind of parameters that is not served": _asked(
        policy("true", paramKind={"apiVersion": "none.example.com/v1", "kind": "None"}), _refused(configmap("a"))
    ),
    "policies and bindings are not judged": _asked(
        policy("false", rules=[_ALL], matchConditions=[{"name": "mine", "expression": "!has(request.namespace)"}]),
        merge(B, {"metadata": {"labels": {"a": "b"}}}),
        put(B, binding("Warn")),
    ),
    "what is created at a door of an object": _asked(
        policy("false", rules=[_ALL]),
        _refused(configmap("a")),
        post(f"{ACCOUNTS}/default/token", {"spec": {}}),
        post(f"{ACCOUNTS}/default/token?dryRun=All", {"spec": {}}),
        post(f"{ACCOUNTS}/none/token", {"spec": {}}),
        post(f"{ACCOUNTS}/default/token", {"spec": {"expirationSeconds": 5}}),
        post(f"{PODS}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}),
        post(
            f"{PODS}/a/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n"}},
        ),
    ),
    "an expression that costs too much": _asked(
        policy("range(2000).all(x, range(2000).all(y, x + y < 10000))".replace("range(2000)", "[" + "1," * 299 + "1]")),
        _refused(configmap("a")),
    ),
}
