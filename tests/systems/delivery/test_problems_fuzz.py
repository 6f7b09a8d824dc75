"""Whatever a spec holds that its schema lets through, problems are told and nothing raises."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.delivery.problem_specs import SPEC, canary
from trimtab.model.errors import FieldError, invalid
from trimtab.systems.delivery.problems import changed_problems, problems, warnings
from trimtab.systems.delivery.problems.neighbours import neighbour_problems

WORDS = [
    "template",
    "spec",
    "metadata",
    "labels",
    "annotations",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "In",
    "Exists",
    "containers",
    "initContainers",
    "name",
    "image",
    "command",
    "env",
    "value",
    "valueFrom",
    "ports",
    "containerPort",
    "port",
    "targetPort",
    "protocol",
    "readinessProbe",
    "httpGet",
    "exec",
    "tcpSocket",
    "resources",
    "limits",
    "cpu",
    "volumes",
    "volumeMounts",
    "mountPath",
    "strategy",
    "type",
    "rollingUpdate",
    "maxSurge",
    "replicas",
    "http",
    "route",
    "destination",
    "host",
    "weight",
    "hosts",
    "gateways",
    "match",
    "headers",
    "uri",
    "exact",
    "regex",
    "web",
    "web-canary",
    "app",
    "RollingUpdate",
    "100%",
    "10m",
    "clusterIP",
    "None",
    "appProtocol",
    "sessionAffinity",
    "envFrom",
    "configMapRef",
    "tls",
    "tcp",
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-1, 70000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECT = st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), JSON, max_size=5)


def paths(document: Any, at: str = "") -> list[str]:
    steps = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    found = []
    for step, inner in steps:
        path = f"{at}.{step}" if at else str(step)
        found += [path, *paths(inner, path)]
    return found


INNER = [
    path for path in paths(SPEC) if path.startswith(("deployment.", "service.")) or path in ("deployment", "service")
]


def told(made: Any) -> list[FieldError]:
    found = problems(made)
    assert all(isinstance(one, FieldError) and one.path and len(str(one)) < 2000 for one in found)
    assert msgspec.json.encode(invalid("CanaryDeployment", "delivery.trimtab.dev", "web", found).status())
    warnings(made)
    return found


@settings(max_examples=40)
@given(deployment=OBJECT, service=OBJECT, routes=OBJECT, policy=OBJECT, match=st.lists(OBJECT, max_size=3))
def test_any_documents(deployment: Any, service: Any, routes: Any, policy: Any, match: Any) -> None:
    changes = {
        "deployment": deployment,
        "service": service,
        "virtualService": {"spec": routes, "trafficPolicy": policy},
        "analysis.match": match,
    }
    made = canary(changes)
    told(made)
    changed_problems(canary(), made)
    changed_problems(made, canary())
    neighbour_problems(made, [canary(name="other")])
    neighbour_problems(canary(name="other"), [made])


@settings(max_examples=40)
@given(route=OBJECT, inner=OBJECT, match=OBJECT)
def test_any_routes_and_matches(route: Any, inner: Any, match: Any) -> None:
    to = [{"destination": {"host": "web"}}]
    for one in ({"route": to, **route}, {"route": to, "match": [inner]}, {"route": to, "match": [{"headers": inner}]}):
        for analysed in (match, {"headers": match}, {"queryParams": match, "headers": {}}):
            changes = {"virtualService": {"spec": {"http": [one]}}, "analysis.match": [analysed]}
            told(canary(changes))


@settings(max_examples=40)
@given(path=st.sampled_from(INNER), value=JSON)
def test_anything_at_any_place_of_a_good_one(path: str, value: Any) -> None:
    if path in ("deployment", "service") and not isinstance(value, dict):
        value = {}
    made = canary({path: value})
    told(made)
    changed_problems(canary(), made)
    changed_problems(made, canary())
    neighbour_problems(made, [canary(name="other")])


@settings(max_examples=40)
@given(
    query=st.text(max_size=40) | st.sampled_from(["up", "{{ target }}", '{a="{{ variables.x }}"}', "sum(", "a[5m]"]),
    url=st.text(min_size=1, max_size=30)
    | st.sampled_from(["http://[", "https://a:99999", "http://\u2100", "//a", "http://a@b"]),
    cookie=st.text(min_size=1, max_size=9),
    variables=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_any_texts(query: str, url: str, cookie: str, variables: dict[str, str]) -> None:
    told(
        canary(
            {
                "analysis.metrics.0": {"name": "own", "query": query or "x", "variables": variables},
                "analysis.webhooks": [{"name": "a", "type": "Rollout", "url": url}],
                "analysis.prometheus": {"address": url},
                "analysis.sessionAffinity": {"cookieName": cookie, "path": query, "domain": cookie},
            }
        )
    )
