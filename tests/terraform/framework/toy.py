"""A provider of one small world, with every feature of the framework in it, for tests with the real Terraform."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.config_validators import (
    AtLeastOneOf,
    ConfigValidator,
    Conflicting,
    ExactlyOneOf,
    RequiredTogether,
)
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.data_source import DataSource, ReadData
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.ephemeral import Close, Ephemeral, Open, Opened, Renew, Renewed
from trimtab.terraform.framework.function import ArgumentError, Function, Parameter
from trimtab.terraform.framework.modifiers import KeepState, RequiresReplace, RequiresReplaceIf
from trimtab.terraform.framework.provider import Provider
from trimtab.terraform.framework.resource import (
    Create,
    Delete,
    IdentityAttribute,
    Import,
    Move,
    PlanCreate,
    PlanDelete,
    PlanUpdate,
    Read,
    Resource,
    Update,
)
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.timeouts import seconds, timeouts
from trimtab.terraform.framework.trees import Config, Plan, State
from trimtab.terraform.framework.types import BOOL, DYNAMIC, NUMBER, STRING, ListOf, MapOf, SetOf
from trimtab.terraform.framework.validators import Between, Each, Length, Matches, OneOf
from trimtab.terraform.framework.values import UNKNOWN, whole


def same_duration(a: str, b: str) -> bool:
    return seconds(a) == seconds(b)


@dataclass
class World:
    """The service behind the provider: what a test may look at, change behind Terraform's back, and break."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)
    on_create: Callable[[Create, dict[str, Any]], None] | None = None
    on_update: Callable[[Update, dict[str, Any]], None] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: Any = field(default_factory=lambda: itertools.count(1))


def thing_schema() -> Schema:
    return Schema(
        {
            "id": Attribute(STRING, computed=True, modifiers=(KeepState(),)),
            "name": Attribute(STRING, required=True, modifiers=(RequiresReplace(),), validators=(Length(2, 20),)),
            "revision": Attribute(NUMBER, computed=True),
            "description": Attribute(STRING, optional=True),
            "size": Attribute(NUMBER, default=1, validators=(Between(1, 100),)),
            "ratio": Attribute(NUMBER, optional=True),
            "fast": Attribute(BOOL, optional=True),
            "ttl": Attribute(STRING, optional=True, equal=same_duration),
            "tags": Attribute(SetOf(STRING), optional=True, validators=(Each(Matches("[a-z]+")),)),
            "labels": Attribute(MapOf(STRING), optional=True, validators=(Each(Length(1, 10)),)),
            "steps": Attribute(ListOf(STRING), optional=True, validators=(Each(OneOf("build", "test", "ship")),)),
            "zone": Attribute(
                STRING,
                optional=True,
                computed=True,
                modifiers=(RequiresReplaceIf(lambda change: change.prior == "moon"),),
            ),
            "network": Attribute(
                Nested(
                    {
                        "cidr": Attribute(STRING, required=True, modifiers=(RequiresReplace(),)),
                        "mtu": Attribute(NUMBER, default=1500),
                        "gateway": Attribute(STRING, computed=True, modifiers=(KeepState(),)),
                    }
                ),
                optional=True,
            ),
            "nodes": Attribute(
                Nested(
                    {
                        "role": Attribute(STRING, required=True, validators=(OneOf("head", "worker"),)),
                        "address": Attribute(STRING, computed=True),
                    },
                    "list",
                ),
                optional=True,
            ),
            "pools": Attribute(
                Nested(
                    {
                        "size": Attribute(NUMBER, default=2),
                        "kind": Attribute(STRING, optional=True, modifiers=(RequiresReplace(),)),
                        "handle": Attribute(STRING, computed=True, modifiers=(KeepState(),)),
                    },
                    "map",
                ),
                optional=True,
            ),
            "rules": Attribute(
                Nested(
                    {
                        "port": Attribute(NUMBER, required=True, validators=(Between(1, 65535),)),
                        "protocol": Attribute(STRING, default="tcp"),
                        "note": Attribute(STRING, optional=True, computed=True),
                        "within": Attribute(STRING, optional=True, equal=same_duration),
                    },
                    "set",
                ),
                optional=True,
            ),
            "secret": Attribute(STRING, optional=True, write_only=True),
            "secret_version": Attribute(NUMBER, optional=True),
            "password": Attribute(STRING, optional=True, sensitive=True, validators=(Length(8),)),
            "old": Attribute(STRING, optional=True, deprecated="Use description."),
            "anything": Attribute(DYNAMIC, optional=True),
            "timeouts": timeouts("create", "delete"),
        },
        {
            "disk": Block(
                {
                    "gigabytes": Attribute(NUMBER, required=True),
                    "kind": Attribute(STRING, default="ssd"),
                    "path": Attribute(STRING, computed=True),
                },
                {"mount": Block({"at": Attribute(STRING, required=True)}, nesting="single")},
                nesting="list",
            ),
            "volume": Block({"gigabytes": Attribute(NUMBER, default=1)}, nesting="map"),
            "access": Block({"who": Attribute(STRING, required=True)}, nesting="set"),
        },
    )


