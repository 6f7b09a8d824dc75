"""Who else reads an object of a generated kind: its definition and its struct take whatever admission takes, of any tree."""

from __future__ import annotations

import copy
import sys
from types import ModuleType
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from tests.systems.rest.generating_kit import TEXT, machine
from trimtab.model.document import to_document
from trimtab.model.schema import Schema
from trimtab.server.builtin.crd import spec_problems
from trimtab.systems.rest.generating.crd import crd
from trimtab.systems.rest.generating.structs import structs
from trimtab.systems.rest.model import Comparator, FieldClass, Identity, Model, Node, Overlay
from trimtab.systems.rest.validating.finding import Found
from trimtab.systems.rest.validating.shape import Walk

NAMES = ("a", "b", "c")
COUNT = st.none() | st.integers(0, 3)
LEAVES = (
    st.builds(
        Node,
        type=st.just("string"),
        max_length=COUNT,
        pattern=st.sampled_from(["", "^a", "^(?!b)"]),
        enum=st.sampled_from([(), ("a", "ab")]),
        open_enum=st.booleans(),
        compare=st.sampled_from([Comparator.EXACT, Comparator.CASELESS]),
        nullable=st.booleans(),
        field=st.sampled_from([FieldClass.WRITABLE, FieldClass.SECRET, FieldClass.CREATE_ONLY, FieldClass.READ_ONLY]),
        reference=st.sampled_from(["", "*"]),
    )
    | st.builds(
        Node,
        type=st.sampled_from(["integer", "number"]),
        minimum=st.none() | st.integers(-3, 0),
        maximum=st.none() | st.integers(0, 3),
        nullable=st.booleans(),
    )
    | st.builds(Node, type=st.sampled_from(["boolean", "any"]))
    | st.just(Node(ref="Tree"))
    | st.just(Node(ref="Animal"))
)


def _holding(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    objects = st.builds(
        Node,
        type=st.just("object"),
        properties=properties,
        required=st.sets(st.sampled_from(NAMES)).map(lambda names: tuple(sorted(names))),
        additional=st.booleans(),
        nullable=st.booleans(),
    )
    return (
        objects
        | st.builds(Node, type=st.just("map"), items=inner)
        | st.builds(Node, type=st.just("array"), items=inner, min_items=COUNT, unordered=st.booleans())
        | st.builds(Node, type=st.just("array"), items=objects, keys=st.sampled_from([(), ("a",), ("a", "b")]))
    )


NODES = st.recursive(LEAVES, _holding, max_leaves=5)
TREE = Node(type="object", properties={"a": TEXT, "b": Node(type="array", items=Node(ref="Tree"))}, required=("a",))


def model_of(properties: dict[str, Node], required: tuple[str, ...]) -> Model:
    spec = Node(type="object", properties=properties, required=required)
    types = {**machine().types, "Tree": TREE}
    return replace(machine(), spec=spec, types=types, identity=Identity(field="c"), overlay=Overlay())


def values(model: Model, node: Node, depth: int = 0) -> st.SearchStrategy[Any]:
    """What often fits."""
    if node.field is FieldClass.SECRET:
        return st.just({"secretRef": {"name": "a", "key": "b"}})
    node = model.node(node)
    made: st.SearchStrategy[Any]
    match node.type:
        case "string":
            made = st.sampled_from(["a", "ab", "A", "c", "abcd"])
            made = made | st.just({"ref": {"kind": "A", "name": "b"}}) if node.reference else made
        case "integer" | "number":
            made = st.integers(-3, 3)
        case "boolean":
            made = st.booleans()
        case "object":
            inner = {n: values(model, each, depth + 1) for n, each in node.properties.items()} if depth < 6 else {}
            made = st.fixed_dictionaries(
                {n: each for n, each in inner.items() if n in node.required},
                optional={n: each for n, each in inner.items() if n not in node.required},
            )
            if node.discriminator:
                made = made.map(lambda given: {**given, "species": "cat", "lives": 9, "habitat": True})
        case "map":
            made = st.dictionaries(st.sampled_from(NAMES), values(model, node.items or Node(), depth + 1), max_size=2)
        case "array":
            made = st.lists(values(model, node.items or Node(), depth + 1), min_size=node.min_items or 0, max_size=3)
        case _:
            made = st.sampled_from([1, "a", None, [], {"a": [None]}])
    return made | st.none() if node.nullable else made


@st.composite
def judged(draw: st.DrawFn) -> tuple[Model, dict[str, Any], bool]:
    """A kind, a spec of it, and whether admission takes the spec."""
    properties = draw(st.dictionaries(st.sampled_from(NAMES), NODES, max_size=3))
    model = model_of(properties, tuple(sorted(draw(st.sets(st.sampled_from(NAMES))))))
    asked = tuple(name for name in model.spec.required if name in properties)
    spec = draw(values(model, replace(model.spec, required=asked)))
    found, lean = Found(), draw(st.booleans())
    Walk(model, found, lenient=lean).body(spec)
    return model, {**spec, "resourceID": "/it"} if lean else spec, not found.errors


FEW = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(judged())
def test_the_definition_takes_what_admission_takes(judged: tuple[Model, dict[str, Any], bool]) -> None:
    model, spec, taken = judged
    definition = crd(model)["spec"]
    assert spec_problems(definition) == [], "and is one"
    walked: dict[str, Any] = {"spec": copy.deepcopy(spec)}
    result = Schema(definition["versions"][0]["schema"]["openAPIV3Schema"]).walk(walked)
    if taken:
        assert result.errors == []
    assert walked["spec"] == spec, "and drops nothing"


@FEW
@given(judged())
def test_the_structs_read_what_admission_takes(judged: tuple[Model, dict[str, Any], bool]) -> None:
    model, spec, taken = judged
    module = sys.modules["generated_kinds"] = ModuleType("generated_kinds")
    exec(compile(structs([model]), "kinds.py", "exec"), module.__dict__)
    if taken:
        made = msgspec.convert(spec, module.MachineSpec)
        assert msgspec.convert(to_document(made), module.MachineSpec) == without_nulls(made)


def without_nulls(value: Any) -> Any:
    """Typed writes do not send them."""
    if isinstance(value, msgspec.Struct):
        given = {name: without_nulls(getattr(value, name)) for name in value.__struct_fields__}
        return replace(value, **{name: UNSET if each is None else each for name, each in given.items()})
    if isinstance(value, tuple):
        return tuple(without_nulls(each) for each in value)
    return {name: without_nulls(each) for name, each in value.items()} if isinstance(value, dict) else value
