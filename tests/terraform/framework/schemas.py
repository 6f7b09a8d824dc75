"""Random schemas, configurations for them, and a service that fills in what is computed: for property tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.modifiers import KeepState, Modifier, RequiresReplace
from trimtab.terraform.framework.provider import Provider
from trimtab.terraform.framework.resource import Create, Delete, Read, Resource, Update
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import State
from trimtab.terraform.framework.types import BOOL, DYNAMIC, NUMBER, STRING, ListOf, MapOf, ObjectOf, SetOf, Type
from trimtab.terraform.framework.values import UNKNOWN, Typed


def alike(a: str, b: str) -> bool:
    """The meaning of a text is in its letters, not in their case."""
    return a.lower() == b.lower()


class Dice:
    """All that is random, of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def schema(self) -> Schema:
        return Schema(self.attributes(2, computed=False), self.blocks(2))

    def attributes(self, depth: int, *, computed: bool, in_set: bool = False) -> dict[str, Attribute]:
        return {f"a{at}": self.attribute(depth, computed, in_set) for at in range(self.random.randint(1, 4))}

    def attribute(self, depth: int, computed: bool, in_set: bool) -> Attribute:
        kind = (
            "computed"
            if computed
            else self.random.choice(("required", "optional", "computed", "either", "default", "secret"))
        )
        if kind == "secret" and in_set:
            kind = "optional"
        made = kind in ("computed", "either")
        type_ = self.type(depth, kind == "computed", in_set or kind == "secret", in_set, unique=in_set and made)
        flags: dict[str, Any] = {
            "required": {"required": True},
            "optional": {"optional": True},
            "computed": {"computed": True},
            "either": {"optional": True, "computed": True},
            "default": {"default": self.value(type_, unknown=0)},
            "secret": {"optional": True, "write_only": True},
        }[kind]
        modifiers: list[Modifier] = []
        if self.random.random() < 0.4:
            modifiers.append(KeepState(null=self.random.random() < 0.3))
        if self.random.random() < 0.2:
            modifiers.append(RequiresReplace())
        equal = alike if type_ == STRING and self.random.random() < 0.4 else None
        return Attribute(type_, modifiers=tuple(modifiers), equal=equal, **flags)

    def type(self, depth: int, computed: bool, plain: bool, in_set: bool, unique: bool) -> Type | Nested:
        scalar = self.random.choice((STRING, NUMBER) if unique else (STRING, NUMBER, BOOL))
        choices: list[Callable[[], Type | Nested]] = [
            lambda: scalar,
            lambda: STRING,
            lambda: self.random.choice((ListOf, SetOf, MapOf))(scalar),
            lambda: ObjectOf({"x": STRING, "y": NUMBER}),
        ]
        if not in_set and depth == 2:
            choices.append(lambda: DYNAMIC)
        if depth and not plain:
            choices += [lambda: self.nested(depth, computed, in_set)] * 3
        return self.random.choice(choices)()

    def nested(self, depth: int, computed: bool, in_set: bool) -> Nested:
        nesting = self.random.choice(("single", "list", "set", "map"))
        inside = in_set or nesting == "set"
        return Nested(self.attributes(depth - 1, computed=computed, in_set=inside), nesting)  # type: ignore[arg-type]

    def blocks(self, depth: int) -> dict[str, Block]:
        if not depth:
            return {}
        out = {}
        for at in range(self.random.randint(0, 2)):
            nesting = self.random.choice(("single", "list", "set"))
            inner = self.attributes(1, computed=False, in_set=nesting == "set")
            out[f"b{at}"] = Block(inner, self.blocks(depth - 1) if nesting != "set" else {}, nesting)  # type: ignore[arg-type]
        return out

    def config(self, schema: Schema | Nested | Block, unknown: float = 0) -> dict[str, Any]:
        out = {}
        for name, attribute in schema.attributes.items():
            given = attribute.required or (attribute.optional and self.random.random() < 0.6)
            out[name] = self.value(attribute.type, unknown) if given else None
        for name, block in getattr(schema, "blocks", {}).items():
            some = [self.config(block, unknown) for _ in range(self.random.randint(0, 3))]
            out[name] = some if block.nesting != "single" else (some[0] if some else None)
        return out

    def value(self, type_: Type | Nested, unknown: float) -> Any:
        if self.random.random() < unknown:
            return UNKNOWN
        if isinstance(type_, Nested):
            return self.several(type_.nesting, lambda: self.config(type_, unknown))
        match type_:
            case ListOf(inner):
                return self.several("list", lambda: self.value(inner, unknown))
            case SetOf(inner):
                return self.several("set", lambda: self.value(inner, unknown))
            case MapOf(inner):
                return self.several("map", lambda: self.value(inner, unknown))
            case ObjectOf(inner_types):
                return {name: self.value(inner, unknown) for name, inner in inner_types.items()}
        if type_ == DYNAMIC:
            return Typed(STRING, self.value(STRING, 0))
        if type_ == STRING:
            return self.random.choice(("", "a", "B", "ccc", "Dd"))
        return self.random.choice((0, 1, -7, 2**70, 0.1, 2.5)) if type_ == NUMBER else self.random.random() < 0.5

    def several(self, nesting: str, make: Callable[[], Any]) -> Any:
        if nesting == "single":
            return make()
        items = [make() for _ in range(self.random.randint(0, 3))]
        return {f"k{at}": item for at, item in enumerate(items)} if nesting == "map" else items

    def settled(self, schema: Schema | Nested | Block, config: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration once what was unknown is known: any value, or none where none is allowed."""
        out = {}
        for name, attribute in schema.attributes.items():
            value = config[name]
            if value is UNKNOWN and not attribute.required and self.random.random() < 0.3:
                value = None
            out[name] = self.settled_value(attribute.type, value)
        for name, block in getattr(schema, "blocks", {}).items():
            inner = config[name]
            if isinstance(inner, list):
                out[name] = [self.settled(block, element) for element in inner]
            else:
                out[name] = None if inner is None else self.settled(block, inner)
        return out

    def settled_value(self, type_: Type | Nested, value: Any) -> Any:
        if value is None:
            return None
        if value is UNKNOWN:
            return self.value(type_, 0)
        if isinstance(type_, Nested):
            if type_.nesting == "single":
                return self.settled(type_, value)
            if type_.nesting == "map":
                return {key: self.settled(type_, element) for key, element in value.items()}
            return [self.settled(type_, element) for element in value]
        match type_:
            case ListOf(inner) | SetOf(inner):
                return [self.settled_value(inner, element) for element in value]
            case MapOf(inner):
                return {key: self.settled_value(inner, element) for key, element in value.items()}
            case ObjectOf(inner_types):
                return {name: self.settled_value(inner, value[name]) for name, inner in inner_types.items()}
        return value

    def filled(self, schema: Schema | Nested | Block, planned: Mapping[str, Any]) -> dict[str, Any]:
        """What a service makes of a plan: values for what is unknown, and spellings of its own where they mean the same."""
        out = {}
        for name, attribute in schema.attributes.items():
            value = planned[name]
            if value is UNKNOWN:
                value = self.fresh(attribute.type)
            elif value is not None and isinstance(attribute.type, Nested):
                value = self.each(attribute.type, value)
            elif attribute.equal is not None and value is not None and self.random.random() < 0.5:
                value = value.swapcase()
            out[name] = value
        for name, block in getattr(schema, "blocks", {}).items():
            out[name] = None if planned[name] is None else self.each(block, planned[name])
        return out

    def each(self, schema: Nested | Block, value: Any) -> Any:
        if schema.nesting == "single":
            return self.filled(schema, value)
        if schema.nesting == "map":
            return {key: self.filled(schema, inner) for key, inner in value.items()}
        items = [self.filled(schema, inner) for inner in value]
        if schema.nesting == "set":
            self.random.shuffle(items)
        return items

    def fresh(self, type_: Type | Nested) -> Any:
        if self.random.random() < 0.2:
            return None
        if isinstance(type_, Nested):
            return self.several(
                type_.nesting, lambda: {name: self.fresh(inner.type) for name, inner in type_.attributes.items()}
            )
        match type_:
            case ListOf(inner) | SetOf(inner):
                return [self.fresh(inner) or self.fresh_scalar(inner)]
            case MapOf(inner):
                return {"made": self.fresh(inner) or self.fresh_scalar(inner)}
            case ObjectOf(inner_types):
                return {name: self.fresh(inner) for name, inner in inner_types.items()}
        return Typed(STRING, "made") if type_ == DYNAMIC else self.fresh_scalar(type_)

    def fresh_scalar(self, type_: Type) -> Any:
        self.count += 1
        if type_ == STRING:
            return f"made {self.count}"
        return 1000 + self.count if type_ == NUMBER else self.random.random() < 0.5

    def turned(self, type_: Type, value: Any) -> Any:
        """The same value, with its sets in another order."""
        if value is None or value is UNKNOWN:
            return value
        match type_:
            case SetOf(inner) | ListOf(inner):
                items = [self.turned(inner, element) for element in value]
                if isinstance(type_, SetOf):
                    self.random.shuffle(items)
                return items
            case MapOf(inner):
                return {key: self.turned(inner, element) for key, element in value.items()}
            case ObjectOf(inner_types):
                return {name: self.turned(inner, value[name]) for name, inner in inner_types.items()}
        return value


class Random(Resource):
    def __init__(self, dice: Dice, schema: Schema) -> None:
        self.dice = dice
        self.of = schema

    def schema(self) -> Schema:
        return self.of

    def create(self, op: Create) -> State:
        return State(self.dice.filled(self.of, op.plan.value))

    def read(self, op: Read) -> State | None:
        return State(self.dice.filled(self.of, op.state.value))

    def update(self, op: Update) -> State:
        return State(self.dice.filled(self.of, op.plan.value))

    def delete(self, op: Delete) -> None:
        return None


class RandomProvider(Provider):
    def __init__(self, dice: Dice, schema: Schema) -> None:
        super().__init__("random", "1")
        self.dice = dice
        self.of = schema

    def resources(self) -> Mapping[str, Callable[[], Resource]]:
        return {"random_it": lambda: Random(self.dice, self.of)}
