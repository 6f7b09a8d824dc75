"""What the translation keeps from one turn to the next saves work, and changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.local.test_gateway_translating import meta, pod, service, virtual
from trimtab.model.istio import DestinationRule
from trimtab.systems.local.gateway.addresses import addresses
from trimtab.systems.local.gateway.names import Key
from trimtab.systems.local.gateway.translate import Memory, translate
from trimtab.systems.local.gateway.world import World

RULE = {"host": "web", "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}


class Turn(msgspec.Struct, frozen=True):
    """What may be another from turn to turn."""

    weight: int
    canary: bool
    ready: bool
    protocol: str
    rule: bool
    refused: bool
    routes: str


def world_of(turn: Turn) -> World:
    port = {"name": f"{turn.protocol}-web", "port": 80, "targetPort": 8080}
    services = (service("web", port), *((service("web-canary"),) if turn.canary else ()))
    shares = [
        {"destination": {"host": "web"}, "weight": 100 - turn.weight},
        {"destination": {"host": "web-canary"}, "weight": turn.weight},
    ]
    routes = {"good": [virtual("web", [{"route": shares}])], "bad": [virtual("web", [{"redirect": {"x": 1}}])]}
    if turn.protocol == "tcp" and turn.routes == "good":
        routes["good"][0].spec["tcp"] = [{"route": shares}]  # type: ignore[index]
    return World(
        services=services,
        pods=(pod("a", "web", "127.10.0.1", turn.ready),),
        virtual_services=tuple(routes.get(turn.routes, ())),
        destination_rules=(DestinationRule(metadata=meta("web"), spec=RULE),) if turn.rule else (),
        addresses=addresses(services),
        ingress=18080,
    )


def same_ground(one: World, other: World) -> bool:
    fields = ("services", "pods", "destination_rules")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


turns = st.builds(
    Turn,
    weight=st.sampled_from((1, 50, 99)),
    canary=st.booleans(),
    ready=st.booleans(),
    protocol=st.sampled_from(("http", "tcp")),
    rule=st.booleans(),
    refused=st.booleans(),
    routes=st.sampled_from(("good", "bad", "none")),
)


@given(st.lists(turns, min_size=2, max_size=5))
def test_a_memory_changes_nothing_of_what_is_told(sequence: list[Turn]) -> None:
    memory, before = Memory(), None
    for turn in sequence:
        world = world_of(turn)
        refused: dict[Key, str] = {Key("shop", "web"): "no"} if turn.refused else {}
        expected = translate(world, refused_rules=refused)
        if before is not None and same_ground(before, world):
            world = before.routed(world.virtual_services)
        assert translate(world, refused_rules=refused, memory=memory) == expected
        before = world


def test_what_has_not_changed_is_the_same_document() -> None:
    memory: Memory = Memory()
    turn = Turn(1, True, True, "http", False, False, "good")
    world: World = world_of(turn)
    one: Any = translate(world, memory=memory)
    another = world_of(msgspec.structs.replace(turn, weight=50)).virtual_services
    two: Any = translate(world.routed(another), memory=memory)
    assert one.routes != two.routes
    assert one.clusters is two.clusters
    names = ("shop.web.80", "shop.web-canary.80")
    assert all(one.listeners[name] is two.listeners[name] for name in names)
