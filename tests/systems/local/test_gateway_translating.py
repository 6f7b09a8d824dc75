"""Istio's fields become Envoy's, one by one; and whatever a user writes, Envoy takes what comes out."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import Deployment, Pod, Service
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.systems.local.gateway import listeners
from trimtab.systems.local.gateway.addresses import ADDRESS, addresses, denied
from trimtab.systems.local.gateway.envoy.trial import complaint
from trimtab.systems.local.gateway.names import Key
from trimtab.systems.local.gateway.translate import Config, translate
from trimtab.systems.local.gateway.world import World

Document = dict[str, Any]
WEB, CANARY = "outbound|80||web.shop.svc.cluster.local", "outbound|80||web-canary.shop.svc.cluster.local"


def meta(name: str, age: int = 0, **more: Any) -> ObjectMeta:
    created = datetime(2026, 1, 28 - age, tzinfo=UTC)
    return ObjectMeta(**{"name": name, "namespace": "shop", "creation_timestamp": created, **more})


def service(name: str, *ports: Document, **spec: Any) -> Service:
    listed = list(ports) or [{"name": "http", "port": 80, "targetPort": 8080}]
    return Service(metadata=meta(name, uid=name), spec={"selector": {"app": name}, "ports": listed, **spec})


def pod(name: str, app: str, address: str, ready: bool = True, **more: Any) -> Pod:
    spec = {"containers": [{"name": "app", "ports": [{"name": "web", "containerPort": 9000}]}]}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return Pod(
        metadata=meta(name, labels={"app": app}, **more), spec=spec, status={"podIP": address, "conditions": conditions}
    )


def virtual(name: str, http: Any, age: int = 0, **spec: Any) -> VirtualService:
    return VirtualService(metadata=meta(name, age), spec={"hosts": [name], "http": http, **spec})


def made(*virtual_services: VirtualService, services: tuple[Service, ...] = (), **world: Any) -> Config:
    services = services or (service("web"), service("web-canary"))
    return translate(
        World(
            services=services, virtual_services=virtual_services, addresses=addresses(services), ingress=18080, **world
        )
    )


def host_of(config: Config, name: str, table: str = "mesh") -> Document:
    """What is routed at a listener."""
    (found,) = [each for each in config.routes[table]["virtual_hosts"] if each["name"] == name]
    return dict(found)


def routes_of(http: list[Document]) -> list[Document]:
    config = made(virtual("web", http))
    assert config.problems[Key("shop", "web")] == ()
    return list(host_of(config, "shop.web.80")["routes"])


def problems_of(http: Any, **spec: Any) -> list[str]:
    return [str(each) for each in made(virtual("web", http, **spec)).problems[Key("shop", "web")]]


TO_WEB = {"route": [{"destination": {"host": "web"}}]}
MATCHES: list[tuple[Document, Document]] = [
    ({"uri": {"exact": "/a"}}, {"path": "/a"}),
    ({"uri": {"prefix": "/a"}}, {"prefix": "/a"}),
    ({"uri": {"regex": "/a.*"}}, {"safe_regex": {"regex": "/a.*"}}),
    ({"uri": {"prefix": "/A"}, "ignoreUriCase": True}, {"prefix": "/A", "case_sensitive": False}),
    (
        {"headers": {"x": {"exact": "1"}, "y": {}}},
        {
            "prefix": "/",
            "headers": [{"name": "x", "string_match": {"exact": "1"}}, {"name": "y", "present_match": True}],
        },
    ),
    (
        {"withoutHeaders": {"x": {"prefix": "1"}}},
        {
            "prefix": "/",
            "headers": [
                {
                    "name": "x",
                    "string_match": {"prefix": "1"},
                    "invert_match": True,
                    "treat_missing_header_as_empty": True,
                }
            ],
        },
    ),
    (
        {"method": {"exact": "GET"}, "authority": {"regex": "a.*"}},
        {
            "prefix": "/",
            "headers": [
                {"name": ":method", "string_match": {"exact": "GET"}},
                {"name": ":authority", "string_match": {"safe_regex": {"regex": "a.*"}}},
            ],
        },
    ),
    (
        {"queryParams": {"v": {"exact": "2"}}},
        {"prefix": "/", "query_parameters": [{"name": "v", "string_match": {"exact": "2"}}]},
    ),
]


@pytest.mark.parametrize(("match", "expected"), MATCHES)
def test_a_match_is_envoys(match: Document, expected: Document) -> None:
    (route,) = routes_of([{"match": [match], **TO_WEB}])
    assert route["match"] == expected


def test_weights_are_as_written_whatever_their_sum() -> None:
    (route,) = routes_of(
        [
            {
                "route": [
                    {"destination": {"host": "web"}, "weight": 3},
                    {"destination": {"host": "web-canary"}, "weight": 1},
                ]
            }
        ]
    )
    clusters = route["route"]["weighted_clusters"]["clusters"]
    assert [(each["name"], each["weight"]) for each in clusters] == [(WEB, 3), (CANARY, 1)]


@pytest.mark.parametrize(
    ("http", "expected"),
    [
        ({"timeout": "1m30s"}, {"timeout": "90s"}),
        ({"timeout": "250ms"}, {"timeout": "0.25s"}),
        ({}, {"timeout": "0s"}),
        ({"rewrite": {"uri": "/b", "authority": "x.y"}}, {"prefix_rewrite": "/b", "host_rewrite_literal": "x.y"}),
        ({"headers": {"request": {"set": {"host": "z"}}}}, {"host_rewrite_literal": "z"}),
        (
            {"mirror": {"host": "web-canary"}, "mirrorPercentage": {"value": 12.5}},
            {
                "request_mirror_policies": [
                    {
                        "cluster": CANARY,
                        "runtime_fraction": {"default_value": {"numerator": 125000, "denominator": "MILLION"}},
                    }
                ]
            },
        ),
        (
            {"mirrors": [{"destination": {"host": "web-canary"}}]},
            {
                "request_mirror_policies": [
                    {
                        "cluster": CANARY,
                        "runtime_fraction": {"default_value": {"numerator": 1000000, "denominator": "MILLION"}},
                    }
                ]
            },
        ),
    ],
)
def test_a_route_is_envoys(http: Document, expected: Document) -> None:
    (route,) = routes_of([{**TO_WEB, **http}])
    assert {name: route["route"].get(name) for name in expected} == expected


def test_retries_are_those_of_istio_unless_told_otherwise() -> None:
    (usual,) = routes_of([TO_WEB])
    assert usual["route"]["retry_policy"]["num_retries"] == 2
    assert "connect-failure" in usual["route"]["retry_policy"]["retry_on"]
    (own,) = routes_of([{**TO_WEB, "retries": {"attempts": 5, "perTryTimeout": "2s", "retryOn": "5xx,503"}}])
    policy = own["route"]["retry_policy"]
    assert (policy["num_retries"], policy["per_try_timeout"], policy["retriable_status_codes"]) == (5, "2s", [503])
    assert policy["retry_on"] == "5xx,retriable-status-codes"
    (none,) = routes_of([{**TO_WEB, "retries": {"attempts": 0}}])
    assert "retry_policy" not in none["route"]


def test_a_prefix_that_is_taken_off_leaves_one_slash() -> None:
    (route,) = routes_of([{"match": [{"uri": {"prefix": "/a"}}], "rewrite": {"uri": "/"}, **TO_WEB}])
    assert route["route"]["regex_rewrite"] == {"pattern": {"regex": "^/a/?"}, "substitution": "/"}


def test_headers_of_routes_and_destinations_are_set_added_and_removed() -> None:
    cookie = {"response": {"add": {"Set-Cookie": "v=canary"}}}
    (route,) = routes_of(
        [
            {
                "headers": {"request": {"set": {"x-a": "1"}, "remove": ["x-b"]}},
                "route": [
                    {"destination": {"host": "web"}, "weight": 1, "headers": cookie},
                    {"destination": {"host": "web-canary"}},
                ],
            }
        ]
    )
    assert route["request_headers_to_add"] == [
        {"header": {"key": "x-a", "value": "1"}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
    ]
    assert route["request_headers_to_remove"] == ["x-b"]
    assert route["route"]["weighted_clusters"]["clusters"][0]["response_headers_to_add"] == [
        {"header": {"key": "Set-Cookie", "value": "v=canary"}, "append_action": "APPEND_IF_EXISTS_OR_ADD"}
    ]


@pytest.mark.parametrize(
    ("http", "part"),
    [
        ([{"route": [{"destination": {"host": "web"}, "weight": 0}, {"destination": {"host": "web"}}]}], "all 0"),
        ([{**TO_WEB, "surprise": 1}], "spec.http[0].surprise: is not known here"),
        ([{**TO_WEB, "match": [{"sourceLabels": {"a": "b"}}]}], "spec.http[0].match[0].sourceLabels"),
        ([{**TO_WEB, "match": [{"uri": {"regex": "("}}]}], "is no RE2 pattern"),
        ([{**TO_WEB, "match": [{"uri": {"exact": "/", "prefix": "/"}}]}], "only one can hold"),
        ([{**TO_WEB, "timeout": "soon"}], "is no duration"),
        ([{**TO_WEB, "redirect": {"uri": "/"}}], "only one can hold"),
        ([{**TO_WEB, "delegate": {"name": "x"}}], "delegate"),
        ([{**TO_WEB, "fault": {"abort": {}}}], "needs one of httpStatus and grpcStatus"),
        ([{"route": [{"destination": {"host": "*.x"}}]}], "names no Service"),
        ([{}], "has none of route, redirect and directResponse"),
        ("text", "is no list"),
        ([7], "is no mapping"),
    ],
)
def test_what_is_not_understood_is_said(http: Any, part: str) -> None:
    assert any(part in problem for problem in problems_of(http))


def test_a_destination_that_is_not_there_is_said_and_does_no_harm() -> None:
    config = made(virtual("web", [{"route": [{"destination": {"host": "later"}}]}]))
    (problem,) = config.problems[Key("shop", "web")]
    assert not problem.error
    assert "shop/later" in problem.text
    assert "later" in str(host_of(config, "shop.web.80"))


def test_one_bad_virtual_service_leaves_the_others_alone_and_its_last_good_one_in_force() -> None:
    services = (service("web"), service("api"))
    good, bad = virtual("api", [TO_WEB]), virtual("web", [{"nonsense": True}])
    world = World(services=services, virtual_services=(good, bad), addresses=addresses(services), ingress=1)
    without = translate(world)
    assert host_of(without, "shop.web.80")["routes"][0]["route"]["cluster"] == WEB  # the Service's own, plain
    assert [each["name"] for each in without.routes["ingress"]["virtual_hosts"]] == ["shop/api"]
    held = {"hosts": ["web"], "http": [{"directResponse": {"status": 200}}]}
    config = translate(world, {Key("shop", "web"): held})
    assert host_of(config, "shop.web.80")["routes"][0]["direct_response"] == {"status": 200}
    assert host_of(config, "shop.api.80") == host_of(without, "shop.api.80")


def test_the_older_of_two_for_one_host_has_it_and_the_other_is_told() -> None:
    config = made(virtual("web", [TO_WEB], age=1), virtual("late", [TO_WEB], hosts=["web.shop"]))
    assert "shop.web.80" in config.carriers[Key("shop", "web")]
    assert "shop.web.80" not in config.carriers[Key("shop", "late")]
    assert "older VirtualService shop/web" in str(config.problems[Key("shop", "late")][0])
    assert config.problems[Key("shop", "web")] == ()


def test_a_port_and_a_gateway_choose_where_a_match_holds() -> None:
    two = service("web", {"name": "http", "port": 80}, {"name": "http-b", "port": 81})
    http = [
        {"match": [{"port": 81}], "directResponse": {"status": 281}},
        {"match": [{"gateways": ["mesh"]}], "directResponse": {"status": 280}},
        {"directResponse": {"status": 299}},
    ]
    config = made(virtual("web", http), services=(two,))

    def first(name: str) -> int:
        host = host_of(config, name, "mesh" if name.startswith("shop.") else "ingress")
        return int(host["routes"][0]["direct_response"]["status"])

    assert (first("shop.web.80"), first("shop.web.81"), first("shop/web")) == (280, 281, 281)


def test_gateways_without_the_mesh_leave_a_services_own_address_alone() -> None:
    config = made(virtual("web", [{"directResponse": {"status": 299}}], gateways=["public"]))
    assert host_of(config, "shop.web.80")["routes"][0]["route"]["cluster"] == WEB
    assert config.carriers[Key("shop", "web")] == ("ingress",)


def test_endpoints_are_pods_that_are_ready_and_stay() -> None:
    named = service("web", {"name": "http", "port": 80, "targetPort": "web"})
    pods = (
        pod("a", "web", "127.10.0.1"),
        pod("b", "web", "127.10.0.2", ready=False),
        pod("c", "web", "127.10.0.3", deletion_timestamp=datetime.now(UTC)),
        pod("d", "other", "127.10.0.4"),
    )
    (group,) = made(services=(named,), pods=pods).clusters[WEB]["load_assignment"]["endpoints"]
    (host,) = group["lb_endpoints"]
    assert host["endpoint"]["address"]["socket_address"] == {"address": "127.10.0.1", "port_value": 9000}


def test_counters_are_filed_under_the_deployment_behind_a_service() -> None:
    template = {"template": {"metadata": {"labels": {"app": "web", "v": "1"}}}}
    deployments = (Deployment(metadata=meta("web.v1"), spec=template),)
    config = made(services=(service("web"), service("lone")), deployments=deployments)
    assert config.clusters[WEB]["alt_stat_name"] == "shop@web.v1@web"
    assert config.clusters[WEB.replace("web.shop", "lone.shop")]["alt_stat_name"] == "shop@lone@lone"
    owner = OwnerReference(api_version="apps/v1", kind="Deployment", name="owned", uid="1")
    config = made(services=(service("web"),), pods=(pod("a", "web", "127.10.0.1", owner_references=(owner,)),))
    assert config.clusters[WEB]["alt_stat_name"] == "shop@owned@web"


@pytest.mark.parametrize(
    ("port", "upstream"),
    [
        ({"name": "http", "port": 80}, "http_protocol_options"),
        ({"name": "grpc", "port": 80}, "http2_protocol_options"),
        ({"name": "x", "port": 80, "appProtocol": "kubernetes.io/h2c"}, "http2_protocol_options"),
    ],
)
def test_a_port_says_what_it_speaks(port: Document, upstream: str) -> None:
    (options,) = made(services=(service("web", port),)).clusters[WEB]["typed_extension_protocol_options"].values()
    assert upstream in options["explicit_http_config"]


def test_a_port_of_tcp_is_carried_as_it_is() -> None:
    config = made(services=(service("web", {"name": "tcp-db", "port": 80}),))
    assert "typed_extension_protocol_options" not in config.clusters[WEB]
    (filters,) = [chain["filters"] for chain in config.listeners["shop.web.80"]["filter_chains"]]
    assert filters[0]["typed_config"]["cluster"] == WEB


def test_a_destination_rule_makes_subsets_and_limits() -> None:
    spec = {
        "host": "web",
        "trafficPolicy": {
            "loadBalancer": {"simple": "ROUND_ROBIN"},
            "connectionPool": {"tcp": {"maxConnections": 7, "connectTimeout": "1s"}},
            "outlierDetection": {"consecutive5xxErrors": 3, "interval": "5s"},
        },
        "subsets": [{"name": "v2", "labels": {"v": "2"}, "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}],
    }
    rule = DestinationRule(metadata=meta("web"), spec=spec)
    http = [{"route": [{"destination": {"host": "web", "subset": "v2"}}]}]
    config = made(virtual("web", http), destination_rules=(rule,))
    assert config.rule_problems[Key("shop", "web")] == config.problems[Key("shop", "web")] == ()
    whole, subset = config.clusters[WEB], config.clusters[WEB.replace("||", "|v2|")]
    assert (whole["lb_policy"], subset["lb_policy"], whole["connect_timeout"]) == ("ROUND_ROBIN", "RANDOM", "1s")
    assert whole["circuit_breakers"]["thresholds"][0]["max_connections"] == 7
    assert whole["outlier_detection"]["consecutive_5xx"] == 3


def test_a_port_that_only_an_administrator_may_take_is_heard_elsewhere() -> None:
    config = made(services=(service("web"), service("lone", selector={})), lowest=1024)
    assert config.listeners["shop.web.80"]["address"]["socket_address"]["port_value"] == 10080
    assert "shop.lone.80" not in config.listeners
    assert WEB in config.clusters


def test_of_two_services_that_ask_for_one_address_the_older_has_it() -> None:
    old, new = service("old", clusterIP="127.30.0.9"), service("new", clusterIP="127.30.0.9")
    old = old.replace(metadata=meta("old", 5, uid="old"))
    found = addresses((new, old))
    assert found[Key("shop", "old")] == "127.30.0.9"
    assert found[Key("shop", "new")] != "127.30.0.9"
    assert denied(old, found[Key("shop", "old")]) == ""
    assert denied(new, found[Key("shop", "new")]) == "127.30.0.9"


def test_addresses_are_kept_and_never_shared() -> None:
    one, two = service("one"), service("two")
    first = addresses((one, two))
    assert len(set(first.values())) == 2
    kept = Service(metadata=meta("one", age=1, annotations={ADDRESS: first[Key("shop", "two")]}), spec=one.spec)
    again = addresses((kept, two))
    assert again[Key("shop", "one")] == first[Key("shop", "two")] != again[Key("shop", "two")]
    given = service("given", clusterIP="127.20.9.9")
    assert addresses((given, service("none", clusterIP="None"))) == {Key("shop", "given"): "127.20.9.9"}


EXAMPLES = int(os.environ.get("TRIMTAB_EXAMPLES", "300"))
TEXT = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), max_size=12)
STRING_MATCH = st.one_of(
    st.fixed_dictionaries({"exact": TEXT}),
    st.fixed_dictionaries({"prefix": TEXT}),
    st.fixed_dictionaries({"regex": st.one_of(TEXT, st.sampled_from([".*", "a|b", "[0-9]+"]))}),
    st.just({}),
)
NAMES = st.one_of(TEXT, st.sampled_from(["x-a", "cookie", "Set-Cookie", "x-b", "host"]))
DURATIONS = st.sampled_from(["1s", "250ms", "1h", "0.5s", "1m30s", "24h", "0s", "soon"])
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        side: st.fixed_dictionaries(
            {},
            optional={
                "set": st.dictionaries(NAMES, TEXT, max_size=2),
                "add": st.dictionaries(NAMES, TEXT, max_size=2),
                "remove": st.lists(NAMES, max_size=2),
            },
        )
        for side in ("request", "response")
    },
)
DESTINATION = st.fixed_dictionaries(
    {"host": st.sampled_from(["web", "web-canary", "later", "web.shop.svc.cluster.local"])},
    optional={"port": st.fixed_dictionaries({"number": st.just(80)}), "subset": st.sampled_from(["v1", "x"])},
)
SHARE = st.fixed_dictionaries({"value": st.one_of(st.floats(0, 100), st.integers(-1, 101))})
MATCH = st.fixed_dictionaries(
    {},
    optional={
        "uri": STRING_MATCH,
        "method": STRING_MATCH,
        "authority": STRING_MATCH,
        "scheme": STRING_MATCH,
        "headers": st.dictionaries(NAMES, STRING_MATCH, max_size=2),
        "withoutHeaders": st.dictionaries(NAMES, STRING_MATCH, max_size=2),
        "queryParams": st.dictionaries(TEXT, STRING_MATCH, max_size=2),
        "ignoreUriCase": st.booleans(),
        "port": st.integers(0, 70000),
    },
)
WEIGHTED = st.fixed_dictionaries(
    {"destination": DESTINATION},
    optional={"weight": st.sampled_from([0, 1, 50, 100, 4_000_000_000]), "headers": HEADERS},
)
ACTION = st.one_of(
    st.fixed_dictionaries({"route": st.lists(WEIGHTED, max_size=3)}),
    st.fixed_dictionaries(
        {
            "redirect": st.fixed_dictionaries(
                {},
                optional={
                    "uri": st.one_of(TEXT, st.just("/z")),
                    "authority": TEXT,
                    "scheme": TEXT,
                    "port": st.integers(0, 70000),
                    "redirectCode": st.integers(299, 310),
                },
            )
        }
    ),
    st.fixed_dictionaries(
        {
            "directResponse": st.fixed_dictionaries(
                {"status": st.integers(195, 605)}, optional={"body": st.fixed_dictionaries({"string": TEXT})}
            )
        }
    ),
    st.just({}),
)
MORE = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["", "a", "b/c"]),
        "match": st.lists(MATCH, max_size=2),
        "headers": HEADERS,
        "timeout": DURATIONS,
        "retries": st.fixed_dictionaries(
            {},
            optional={
                "attempts": st.integers(-1, 9),
                "perTryTimeout": DURATIONS,
                "retryOn": st.sampled_from(["5xx", "503", "5xx,reset,429", "never", ""]),
            },
        ),
        "mirror": DESTINATION,
        "mirrorPercentage": SHARE,
        "rewrite": st.fixed_dictionaries(
            {},
            optional={
                "uri": st.one_of(TEXT, st.sampled_from(["/", "/b"])),
                "authority": TEXT,
                "uriRegexRewrite": st.fixed_dictionaries(
                    {"match": st.sampled_from(["^/a(.*)$", "x", "("]), "rewrite": st.sampled_from(["/\\1", "\\9", "/"])}
                ),
            },
        ),
        "fault": st.fixed_dictionaries(
            {},
            optional={
                "delay": st.fixed_dictionaries({"fixedDelay": DURATIONS}, optional={"percentage": SHARE}),
                "abort": st.fixed_dictionaries({"httpStatus": st.integers(195, 605)}, optional={"percentage": SHARE}),
            },
        ),
        "corsPolicy": st.fixed_dictionaries(
            {},
            optional={
                "allowOrigins": st.lists(STRING_MATCH, max_size=2),
                "allowMethods": st.lists(st.sampled_from(["GET", "POST"]), max_size=2),
                "maxAge": DURATIONS,
                "allowCredentials": st.booleans(),
            },
        ),
    },
)

ROUTE = st.builds(lambda action, more: {**action, **more}, ACTION, MORE)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["hosts", "http", "tcp", "tls", "gateways", "x"]), JSON))
def test_no_document_breaks_the_translation(spec: Document) -> None:
    config = made(VirtualService(metadata=meta("web"), spec=spec))
    assert any(problem.error for problem in config.problems[Key("shop", "web")])


@settings(max_examples=200)
@given(ROUTE)
def test_a_route_is_either_understood_or_said_not_to_be(route: Document) -> None:
    config = made(virtual("web", [route]))
    good = not any(problem.error for problem in config.problems[Key("shop", "web")])
    host = host_of(config, "shop.web.80")
    assert good == (Key("shop", "web") in config.carriers)
    assert good or "cluster" in host["routes"][0]["route"]  # the plain one


async def test_envoy_takes_every_route_that_is_understood() -> None:
    """Hundreds of them at once: one start of Envoy judges them all."""
    hosts: list[Document] = []

    @settings(max_examples=EXAMPLES, database=None)
    @given(ROUTE)
    def gather(route: Document) -> None:
        config = made(virtual("web", [route]))
        if not any(problem.error for problem in config.problems[Key("shop", "web")]):
            name = f"h{len(hosts)}.example"
            hosts.append({**host_of(config, "shop.web.80"), "name": name, "domains": [name]})

    gather()
    assert len(hosts) > EXAMPLES // 20
    while refused := await complaint(listeners.by_host("trial", hosts)):
        half = hosts[: len(hosts) // 2]
        if len(hosts) == 1:
            pytest.fail(f"{refused}: {hosts[0]}")
        hosts = half if await complaint(listeners.by_host("trial", half)) else hosts[len(half) :]
