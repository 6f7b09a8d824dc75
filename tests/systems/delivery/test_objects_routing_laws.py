"""What holds for every VirtualService and every traffic."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.systems.delivery.objects_kit import canary
from trimtab.systems.delivery.kinds.analysis import SessionAffinity
from trimtab.systems.delivery.objects.matching import NEVER, UNSAYABLE, both
from trimtab.systems.delivery.objects.routing import (
    Traffic,
    driven,
    owned_virtual_service,
    released,
    weight_of,
)
from trimtab.systems.delivery.objects.shares import part, scaled

OURS = ("web", "web.shop", "web.shop.svc", "web.shop.svc.cluster.local")
hosts = st.sampled_from((*OURS, "else", "web.other", "*.example.com"))
small = st.dictionaries(st.sampled_from(["a", "b", "Set-Cookie"]), st.sampled_from(["1", "2"]), max_size=2)
texts = st.one_of(
    st.sampled_from(["/", "/a", "/a/b", "x"]).flatmap(lambda t: st.sampled_from([{"exact": t}, {"prefix": t}])),
    st.just({"regex": ".*"}),
)
matches = st.fixed_dictionaries(
    {},
    optional={
        "uri": texts,
        "method": texts,
        "port": st.sampled_from([80, 81]),
        "headers": st.dictionaries(st.sampled_from(["x", "cookie"]), texts, max_size=2),
        "gateways": st.lists(st.sampled_from(["mesh", "g"]), min_size=1, unique=True),
    },
)
destinations = st.fixed_dictionaries(
    {"destination": st.fixed_dictionaries({"host": hosts}, optional={"subset": st.just("v1")})},
    optional={
        "weight": st.integers(0, 100),
        "headers": st.fixed_dictionaries({}, optional={"response": st.fixed_dictionaries({}, optional={"add": small})}),
    },
)
plain = st.fixed_dictionaries({"route": st.lists(destinations, min_size=1, max_size=3)})
mirrors = st.fixed_dictionaries(
    {"destination": st.just({"host": "audit"})}, optional={"percentage": st.just({"value": 7})}
)
http = st.fixed_dictionaries(
    {},
    optional={
        "route": st.lists(destinations, max_size=3),
        "name": st.sampled_from(["a", "b"]),
        "match": st.lists(matches, max_size=2),
        "timeout": st.just("3s"),
        "mirror": st.just({"host": "audit"}),
        "mirrorPercentage": st.just({"value": 3}),
        "mirrors": st.lists(mirrors, max_size=2),
        "redirect": st.just({"uri": "/"}),
    },
)
specs = st.fixed_dictionaries(
    {"hosts": st.just(["h"])},
    optional={
        "http": st.lists(http, max_size=4),
        "tls": st.lists(plain, max_size=2),
        "tcp": st.lists(plain, max_size=2),
    },
)
affinities = st.sampled_from(
    [UNSET, SessionAffinity(cookie_name="c"), SessionAffinity(cookie_name="c", stable_cookie_name="s")]
)
traffics = st.builds(
    Traffic,
    weight=st.integers(0, 100),
    mirror=st.integers(0, 100),
    match=st.lists(matches, max_size=2).map(tuple),
    affinity=affinities,
    cookie=st.sampled_from(["", "abc"]),
)
choices = st.sampled_from([canary(virtualService={"name": "front", "routes": names}) for names in ([], ["a"])])


def document(spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "front", "annotations": {"team": "edge"}}, "spec": spec}


def ours(made: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The destinations of each route that the canary is in."""
    routes = [route for section in ("http", "tls", "tcp") for route in made["spec"].get(section, ())]
    found = [route["route"] for route in routes if "route" in route]
    return [d for d in found if any(one["destination"]["host"].startswith("web-canary") for one in d)]


@given(specs, traffics)
def test_weights_are_whole_and_sum_to_100(spec: dict[str, Any], traffic: Traffic) -> None:
    for listed in ours(owned_virtual_service(canary(virtualService={"spec": spec}), traffic)):
        weights = [destination["weight"] for destination in listed]
        assert all(type(weight) is int and 0 <= weight <= 100 for weight in weights)
        assert sum(weights) == 100


@given(specs, traffics, traffics, choices)
def test_what_was_driven_is_released_exactly(spec: dict[str, Any], one: Traffic, other: Traffic, chosen: Any) -> None:
    found = document(spec)
    before = copy.deepcopy(found)
    made = driven(driven(found, chosen, one), chosen, other)
    assert released(made, chosen) == before
    assert found == before, "and what was given is not touched"


@given(specs, traffics, traffics, choices)
def test_driving_is_forgetful_and_repeatable(spec: dict[str, Any], one: Traffic, other: Traffic, chosen: Any) -> None:
    straight = driven(document(spec), chosen, other)
    assert driven(straight, chosen, other) == straight
    assert driven(driven(document(spec), chosen, one), chosen, other) == straight


@given(traffics, st.sampled_from(OURS))
def test_the_weight_that_was_set_is_read_back(traffic: Traffic, host: str) -> None:
    chosen = canary(virtualService={"spec": {"hosts": ["h"], "http": [{"route": [{"destination": {"host": host}}]}]}})
    assert weight_of(owned_virtual_service(chosen, traffic), chosen) == traffic.weight


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.integers(0, 100))
def test_shares_keep_their_proportions_to_one_percent(weights: list[int], total: int) -> None:
    shares = scaled(weights, total)
    assert sum(shares) == total
    whole = sum(weights)
    if whole:
        assert all(abs(share - weight * total / whole) < 1 for share, weight in zip(shares, weights, strict=True))
    assert scaled(shares, total) == shares or not total


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_part_is_never_more_than_the_whole(total: int, percent: int) -> None:
    assert 0 <= part(total, percent) <= total
    assert part(total, 100) == total
    assert part(100, percent) == percent


@given(matches, matches)
def test_both_conditions_do_not_depend_on_their_order(one: dict[str, Any], other: dict[str, Any]) -> None:
    met, turned = both(one, other), both(other, one)
    if isinstance(met, dict) and isinstance(turned, dict) and "gateways" in met:
        met["gateways"].sort()
        turned["gateways"].sort()
    # A pair may be refused for two reasons; which one is met first is a matter of order.
    assert met == turned or {met, turned} == {NEVER, UNSAYABLE}
    assert both(one, one) == one
    assert both(one, {}) == one
