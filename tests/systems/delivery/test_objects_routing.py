"""What traffic makes of a VirtualService: of our own, and of someone else's."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.systems.delivery.objects_kit import canary, to, virtual_service
from trimtab.systems.delivery.kinds.analysis import SessionAffinity
from trimtab.systems.delivery.objects.routing import (
    Traffic,
    destination_rules,
    driven,
    owned_virtual_service,
    problems,
    released,
    weight_of,
)

INSIDER: dict[str, Any] = {"headers": {"x-insider": {"exact": "yes"}}}
AFFINITY = SessionAffinity(cookie_name="who", stable_cookie_name="who-not", max_age=60)
MARK = "delivery.trimtab.dev/web/"


def http(traffic: Traffic, *routes: dict[str, Any], **spec: Any) -> list[dict[str, Any]]:
    """The http routes of an owned VirtualService."""
    chosen: dict[str, Any] = {"virtualService": {"spec": {"hosts": ["web"], "http": list(routes)}}} if routes else {}
    made = owned_virtual_service(canary(**chosen, **spec), traffic)
    listed: list[dict[str, Any]] = made["spec"]["http"]
    return listed


def weights(route: dict[str, Any]) -> dict[str, int]:
    return {item["destination"]["host"]: item["weight"] for item in route["route"]}


def test_without_a_spec_all_goes_to_the_service() -> None:
    made = owned_virtual_service(canary(), Traffic(weight=10))
    assert made["metadata"]["name"] == "web"
    assert made["spec"] == {"hosts": ["web"], "http": [{"route": [to("web", 90), to("web-canary", 10)]}]}


def test_ports_that_speak_no_http_have_plain_routes() -> None:
    ports = [{"name": "http", "port": 80}, {"name": "tcp-raw", "port": 9000}, {"port": 53, "protocol": "UDP"}]
    spec = owned_virtual_service(canary(service={"ports": ports}), Traffic(weight=20))["spec"]
    assert [weights(route) for route in spec["http"]] == [{"web": 80, "web-canary": 20}]
    assert [route["match"] for route in spec["tcp"]] == [[{"port": 9000}]]
    assert weights(spec["tcp"][0]) == {"web": 80, "web-canary": 20}


@pytest.mark.parametrize("weight", [0, 1, 50, 99, 100])
def test_both_destinations_are_always_there_with_weights(weight: int) -> None:
    (route,) = http(Traffic(weight=weight))
    assert weights(route) == {"web": 100 - weight, "web-canary": weight}


def test_what_a_route_says_beside_its_destinations_is_kept() -> None:
    kept = {
        "name": "api",
        "match": [{"uri": {"prefix": "/api"}}],
        "timeout": "5s",
        "retries": {"attempts": 2},
        "headers": {"request": {"set": {"x": "y"}}},
        "rewrite": {"uri": "/"},
    }
    (route,) = http(Traffic(weight=5), {**kept, "route": [to("web", headers={"request": {"add": {"a": "b"}}})]})
    assert {name: value for name, value in route.items() if name != "route"} == kept
    assert [item["headers"] for item in route["route"]] == [{"request": {"add": {"a": "b"}}}] * 2


@pytest.mark.parametrize(
    ("host", "beside"),
    [
        ("web", "web-canary"),
        ("web.shop", "web-canary.shop"),
        ("web.shop.svc", "web-canary.shop.svc"),
        ("web.shop.svc.cluster.local", "web-canary.shop.svc.cluster.local"),
    ],
)
def test_the_canarys_host_is_written_as_stables_is(host: str, beside: str) -> None:
    (route,) = http(Traffic(weight=5), {"route": [{"destination": {"host": host, "port": {"number": 80}}}]})
    assert route["route"][1]["destination"] == {"host": beside, "port": {"number": 80}}


@pytest.mark.parametrize("host", ["web.other", "web.shop.svc.example.com", "webs", "web.", "other.web"])
def test_other_hosts_are_left_alone(host: str) -> None:
    others = {"route": [to(host)]}
    assert http(Traffic(weight=50), others, {"redirect": {"uri": "/"}}) == [others, {"redirect": {"uri": "/"}}]


def test_other_hosts_in_a_route_keep_their_share() -> None:
    (route,) = http(Traffic(weight=10), {"route": [to("web", 60), to("legacy", 40)]})
    assert weights(route) == {"web": 54, "web-canary": 6, "legacy": 40}


def test_subsets_are_stables() -> None:
    (route,) = http(Traffic(weight=10), {"route": [{"destination": {"host": "web", "subset": "v1"}}]})
    assert [item["destination"] for item in route["route"]] == [{"host": "web", "subset": "v1"}, {"host": "web-canary"}]


def test_a_b_gives_the_canary_those_that_match_and_stable_the_rest() -> None:
    matched, rest = http(Traffic(weight=100, match=(INSIDER,)))
    assert matched["match"] == [INSIDER]
    assert weights(matched) == {"web": 0, "web-canary": 100}
    assert "match" not in rest
    assert weights(rest) == {"web": 100, "web-canary": 0}


def test_a_b_conditions_hold_beside_those_of_the_route() -> None:
    users: list[dict[str, Any]] = [
        {"uri": {"prefix": "/a"}, "name": "a"},
        {"uri": {"exact": "/b"}, "headers": {"x-beta": {"exact": "1"}}},
    ]
    choices = (INSIDER, {"uri": {"prefix": "/b"}})
    matched, rest = http(Traffic(weight=100, match=choices), {"name": "main", "match": users, "route": [to("web")]})
    assert matched["name"] == MARK + "match/main"
    assert matched["match"] == [
        {**users[0], **INSIDER},
        {"uri": {"exact": "/b"}, "headers": {"x-beta": {"exact": "1"}, "x-insider": {"exact": "yes"}}},
        {"uri": {"exact": "/b"}, "headers": {"x-beta": {"exact": "1"}}},
    ]
    assert rest["match"] == users


def test_a_b_that_can_never_match_makes_no_route() -> None:
    (rest,) = http(
        Traffic(weight=100, match=({"uri": {"prefix": "/b"}},)),
        {"match": [{"uri": {"prefix": "/a"}}], "route": [to("web")]},
    )
    assert weights(rest) == {"web": 100, "web-canary": 0}


def test_a_b_leaves_plain_routes_with_stable() -> None:
    chosen = canary(service={"ports": [{"name": "tcp", "port": 1}]})
    spec = owned_virtual_service(chosen, Traffic(weight=100, match=(INSIDER,)))["spec"]
    assert weights(spec["tcp"][0]) == {"web": 100, "web-canary": 0}


def test_mirroring_copies_requests_to_the_canary() -> None:
    (route,) = http(Traffic(mirror=30), {"route": [{"destination": {"host": "web", "port": {"number": 80}}}]})
    assert weights(route) == {"web": 100, "web-canary": 0}
    assert route["mirror"] == {"host": "web-canary", "port": {"number": 80}}
    assert route["mirrorPercentage"] == {"value": 30}


def test_mirroring_goes_on_for_others() -> None:
    others = {"route": [to("web")], "mirror": {"host": "audit"}, "mirrorPercentage": {"value": 5}}
    (route,) = http(Traffic(mirror=30), others)
    assert route["mirrors"] == [
        {"destination": {"host": "audit"}, "percentage": {"value": 5}},
        {"destination": {"host": "web-canary"}, "percentage": {"value": 30}},
    ]
    assert "mirror" not in route


def test_session_affinity_keeps_who_came_and_marks_who_comes() -> None:
    again, stays, main = http(Traffic(weight=10, affinity=AFFINITY, cookie="abc"))
    assert weights(again) == {"web": 0, "web-canary": 100}
    assert weights(stays) == {"web": 100, "web-canary": 0}
    assert weights(main) == {"web": 90, "web-canary": 10}
    cookies = [item["headers"]["response"]["add"]["Set-Cookie"] for item in main["route"]]
    assert cookies == ["who-not=abc; Max-Age=60; Path=/; HttpOnly", "who=abc; Max-Age=60; Path=/; HttpOnly"]
    assert all("headers" not in item for route in (again, stays) for item in route["route"])


def test_nobody_stays_with_stable_when_all_goes_to_the_canary() -> None:
    again, main = http(Traffic(weight=100, affinity=AFFINITY, cookie="abc"))
    assert (again["name"], weights(main)) == (MARK + "cookie", {"web": 0, "web-canary": 100})


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        ("who=abc", True),
        ("a=b; who=abc", True),
        ("a=b;who=abc;c=d", True),
        ("who=abc; c=d", True),
        ("who=abcd", False),
        ("who=ab", False),
        ("xwho=abc", False),
        ("x-who=abc", False),
        ("a=who=abc", False),
        ("who-not=abc", False),
        ("who=abc2; who2=abc", False),
    ],
)
def test_a_cookie_is_known_by_its_exact_name_and_value(sent: str, known: bool) -> None:
    again, *_ = http(Traffic(weight=10, affinity=AFFINITY, cookie="abc"))
    regex = again["match"][0]["headers"]["cookie"]["regex"]
    assert bool(re.fullmatch(regex, sent)) is known


def test_when_the_run_is_over_cookies_are_ended() -> None:
    *ends, main = http(Traffic(affinity=AFFINITY, cookie="abc"))
    for route, name in zip(ends, ("who", "who-not"), strict=True):
        assert weights(route) == {"web": 100, "web-canary": 0}
        assert route["route"][0]["headers"]["response"]["add"]["Set-Cookie"].startswith(f"{name}=; Max-Age=0; Path=/")
        assert re.fullmatch(route["match"][0]["headers"]["cookie"]["regex"], f"a=b; {name}=whatever")
    assert main == {"route": [to("web", 100), to("web-canary", 0)]}


def test_cookies_of_a_service_itself_are_not_replaced() -> None:
    _, _, main = http(Traffic(weight=1, affinity=AFFINITY, cookie="abc"))
    assert "set" not in main["route"][1]["headers"]["response"]


@pytest.mark.parametrize(
    "traffic",
    [
        Traffic(),
        Traffic(weight=37),
        Traffic(weight=37, mirror=10),
        Traffic(weight=100, match=(INSIDER,)),
        Traffic(weight=40, match=(INSIDER,)),
        Traffic(weight=37, affinity=AFFINITY, cookie="abc"),
        Traffic(affinity=AFFINITY, cookie="abc"),
    ],
)
def test_the_weight_can_be_read_back(traffic: Traffic) -> None:
    assert weight_of(owned_virtual_service(canary(), traffic), canary()) == traffic.weight
    found = virtual_service({"route": [to("web")]}, {"route": [to("else")]})
    chosen = canary(virtualService={"name": "front"})
    assert weight_of(driven(found, chosen, traffic), chosen) == traffic.weight


def test_the_weight_is_not_known_when_routes_differ_or_none_is_ours() -> None:
    assert weight_of(virtual_service({"route": [to("else")]}), canary()) is None
    one, other = [to("web", 90), to("web-canary", 10)], [to("web", 80), to("web-canary", 20)]
    assert weight_of(virtual_service({"route": one}, {"route": other}), canary()) is None
    assert weight_of(virtual_service({"route": [to("web")]}), canary()) == 0


def test_only_routes_that_are_named_are_driven() -> None:
    chosen = canary(virtualService={"name": "front", "routes": ["a"]})
    other = {"name": "b", "route": [to("web")]}
    found = virtual_service({"name": "a", "route": [to("web")]}, other, tcp=[{"route": [to("web")]}])
    made = driven(found, chosen, Traffic(weight=10))
    assert weights(made["spec"]["http"][0]) == {"web": 90, "web-canary": 10}
    assert made["spec"]["http"][1] == other
    assert made["spec"]["tcp"] == [{"route": [to("web")]}]
    assert weight_of(made, chosen) == 10


def test_a_route_that_is_no_longer_named_is_given_back() -> None:
    found = virtual_service({"name": "a", "route": [to("web")]}, {"name": "b", "route": [to("web", 100)]})
    both = canary(virtualService={"name": "front", "routes": ["a", "b"]})
    one = canary(virtualService={"name": "front", "routes": ["a"]})
    made = driven(driven(found, both, Traffic(weight=10)), one, Traffic(weight=20))
    assert made["spec"]["http"][1] == {"name": "b", "route": [to("web", 100)]}


def test_what_others_change_while_it_is_driven_stays() -> None:
    chosen = canary(virtualService={"name": "front"})
    found = virtual_service({"route": [to("web", 100)]})
    made = driven(found, chosen, Traffic(weight=10, affinity=AFFINITY, cookie="abc"))
    made["spec"]["http"][-1] = {**made["spec"]["http"][-1], "timeout": "3s"}
    made["spec"]["http"].append({"name": "new", "route": [to("else")]})
    made["spec"]["hosts"].append("more.example.com")
    after = driven(made, chosen, Traffic(weight=20))
    assert after["spec"]["hosts"] == ["shop.example.com", "more.example.com"]
    assert after["spec"]["http"] == [
        {"timeout": "3s", "route": [to("web", 80), to("web-canary", 20)]},
        {"name": "new", "route": [to("else")]},
    ]
    assert released(after, chosen)["spec"]["http"][0] == {"timeout": "3s", "route": [to("web")]}


def test_the_authors_own_file_is_where_the_next_round_starts() -> None:
    chosen = canary(virtualService={"name": "front"})
    made = driven(virtual_service({"route": [to("web", 100)]}), chosen, Traffic(weight=10))
    again = {**made, "spec": {"hosts": ["b"], "http": [{"route": [to("web", 70), to("else", 30)]}]}}
    after = driven(again, chosen, Traffic(weight=10))
    assert weights(after["spec"]["http"][0]) == {"web": 63, "web-canary": 7, "else": 30}
    assert released(after, chosen)["spec"] == again["spec"]


def test_two_canaries_drive_one_virtual_service() -> None:
    web = canary(virtualService={"name": "front"})
    api = canary("api", virtualService={"name": "front"})
    found = virtual_service({"name": "r", "route": [to("web", 50), to("api", 50)]}, {"route": [to("api")]})
    made = driven(found, web, Traffic(weight=10, affinity=AFFINITY, cookie="abc"))
    made = driven(made, api, Traffic(weight=100, match=(INSIDER,)))
    assert (weight_of(made, web), weight_of(made, api)) == (10, 100)
    assert released(released(made, web), api) == found
    assert released(released(made, api), web) == found


def test_a_memory_that_was_spoilt_is_not_trusted() -> None:
    chosen = canary(virtualService={"name": "front"})
    made = driven(virtual_service({"route": [to("web", 100)]}), chosen, Traffic(weight=10))
    for text in ("", "{", "[]", '{"routes":[["http",{"route":[]}]]}', '{"routes":[["hosts",{}]]}', "x" * 100_000):
        made["metadata"]["annotations"]["delivery.trimtab.dev/driven-web"] = text
        assert released(made, chosen)["spec"]["http"] == [{"route": [to("web")]}]


def test_what_is_too_large_to_remember_is_given_back_without_the_canary() -> None:
    chosen = canary(virtualService={"name": "front"})
    large = {"match": [{"uri": {"exact": "/" + "x" * 70_000}}], "route": [to("web", 100)]}
    made = driven(virtual_service(large), chosen, Traffic(weight=10))
    assert len(str(made["metadata"])) < 1000
    assert released(made, chosen)["spec"]["http"] == [{**large, "route": [to("web")]}]


@pytest.mark.parametrize(
    ("found", "routes", "match", "said"),
    [
        (virtual_service({"route": [to("web.shop")]}), [], [], ""),
        (virtual_service(tls=[{"route": [to("web")]}]), [], [], ""),
        (virtual_service({"route": [to("else")]}), [], [], "no route of it goes to the host web"),
        (virtual_service(), [], [], "no route of it"),
        ({"spec": {"http": "x", "tls": [3]}}, [], [], "no route of it"),
        (virtual_service({"name": "b", "route": [to("web")]}), ["a"], [], "no http route named a (there are: b)"),
        (virtual_service({"name": "a", "route": [to("else")]}), ["a"], [], "its route a does not go to the host web"),
        (
            virtual_service({"match": [{"uri": {"regex": "/a.*"}}], "route": [to("web")]}),
            [],
            [{"uri": {"regex": ".*b"}}],
            "cannot both be said",
        ),
    ],
)
def test_what_cannot_be_driven_is_said(found: Any, routes: list[str], match: list[Any], said: str) -> None:
    analysis = {"iterations": 1, "match": match}
    chosen = canary(virtualService={"name": "front", "routes": routes}, analysis=analysis)
    assert (problems(found, chosen) == []) if not said else said in " ".join(problems(found, chosen))


def test_a_traffic_policy_makes_rules_for_both() -> None:
    assert destination_rules(canary()) == []
    policy = {"connectionPool": {"http": {"http2MaxRequests": 10}}}
    rules = destination_rules(canary(virtualService={"trafficPolicy": policy}))
    assert [(rule["metadata"]["name"], rule["spec"]) for rule in rules] == [
        ("web", {"host": "web", "trafficPolicy": policy}),
        ("web-canary", {"host": "web-canary", "trafficPolicy": policy}),
    ]