class Thing(Resource):
    identity: Mapping[str, IdentityAttribute] = {"name": IdentityAttribute("name")}

    def __init__(self, world: World) -> None:
        self.world = world

    def schema(self) -> Schema:
        return thing_schema()

    def plan(self, op: PlanCreate | PlanUpdate | PlanDelete) -> Plan | None:
        if isinstance(op, PlanDelete):
            op.context.warning("Thing goes away", f"{op.state['name']} is to be deleted.")
        elif isinstance(op, PlanUpdate) and op.plan["description"] == "reborn" != op.state["description"]:
            op.replace("description")
        return None

    def create(self, op: Create) -> State:
        self.world.calls.append("create")
        self.world.seen = {"config": op.config.value, "timeout": op.context.timeouts("create", 60.0)}
        assert whole(op.config.value)
        value = self._computed(op.plan.value, None)
        if value["name"] in self.world.objects:
            raise Failed("Already there", f"{value['name']} exists: import it.", "name")
        if self.world.on_create is not None:
            self.world.on_create(op, value)
        op.private["made"] = "here"
        self.world.objects[value["name"]] = copy.deepcopy(value)
        return State(value)

    def read(self, op: Read) -> State | None:
        self.world.seen["private"] = dict(op.private)
        found = self.world.objects.get(op.state["name"])
        if found is None:
            return None
        kept = {"timeouts": op.state["timeouts"]} if op.state["timeouts"] is not None else {}
        return State({**copy.deepcopy(found), **kept})

    def update(self, op: Update) -> State:
        self.world.calls.append("update")
        value = self._computed(op.plan.value, op.state.value)
        if self.world.on_update is not None:
            self.world.on_update(op, value)
        self.world.objects[value["name"]] = copy.deepcopy(value)
        return State(value)

    def delete(self, op: Delete) -> None:
        self.world.calls.append("delete")
        self.world.objects.pop(op.state["name"], None)

    def import_state(self, op: Import) -> State:
        name = op.identity["name"] if op.identity is not None else op.id.removeprefix("thing/")
        if name not in self.world.objects:
            raise Failed("Not found", f"There is no thing {name}.")
        return State({"name": name})

    def _computed(self, planned: dict[str, Any], prior: dict[str, Any] | None) -> dict[str, Any]:
        with self.world.lock:
            value = self._fill(planned)
        value["revision"] = 1 if prior is None else (prior["revision"] or 0) + 1
        return value

    def _fill(self, value: Any) -> Any:
        if value is UNKNOWN:
            return f"made-{next(self.world.numbers)}"
        if isinstance(value, dict):
            return {name: self._fill(inner) for name, inner in value.items()}
        return [self._fill(inner) for inner in value] if isinstance(value, list) else value


class Choice(Resource):
    """Rules over the whole configuration, with nested paths."""

    config_validators: tuple[ConfigValidator, ...] = (
        AtLeastOneOf("spec.credentials", "spec.config.ssh"),
        ExactlyOneOf("aws", "gcp", within="spec.clouds[*]"),
        Conflicting("spec.a", "spec.b"),
        RequiredTogether("user", "spec.a"),
    )

    def schema(self) -> Schema:
        text = Attribute(STRING, optional=True)
        clouds = Nested({"aws": Attribute(Nested({"region": text}), optional=True), "gcp": text}, "list")
        spec = {
            "credentials": text,
            "config": Attribute(Nested({"ssh": text}), optional=True),
            "clouds": Attribute(clouds, optional=True),
            "a": text,
            "b": text,
        }
        return Schema({"user": text, "spec": Attribute(Nested(spec), required=True)})

    def create(self, op: Create) -> State:
        return State(op.plan.value)

    def read(self, op: Read) -> State | None:
        return op.state

    def delete(self, op: Delete) -> None:
        return None


