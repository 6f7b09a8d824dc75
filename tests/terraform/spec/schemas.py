"""Random schemas of all that a document can say."""

from __future__ import annotations

from hypothesis import strategies as st

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.defaults import NONE
from trimtab.terraform.framework.modifiers import KeepState, RequiresReplace
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    ListOf,
    MapOf,
    ObjectOf,
    SetOf,
    Type,
)
from trimtab.terraform.framework.validators import Between, Length, Matches, OneOf, Validator
from trimtab.terraform.spec.rules import WHOLE

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
ELEMENTS = st.recursive(
    st.sampled_from([STRING, BOOL, NUMBER]),
    lambda inner: st.one_of(
        inner.map(ListOf),
        inner.map(SetOf),
        inner.map(MapOf),
        st.dictionaries(NAMES, inner, min_size=1, max_size=2).map(ObjectOf),
    ),
    max_leaves=4,
)
PLAIN: st.SearchStrategy[Type] = st.one_of(st.just(DYNAMIC), ELEMENTS)


def _validators(type_: Type | Nested) -> st.SearchStrategy[tuple[Validator, ...]]:
    sizes = st.tuples(st.integers(1, 5), st.integers(5, 9)).map(lambda pair: Length(*pair))
    if type_ == STRING:
        rules: list[st.SearchStrategy[Validator]] = [
            sizes,
            st.lists(TEXT, min_size=1, max_size=3).map(lambda values: OneOf(*values)),
            TEXT.map(lambda text: Matches(r"[a-z]+\.\d{2}", text)),
        ]
    elif type_ == NUMBER:
        bounds = st.tuples(st.integers(-9, 0), st.integers(1, 9)).map(lambda pair: Between(*pair))
        return st.lists(bounds, max_size=2).map(lambda found: (WHOLE, *found))
    elif isinstance(type_, ListOf | SetOf | MapOf):
        rules = [sizes]
    else:
        return st.just(())
    return st.lists(st.one_of(rules), max_size=2).map(tuple)


@st.composite
def attributes(draw: st.DrawFn, depth: int = 2, *, place: str = "resource") -> Attribute:
    nested = depth > 0 and draw(st.booleans())
    type_: Type | Nested
    if nested:
        type_ = Nested(draw(bodies(depth - 1, place=place)), draw(st.sampled_from(["single", "list", "set", "map"])))
    else:
        type_ = draw(PLAIN)
    who = draw(
        st.sampled_from(
            ["required", "optional", "computed", "both"] if place != "provider" else ["required", "optional"]
        )
    )
    default = NONE
    if place == "resource" and who == "both":
        values = {STRING: TEXT, BOOL: st.booleans(), NUMBER: st.integers(-9, 9)}
        default = draw(values[type_]) if type_ in (STRING, BOOL, NUMBER) and draw(st.booleans()) else NONE
    modifiers = st.lists(st.sampled_from([RequiresReplace(), KeepState()]), max_size=2, unique=True).map(tuple)
    return Attribute(
        type_,
        required=who == "required",
        optional=who in ("optional", "both"),
        computed=who in ("computed", "both"),
        sensitive=draw(st.booleans()),
        description=draw(TEXT),
        deprecated=draw(TEXT),
        default=default,
        modifiers=draw(modifiers) if place == "resource" else (),
        validators=draw(_validators(type_)),
    )


def bodies(depth: int, *, place: str) -> st.SearchStrategy[dict[str, Attribute]]:
    return st.dictionaries(NAMES, attributes(depth, place=place), max_size=4)


@st.composite
def blocks(draw: st.DrawFn, depth: int, *, place: str) -> Block:
    inner = draw(st.dictionaries(NAMES, blocks(depth - 1, place=place), max_size=2)) if depth > 0 else {}
    given = draw(bodies(0, place=place))
    return Block(
        {name: each for name, each in given.items() if name not in inner},
        inner,
        nesting=draw(st.sampled_from(["single", "list", "set"])),
        description=draw(TEXT),
        deprecated=draw(TEXT),
    )


@st.composite
def schemas(draw: st.DrawFn, place: str = "resource") -> Schema:
    inner = draw(st.dictionaries(NAMES, blocks(1, place=place), max_size=2))
    given = draw(bodies(2, place=place))
    return Schema(
        {name: each for name, each in given.items() if name not in inner},
        inner,
        description=draw(TEXT),
        deprecated=draw(TEXT),
    )
