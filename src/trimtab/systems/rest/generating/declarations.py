"""What classes a kind's spec needs, before anybody knows what they will be called.

Each has a key: `@` is the spec itself, `@/sku` an object in it without a name, `Animal` a type of the document and
`Animal/owner` an object in that. Annotations name a class as `‹key›`.
"""

from __future__ import annotations

import msgspec

from trimtab.systems.rest.generating.naming import Names, camel, literal, snake
from trimtab.systems.rest.generating.schema import asked, closed
from trimtab.systems.rest.model import CONTROL, FieldClass, Model, Node

DEPTH = 64


class Field(msgspec.Struct, frozen=True):
    name: str
    wire: str
    annotation: str
    description: str

    @property
    def renamed(self) -> bool:
        """Whether the struct's own rule would make another name of it."""
        return self.name.endswith("_") or any(c.isdigit() for c in self.name) or camel(self.name) != self.wire


class Declared(msgspec.Struct, frozen=True):
    """One class. `uses` are the keys in its annotations."""

    description: str
    fields: tuple[Field, ...]
    uses: tuple[str, ...]


def owner(key: str) -> str:
    """The type, or the spec, that a key is of."""
    return key.partition("/")[0]


def declared(model: Model) -> dict[str, Declared]:
    """By key, in the order in which they are met."""
    return _Reader(model).all()


class _Reader:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._found: dict[str, Declared] = {}
        self._pending: list[tuple[str, Node]] = []
        self._known: set[str] = set()

    def all(self) -> dict[str, Declared]:
        self._ask("@", self._model.spec)
        while self._pending:
            key, node = self._pending.pop(0)
            self._found[key] = self._declared(key, node)
        return self._found

    def _ask(self, key: str, node: Node) -> str:
        if key not in self._known:
            self._known.add(key)
            self._pending.append((key, node))
        return f"‹{key}›"

    def _declared(self, key: str, node: Node) -> Declared:
        node = self._model.node(node)
        names, uses = Names(), dict[str, None]()
        fields = list(_control(self._model)) if key == "@" else []
        for each in fields:
            names.given(each.wire, each.name)
        needed = asked(self._model, node, key[2:].replace("/", ".") if key.startswith("@") else key)
        for wire, inner in self._properties(node).items():
            if key == "@" and wire in CONTROL:
                continue
            annotation = self._annotation(inner, f"{key}/{wire.replace('/', '-')}", 0)
            for used in annotation.split("‹")[1:]:
                uses[used.partition("›")[0]] = None
            name = names.given(wire, snake(wire))
            fields.append(Field(name, wire, annotation, self._text(inner, needed=wire in needed)))
        return Declared(node.description, tuple(fields), tuple(uses))

    def _text(self, node: Node, *, needed: bool) -> str:
        text = self._model.node(node).description
        return f"{text} Needed at creation.".strip() if needed else text

    def _properties(self, node: Node) -> dict[str, Node]:
        """Of a union, those of all variants; what they disagree on is anything."""
        found = {name: inner for name, inner in node.properties.items() if inner.field is not FieldClass.READ_ONLY}
        for variant in dict.fromkeys(node.variants.values()) if node.discriminator else ():
            for name, inner in self._model.node(self._model.types[variant]).properties.items():
                if name not in node.properties and inner.field is not FieldClass.READ_ONLY:
                    same = name not in found or _shape(found[name]) == _shape(inner)
                    found[name] = inner if same else Node(type="any", description=inner.description)
        return found

    def _annotation(self, node: Node, key: str, depth: int) -> str:
        text = self._bare(node, key, depth)
        nullable = node.nullable or (bool(node.ref) and self._model.node(node).nullable)
        return f"{text} | None" if nullable and text != "Any" else text

    def _bare(self, node: Node, key: str, depth: int) -> str:
        if node.field is FieldClass.SECRET:
            return "SecretValue"
        if node.reference:
            return "str | Reference"
        if depth > DEPTH:
            return "Any"
        followed = self._model.node(node)
        if followed.type == "object":
            if not followed.properties and not followed.variants:
                return "dict[str, Any]"
            return self._ask(self._named(node) or key, followed if not node.ref else Node(ref=self._named(node)))
        if followed.type == "map":
            return f"dict[str, {self._annotation(followed.items, key, depth + 1) if followed.items else 'Any'}]"
        if followed.type == "array":
            return self._list(followed, key, depth)
        if closed(followed) and all(isinstance(value, str | bool | int) for value in followed.enum):
            return f"Literal[{', '.join(literal(value) for value in dict.fromkeys(followed.enum))}]"
        return _SCALARS.get(followed.type, "Any")

    def _list(self, node: Node, key: str, depth: int) -> str:
        if node.items is None:
            return "tuple[Any, ...]"
        text = f"tuple[{self._annotation(node.items, key, depth + 1)}, ...]"
        items = self._model.node(node.items)
        if node.keys and not items.nullable and all(self._tells(items, name) for name in node.keys):
            return f"Annotated[{text}, Keyed({', '.join(literal(name) for name in node.keys)})]"
        return text

    def _tells(self, items: Node, name: str) -> bool:
        """Whether a field can tell items apart: it is a scalar that is always there."""
        key = self._model.node(items.properties.get(name, Node()))
        plain = key.type in _SCALARS and not (key.reference or key.nullable or key.field is FieldClass.SECRET)
        return plain and name in items.required

    def _named(self, node: Node) -> str:
        """The name of the type at the end of references."""
        name = node.ref
        while name and self._model.types[name].ref:
            name = self._model.types[name].ref
        return name


def _shape(node: Node) -> Node:
    return msgspec.structs.replace(node, description="", why="")


def _control(model: Model) -> tuple[Field, ...]:
    given = ", ".join(p.name for p in model.parameters if p.source == "object")
    return (
        Field("name", "name", "str", "What the service calls it; metadata.name when unset."),
        Field("parent", "parent", "Parent", "The object, or the resource ID, that it is a part of."),
        Field("parameters", "parameters", "dict[str, str]", f"Of its path: {given}." if given else ""),
        Field("resource_id", "resourceID", "str", "Of what exists already, to take it over as it is."),
        Field("policy", "policy", "Policy", "What may be done to the resource."),
    )


_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