class Versioned(Resource):
    """A schema that has changed its form, and once its name."""

    version = 2

    def __init__(self, version: int) -> None:
        self.version = version
        self.upgraders = {0: self._rename, 1: self._nest} if version == 2 else {}
        self.movers = (self._from_old,)

    def schema(self) -> Schema:
        match self.version:
            case 0:
                return Schema({"title": Attribute(STRING, required=True)}, version=0)
            case 2:
                inner = Attribute(Nested({"name": Attribute(STRING, required=True)}), required=True)
                return Schema({"metadata": inner}, version=2)
            case _:
                raise AssertionError(self.version)

    def create(self, op: Create) -> State:
        return State(op.plan.value)

    def read(self, op: Read) -> State | None:
        return op.state

    def delete(self, op: Delete) -> None:
        return None

    @staticmethod
    def _rename(state: dict[str, Any]) -> dict[str, Any]:
        return {"name": state["title"]}

    @staticmethod
    def _nest(state: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"name": state["name"]}}

    @staticmethod
    def _from_old(move: Move) -> State | None:
        if move.source_type != "toy_legacy":
            return None
        return State({"metadata": {"name": move.source_state["title"]}})


class ThingData(DataSource):
    config_validators: tuple[ConfigValidator, ...] = ()

    def __init__(self, world: World) -> None:
        self.world = world

    def schema(self) -> Schema:
        return Schema(
            {
                "name": Attribute(STRING, required=True),
                "revision": Attribute(NUMBER, computed=True),
                "rules": Attribute(Nested({"port": Attribute(NUMBER, computed=True)}, "list"), computed=True),
            }
        )

    def read(self, op: ReadData) -> State:
        found = self.world.objects.get(op.config["name"])
        if found is None:
            raise Failed("Not found", f"There is no thing {op.config['name']}.", "name")
        rules = [{"port": rule["port"]} for rule in found["rules"] or []]
        return State({"revision": found["revision"], "rules": rules})


class Token(Ephemeral):
    def __init__(self, world: World) -> None:
        self.world = world

    def schema(self) -> Schema:
        return Schema(
            {"for": Attribute(STRING, required=True), "token": Attribute(STRING, computed=True, sensitive=True)}
        )

    def open(self, op: Open) -> Opened:
        self.world.calls.append("open")
        soon = datetime.now(UTC) + timedelta(minutes=5)
        return Opened({"token": f"s3cret-of-{op.config['for']}"}, renew_at=soon, private={"for": op.config["for"]})

    def renew(self, op: Renew) -> Renewed:
        self.world.calls.append(f"renew {op.private['for']}")
        return Renewed(private=op.private)

    def close(self, op: Close) -> None:
        self.world.calls.append(f"close {op.private['for']}")


class Join(Function):
    parameters = (Parameter("separator", STRING, validators=(Length(1, 3),)),)
    variadic = Parameter("parts", STRING)
    returns = STRING
    summary = "Join texts"

    def call(self, separator: str, *parts: str) -> str:
        for at, part in enumerate(parts, 1):
            if separator in part:
                raise ArgumentError(at, f"part {part!r} holds the separator")
        return separator.join(parts)


class Toy(Provider):
    def __init__(self, world: World, version: int = 2) -> None:
        super().__init__("toy", "1.0.0")
        self.world = world
        self.of = version

    def schema(self) -> Schema:
        return Schema(
            {
                "endpoint": Attribute(STRING, optional=True, validators=(Matches("https?://.+", "be a URL"),)),
                "token": Attribute(STRING, optional=True, sensitive=True),
            }
        )

    def configure(self, config: Config, context: Context) -> Any:
        if config["endpoint"] == "http://down":
            raise Failed("Cannot connect", "http://down does not answer.", "endpoint")
        return ("client of", config["endpoint"])

    def resources(self) -> Mapping[str, Callable[[], Resource]]:
        offered: dict[str, Callable[[], Resource]] = {
            "toy_thing": lambda: Thing(self.world),
            "toy_choice": Choice,
            "toy_versioned": lambda: Versioned(self.of),
        }
        if self.of == 0:
            offered["toy_legacy"] = lambda: Versioned(0)
        return offered

    def data_sources(self) -> Mapping[str, Callable[[], DataSource]]:
        return {"toy_thing": lambda: ThingData(self.world)}

    def functions(self) -> Mapping[str, Callable[[], Function]]:
        return {"join": Join}

    def ephemerals(self) -> Mapping[str, Callable[[], Ephemeral]]:
        return {"toy_token": lambda: Token(self.world)}
