"""What is wrong with a CanaryDeployment: a table of one change to a good one, the field that is named, and what is said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.delivery.problem_specs import AWAY, canary
from trimtab.systems.delivery.kinds.fields import OWNER, REVISION, ROLE
from trimtab.systems.delivery.problems import problems

POD = "deployment.template.spec"
BOX = f"{POD}.containers.0"
METRIC = "analysis.metrics.0"
HOOK = {"name": "gate", "type": "ConfirmRollout", "url": "https://example.com/gate"}
COOKIES = "analysis.sessionAffinity"
OWN = {"name": "queue", "query": 'sum(queue{app="{{ target }}"})', "thresholdRange": {"max": 5}}

TO_WEB = [{"destination": {"host": "web"}}]
AB = {"analysis.stepWeight": AWAY, "analysis.iterations": 5}

DEPLOYMENT: list[tuple[dict[str, Any], str, str]] = [
    ({"deployment.selector": AWAY}, "selector", "matchLabels with labels of the template"),
    ({"deployment.selector": "app=web"}, "selector", "must be an object with matchLabels"),
    ({"deployment.selector": {}}, "selector", "must not be empty"),
    ({"deployment.selector": {"matchLabels": {}}}, "selector", "must not be empty"),
    ({"deployment.selector.app": "web"}, "selector[app]", 'supported values: "matchLabels", "matchExpressions"'),
    ({"deployment.selector.matchLabels.app": 1}, "selector.matchLabels[app]", "must be a text"),
    ({"deployment.selector.matchLabels.app": "-"}, "selector.matchLabels[app]", "a valid label must be"),
    ({"deployment.selector.matchLabels.app": "api"}, "template.metadata.labels", "spec.deployment.selector asks for"),
    (
        {"deployment.selector.matchExpressions": [{"key": "app", "operator": "Is", "values": ["web"]}]},
        "selector.matchExpressions[0].operator",
        'supported values: "In", "NotIn", "Exists", "DoesNotExist"',
    ),
    (
        {"deployment.selector.matchExpressions": [{"key": "app", "operator": "In"}]},
        "selector.matchExpressions[0]",
        "values set can't be empty",
    ),
    ({"deployment.selector.matchExpressions": ["app"]}, "selector.matchExpressions[0]", "must be an object with key"),
    ({"deployment.template": AWAY}, "template", "a pod template with at least one container"),
    ({"deployment.template": []}, "template", "must be an object"),
    ({"deployment.template.metadata.labels": ["app"]}, "template.metadata.labels", "must be an object"),
    (
        {"deployment.template.metadata.labels.tier": 1},
        "template.metadata.labels[tier]",
        "must be a text: put it in quo",
    ),
    ({"deployment.template.metadata.labels.a b": "x"}, "template.metadata.labels[a b]", "name part must consist of"),
    ({"deployment.replicas": "3"}, "replicas", "must be a whole number"),
    ({"deployment.replicas": -1}, "replicas", "must be between 0 and"),
    ({"deployment.replicas": True}, "replicas", "must be a whole number"),
    ({"deployment.paused": True}, "paused", "spec.suspend holds a run still"),
    ({"deployment.strategy": {"type": "BlueGreen"}}, "strategy.type", 'supported values: "RollingUpdate", "Recreate"'),
    (
        {"deployment.strategy": {"rollingUpdate": {"maxSurge": "a lot"}}},
        "strategy.rollingUpdate.maxSurge",
        "must be a number or a share such as 25%",
    ),
    ({"deployment.minReadySeconds": 5, "deployment.progressDeadlineSeconds": 5}, "progressDeadlineSeconds", "greater"),
    ({f"{POD}.containers": AWAY}, "template.spec.containers", "at least one, with a name and an image"),
    ({f"{POD}.containers": []}, "template.spec.containers", "at least one"),
    ({f"{POD}.containers": {}}, "template.spec.containers", "must be a list"),
    ({f"{BOX}.name": AWAY}, "template.spec.containers[0].name", ""),
    ({f"{BOX}.name": ""}, "template.spec.containers[0].name", "must not be empty"),
    ({f"{BOX}.imagePullPolicy": "Sometimes"}, "template.spec.containers[0].imagePullPolicy", '"IfNotPresent"'),
    (
        {f"{BOX}.resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}},
        "template.spec.containers[0].resources.requests[cpu]",
        "must not be more than the limit (1)",
    ),
    ({f"{BOX}.envFrom": [{}]}, "template.spec.containers[0].envFrom[0]", "one of configMapRef, secretRef"),
    (
        {f"{BOX}.env": [{"name": "A", "valueFrom": {}}]},
        "template.spec.containers[0].env[0].valueFrom",
        "one of configMapKeyRef",
    ),
    ({f"{POD}.serviceAccountName": "A B"}, "template.spec.serviceAccountName", "RFC 1123"),
    (
        {f"{POD}.volumes": [{"name": "a", "emptyDir": {}, "configMap": {"name": "b"}}]},
        "template.spec.volumes[0]",
        "must have one source only",
    ),
    ({f"{BOX}.name": "Web"}, "template.spec.containers[0].name", "must be at most 63 of a-z"),
    ({f"{BOX}.image": AWAY}, "template.spec.containers[0].image", "an image; or a command"),
    ({f"{BOX}.image": " web:1"}, "template.spec.containers[0].image", "leading or trailing whitespace"),
    ({f"{BOX}.image": 7}, "template.spec.containers[0].image", "must be a text"),
    ({f"{BOX}.command": "run me"}, "template.spec.containers[0].command", "must be a list"),
    ({f"{BOX}.env": [{"name": "PORT", "value": 80}]}, "template.spec.containers[0].env[0].value", "put it in quotes"),
    ({f"{BOX}.env": [{"name": "A=B"}]}, "template.spec.containers[0].env[0].name", "nor have a ="),
    (
        {f"{BOX}.env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        "template.spec.containers[0].env[0].valueFrom",
        "together with value",
    ),
    (
        {f"{BOX}.resources": {"limits": {"memory": "64 MB"}}},
        "template.spec.containers[0].resources.limits[memory]",
        "an amount such as",
    ),
    (
        {f"{BOX}.ports.0.containerPort": 70000},
        "template.spec.containers[0].ports[0].containerPort",
        "between 1 and 65535",
    ),
    ({f"{BOX}.ports.0.protocol": "HTTP"}, "template.spec.containers[0].ports[0].protocol", '"TCP", "UDP", "SCTP"'),
    ({f"{BOX}.ports.0.name": "the-http-port-of-web"}, "template.spec.containers[0].ports[0].name", "at most 15"),
    (
        {f"{BOX}.ports.1": {"name": "http", "containerPort": 81}},
        "template.spec.containers[0].ports[1].name",
        "Duplicate value",
    ),
    (
        {f"{BOX}.volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        "template.spec.containers[0].volumeMounts[0].name",
        "no such volume",
    ),
    ({f"{BOX}.readinessProbe": {}}, "template.spec.containers[0].readinessProbe", "exactly one of exec, httpGet"),
    (
        {f"{BOX}.readinessProbe.httpGet.port": "admin"},
        "template.spec.containers[0].readinessProbe.httpGet.port",
        "no port of that name",
    ),
    ({f"{POD}.containers.1": {"name": "web", "image": "b"}}, "template.spec.containers[1].name", "Duplicate value"),
    ({f"{POD}.restartPolicy": "Never"}, "template.spec.restartPolicy", 'supported values: "Always"'),
    ({f"{POD}.activeDeadlineSeconds": 5}, "template.spec.activeDeadlineSeconds", "have no end"),
    ({f"{POD}.volumes": [{"name": "a"}, {"name": "a"}]}, "template.spec.volumes[1].name", "Duplicate value"),
    (
        {f"{BOX}.envFrom": [{"configMapRef": {"name": f"c{i}"}} for i in range(65)]},
        "template",
        "names 65 ConfigMaps and Secrets, and 64 is the most",
    ),
]
SERVICE: list[tuple[dict[str, Any], str, str]] = [
    ({"service.ports": AWAY}, "ports", "at least one, such as {port: 80"),
    ({"service.ports": []}, "ports", "at least one"),
    ({"service.ports": 80}, "ports", "must be a list"),
    ({"service.ports.0.port": AWAY}, "ports[0].port", "Required value"),
    ({"service.ports.0.port": "80"}, "ports[0].port", "must be a whole number"),
    ({"service.ports.0.targetPort": "web"}, "ports[0].targetPort", "the containers have http"),
    ({"service.ports.0.targetPort": "8080"}, "ports[0].targetPort", "without quotes 8080"),
    ({"service.ports.0.targetPort": 80000}, "ports[0].targetPort", "between 1 and 65535"),
    ({"service.ports.0.targetPort": [1]}, "ports[0].targetPort", "must be a whole number or a text"),
    ({"service.ports.0.protocol": "HTTP"}, "ports[0].protocol", '"TCP"'),
    ({"service.ports.0.name": "HTTP"}, "ports[0].name", "such as http or grpc-api"),
    ({"service.ports.1": {"port": 81, "name": "b"}}, "ports[0].name", "a name, where there is more than one port"),
    (
        {"service.ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]},
        "ports[1]",
        'Duplicate value: "80/TCP"',
    ),
    ({"service.ports.0.nodePort": 30080}, "ports[0].nodePort", "type NodePort or LoadBalancer"),
    ({"service.ports.0.appProtocol": "a b"}, "ports[0].appProtocol", "name part must consist of"),
    ({"service.clusterIP": "web"}, "clusterIP", "must be an IP address, or None"),
    ({"service.externalTrafficPolicy": "Local"}, "externalTrafficPolicy", "type NodePort or LoadBalancer"),
    ({"service.sessionAffinity": "Cookie"}, "sessionAffinity", '"ClientIP", "None"'),
    ({"service.type": "ExternalName"}, "type", '"ClusterIP", "NodePort", "LoadBalancer"'),
    ({"service.selector": {"app": "api"}}, "selector[app]", "requests would go nowhere"),
    (
        {
            "deployment.selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        },
        "selector",
        "a Service cannot select by matchExpressions",
    ),
]
ROUTING: list[tuple[dict[str, Any], str, str]] = [
    ({"virtualService": {"routes": ["main"]}}, "routes", "give its name"),
    ({"virtualService": {"name": "Edge"}}, "name", "a lowercase RFC 1123 subdomain"),
    ({"virtualService": {"name": "edge", "routes": ["a", "a"]}}, "routes[1]", "Duplicate value"),
    ({"virtualService": {"spec": {"hosts": "web"}}}, "spec.hosts", "must be a list"),
    ({"virtualService": {"spec": {"hosts": ["https://web"]}}}, "spec.hosts[0]", "no scheme, no port"),
    ({"virtualService": {"spec": {"gateways": ["a b"]}}}, "spec.gateways[0]", "must be mesh, a Gateway's name"),
    ({"virtualService": {"spec": {"hosts": [], "gateways": ["edge"]}}}, "spec.hosts", "delegates to it"),
    ({"virtualService": {"spec": {"hosts": ["*"]}}}, "spec.hosts", "all requests in the mesh"),
    (
        {"virtualService": {"spec": {"http": [{"route": [{"destination": {"host": "other"}}]}]}}},
        "spec.http",
        "one of them must route to web",
    ),
    (
        {
            "virtualService": {
                "spec": {"http": [{"route": [{"destination": {"host": h}} for h in ("web", "web-canary.default")]}]}
            }
        },
        "spec.http[0].route[1].destination.host",
        "the controller adds it",
    ),
    (
        {"virtualService": {"spec": {"http": [{"route": [{"destination": {"host": "web"}, "weight": "100"}]}]}}},
        "spec.http[0].route[0].weight",
        "must be a whole number",
    ),
    (
        {"virtualService": {"spec": {"http": [{"match": [{"uri": "/a"}], "route": TO_WEB}]}}},
        "spec.http[0].match[0].uri",
        'must be an object such as {exact: "yes"}',
    ),
    (
        {
            **AB,
            "analysis.match": [{"uri": {"regex": "/b.*"}}],
            "virtualService": {"spec": {"http": [{"match": [{"uri": {"prefix": "/a"}}], "route": TO_WEB}]}},
        },
        "spec.http",
        "cannot both be said at once",
    ),
    ({"virtualService": {"trafficPolicy": {"tls": True}}}, "trafficPolicy.tls", "must be an object"),
]
ANALYSIS: list[tuple[dict[str, Any], str, str]] = [
    ({"analysis.stepWeight": AWAY}, "", "one of stepWeight, stepWeights and iterations"),
    ({"analysis.iterations": 3}, "iterations", "together with stepWeight"),
    ({"analysis.stepWeights": [10]}, "stepWeights", "together with stepWeight"),
    ({"analysis.stepWeight": 60}, "maxWeight", "must not be less than stepWeight (60)"),
    (
        {"analysis.stepWeight": AWAY, "analysis.stepWeights": [10, 20, 20]},
        "stepWeights[2]",
        "greater than the one before it (20)",
    ),
    ({"analysis.match": [{"headers": {"x": {"exact": "1"}}}]}, "iterations", "match is A/B"),
    ({**AB, "analysis.match": [{}]}, "match[0]", "all requests would go to the canary"),
    ({**AB, "analysis.match": [{"headers": ["x"]}]}, "match[0].headers", "must be an object"),
    ({**AB, "analysis.match": [{"headers": {"x": "1"}}]}, "match[0].headers[x]", 'an object such as {exact: "yes"}'),
    ({**AB, "analysis.match": [{"headers": {"x": {"exact": 1}}}]}, "match[0].headers[x].exact", "put it in quotes"),
    ({**AB, "analysis.match": [{"uri": {"suffix": "a"}}]}, "match[0].uri[suffix]", '"exact", "prefix", "regex"'),
    ({**AB, "analysis.match": [{"uri": {"exact": "a", "regex": "b"}}]}, "match[0].uri", "must have exactly one of"),
    ({"analysis.interval": "500ms"}, "interval", "must be at least 1s"),
    ({"analysis.interval": "48h"}, "interval", "must be at most 24h0m0s"),
    ({"analysis.settle": "2h"}, "settle", "must be at most 1h0m0s"),
    ({"analysis.scaleDownDelay": "25h"}, "scaleDownDelay", "must be at most 24h0m0s"),
    ({"analysis.manual": ["Step", "Step"]}, "manual[1]", "Duplicate value"),
    ({"analysis.prometheus": {"address": "prometheus:9090"}}, "prometheus.address", "must be a URL"),
    ({"analysis.prometheus": {"address": "http://a:b@c"}}, "prometheus.address", "put them in a Secret"),
    ({"analysis.prometheus": {"secretRef": {"name": "A"}}}, "prometheus.secretRef.name", "RFC 1123"),
    ({COOKIES: {"cookieName": "a b"}}, "sessionAffinity.cookieName", "must be a cookie's name"),
    (
        {COOKIES: {"cookieName": "a", "stableCookieName": "a"}},
        "sessionAffinity.stableCookieName",
        "must differ from cookieName",
    ),
    ({COOKIES: {"cookieName": "a", "path": "/;a"}}, "sessionAffinity.path", "have no semicolon"),
    ({COOKIES: {"cookieName": "a", "domain": "a b"}}, "sessionAffinity.domain", "such as example.com"),
    ({COOKIES: {"cookieName": "a", "sameSite": "None"}}, "sessionAffinity.secure", "browsers drop the cookie"),
    ({"service.ports.0.name": "tcp-db", "analysis.mirror": True}, "mirror", "is of HTTP"),
    ({"service.ports.0.appProtocol": "redis", COOKIES: {"cookieName": "a"}}, "sessionAffinity", "is of HTTP"),
]
METRICS: list[tuple[dict[str, Any], str, str]] = [
    ({"analysis.metrics.1": {"name": "request-duration"}}, "[1].thresholdRange", "Threshold judges by it"),
    ({f"{METRIC}.query": "up"}, "[0].query", "request-success-rate is built in"),
    ({f"{METRIC}.variables": {"a": "b"}}, "[0].variables", "is built in"),
    ({METRIC: {"name": "queue", "thresholdRange": {"max": 5}}}, "[0].query", "a query, or templateRef"),
    ({METRIC: {**OWN, "templateRef": "queue"}}, "[0].query", "together with templateRef"),
    ({METRIC: {**OWN, "query": "sum("}}, "[0].query", "it is no PromQL"),
    ({METRIC: {**OWN, "query": "up == {{ nothing }}"}}, "[0].query", "{{ nothing }} is no variable"),
    ({METRIC: {**OWN, "query": "{{ variables.a }}"}}, "[0].query", "not among the metric's variables"),
    ({METRIC: {**OWN, "variables": {"a-b": "c"}}}, "[0].variables[a-b]", "must be of letters"),
    ({METRIC: {**OWN, "quantile": 0.5}}, "[0].quantile", "only request-duration has one"),
    ({METRIC: {**OWN, "compare": {"judge": "Bayes"}}}, "[0].compare.judge", '"Threshold", "Ratio", "MannWhitney"'),
    ({METRIC: {**OWN, "query": "up", "compare": {"judge": "Ratio"}}}, "[0].query", "must have {{ target }}"),
    ({METRIC: {**OWN, "interval": "10ms"}}, "[0].interval", "at least 1s"),
    ({METRIC: OWN, f"{METRIC}.query": AWAY, f"{METRIC}.templateRef": "Q"}, "[0].templateRef", "RFC 1123"),
    ({f"{METRIC}.thresholdRange": {}}, "[0].thresholdRange", "min, max, or both"),
    ({f"{METRIC}.thresholdRange": {"min": 2, "max": 1}}, "[0].thresholdRange.min", "not be greater than max (1)"),
    ({f"{METRIC}.thresholdRange": {"min": 101}}, "[0].thresholdRange.min", "is in percent"),
    ({f"{METRIC}.compare": {"judge": "Threshold", "margin": 0.1}}, "[0].compare.margin", "Threshold has none"),
    ({f"{METRIC}.compare": {"judge": "Bayes", "margin": 1}}, "[0].compare.margin", "must be a share below 1"),
]
WEBHOOKS: list[tuple[dict[str, Any], str, str]] = [
    ({"analysis.webhooks": [HOOK, HOOK]}, "[1].name", "Duplicate value"),
    ({"analysis.webhooks": [{**HOOK, "url": "ftp://example.com"}]}, "[0].url", "must be a URL such as https://"),
    ({"analysis.webhooks": [{**HOOK, "url": "https://"}]}, "[0].url", "must be a URL such as https://"),
    ({"analysis.webhooks": [{**HOOK, "url": "https://[::1"}]}, "[0].url", "it is no URL"),
    ({"analysis.webhooks": [{**HOOK, "url": "https://a/b c"}]}, "[0].url", "characters that no URL has"),
    ({"analysis.webhooks": [{**HOOK, "url": "https://me:secret@a/"}]}, "[0].url", "put them in a Secret"),
    ({"analysis.webhooks": [{**HOOK, "timeout": "0s"}]}, "[0].timeout", "must be at least 100ms"),
    ({"analysis.webhooks": [{**HOOK, "timeout": "1h"}]}, "[0].timeout", "must be at most 5m0s"),
    ({"analysis.webhooks": [{**HOOK, "secretRef": {"name": "A"}}]}, "[0].secretRef.name", "RFC 1123"),
    (
        {"analysis.webhooks": [{**HOOK, "name": f"h{i}", "type": "Rollout", "timeout": "10s"} for i in range(4)]},
        "[2].timeout",
        "come to 30s here, and must stay below the analysis' interval (30s)",
    ),
]
OTHERS: list[tuple[dict[str, Any], str, str]] = [
    ({"progressDeadline": "0s"}, "spec.progressDeadline", "must be at least 1s"),
    ({"progressDeadline": "25h"}, "spec.progressDeadline", "must be at most 24h0m0s"),
    ({"progressDeadline": "5s", "deployment.minReadySeconds": 5}, "spec.progressDeadline", "minReadySeconds (5)"),
    ({"autoscalerRef": {"name": "A"}}, "spec.autoscalerRef.name", "RFC 1123"),
]


USUAL: list[dict[str, Any]] = [
    {"deployment.replicas": 0},
    {"deployment.replicas": None, "deployment.strategy": None},
    {f"{BOX}.image": AWAY, f"{BOX}.command": ["web", "--port", "8080"]},
    {"service.ports.0.targetPort": 9999},
    {"service.ports.0.targetPort": AWAY, "service.ports.0.port": 8080},
    {"service.selector": {"app": "web"}},
    {"virtualService": {"name": "edge", "routes": ["main"]}},
    {"virtualService": {"spec": {"hosts": ["web.example.com"], "gateways": ["istio-system/edge", "mesh"]}}},
    {"virtualService": {"spec": {"http": [{"route": [{"destination": {"host": "web.default.svc"}}]}]}}},
    {"virtualService": {"spec": {"hosts": ["*"], "gateways": ["edge"]}}},
    {"analysis.stepWeight": AWAY, "analysis.stepWeights": [1, 5, 100]},
    {"analysis.stepWeight": AWAY, "analysis.iterations": 10},
    {
        "analysis.stepWeight": AWAY,
        "analysis.iterations": 10,
        "analysis.match": [{"headers": {"x-canary": {"exact": "yes"}, "x-there": {}}}, {"uri": {"prefix": "/a"}}],
    },
    {METRIC: OWN},
    {METRIC: {**OWN, "compare": {"judge": "MannWhitney", "margin": 0.1}}},
    {METRIC: {"name": "request-success-rate", "compare": {"judge": "Bayes", "margin": 0.01}}},
    {METRIC: {"name": "request-duration", "quantile": 0.5, "thresholdRange": {"max": 100}}},
    {METRIC: {"name": "a", "templateRef": "a", "variables": {"b": "c"}, "thresholdRange": {"min": 0, "max": 0}}},
    {"analysis.webhooks": [{**HOOK, "url": "http://gate.default.svc:8080/x?y=z", "secretRef": {"name": "gate"}}]},
    {COOKIES: {"cookieName": "canary", "stableCookieName": "Canary", "sameSite": "None", "secure": True}},
    {"service.ports.0.name": "http-web", "analysis.mirror": True},
    {"deployment.selector.matchExpressions": [{"key": "tier", "operator": "In", "values": ["front", "back"]}]},
]


def cases() -> list[tuple[dict[str, Any], str, str]]:
    made = []
    for root, table in (
        ("spec.deployment", DEPLOYMENT),
        ("spec.service", SERVICE),
        ("spec.virtualService", ROUTING),
        ("spec.analysis", ANALYSIS),
        ("spec.analysis.metrics", METRICS),
        ("spec.analysis.webhooks", WEBHOOKS),
        ("", OTHERS),
    ):
        for changes, path, says in table:
            joint = "." if root and path and path[0] != "[" else ""
            made.append((changes, f"{root}{joint}{path}", says))
    return made


@pytest.mark.parametrize(("changes", "path", "says"), cases())
def test_a_mistake_is_named_by_its_field(changes: dict[str, Any], path: str, says: str) -> None:
    found = [str(problem) for problem in problems(canary(changes)) if problem.path == path]
    assert found
    assert says in " ".join(found)


def test_a_good_one_has_no_problems() -> None:
    assert problems(canary()) == []
    assert problems(canary({"analysis": AWAY})) == []


@pytest.mark.parametrize("changes", USUAL)
def test_what_is_usual_is_taken(changes: dict[str, Any]) -> None:
    assert problems(canary(changes)) == []


@pytest.mark.parametrize("key", [ROLE, REVISION, OWNER, "delivery.trimtab.dev/anything"])
@pytest.mark.parametrize(
    "place",
    [
        "deployment.selector.matchLabels",
        "deployment.template.metadata.labels",
        "deployment.template.metadata.annotations",
    ],
)
def test_labels_of_the_controller_are_not_for_users(place: str, key: str) -> None:
    (problem,) = problems(canary({place: {"app": "web", key: "x"}}))
    assert str(problem).startswith(f"spec.{place}[{key}]: Forbidden: ")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("w" * 57, "must be at most 56 characters"),
        ("1web", "begin with a letter"),
        ("web.front", "a Service has this name"),
    ],
)
def test_the_name_must_fit_a_service(name: str, says: str) -> None:
    (problem,) = problems(canary(name=name))
    assert problem.path == "metadata.name"
    assert says in str(problem)
    assert problems(canary(name="w" * 56)) == []


def test_an_address_with_a_password_is_never_shown() -> None:
    urls = ("https://me:hunter2@example.com/", "https://hunter2@[", "https://a/hunter2\n")
    for url in urls:
        found = problems(canary({"analysis.webhooks": [{**HOOK, "url": url}]}))
        assert found
        assert "hunter2" not in str(found)


def test_all_mistakes_are_told_at_once_but_not_without_end() -> None:
    several = {"deployment.replicas": "2", "service.ports.0.port": "80", "analysis.interval": "0s"}
    assert {problem.path for problem in problems(canary(several))} == {
        "spec.deployment.replicas",
        "spec.service.ports[0].port",
        "spec.analysis.interval",
    }
    assert len(problems(canary({f"{BOX}.env": [7] * 5000}))) == 100
