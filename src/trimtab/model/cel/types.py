"""The types of CEL, and what is assignable to what.

Types made from a schema (`trimtab.model.cel.binding`) are subclasses that know their fields, bounds and how to bind a
value. Type variables are named `_var<n>`; a `Substitution` binds them and can take back what a failed attempt bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DYN_KIND, ERROR_KIND, NULL_KIND, SCALAR, LIST, MAP, STRUCT, OPAQUE, TYPE_KIND, PARAM = range(10)
UNBOUNDED = (1 << 64) - 1
RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip


class Type:
    """A type. Two types are the same when their formatted names are."""

    __slots__ = ("kind", "name", "params", "text")
    text: str
    walked = True  # whether a chain of fields may walk the raw object behind a value

    def __init__(self, kind: int, name: str, params: tuple[Type, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.text = f"{name}({', '.join(p.text for p in params)})" if params else name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.kind == other.kind and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text

    @property
    def fields(self) -> Mapping[str, Field]:
        """The fields of an object type, by their escaped names."""
        return {}

    def field(self, name: str) -> Field | None:
        """A field by the name an expression gives it; a reserved word may be written without its underscores."""
        fields = self.fields
        found = fields.get(name)
        return found if found is not None or name not in RESERVED else fields.get(f"__{name}__")

    @property
    def max_size(self) -> int:
        """The most characters, items or entries that a value can have."""
        return 0

    def bind(self, value: Any) -> Any:
        """A JSON value as CEL sees it."""
        return value


class Field:
    """A field of an object type: its key in the JSON object and its type."""

    __slots__ = ("key", "type")

    def __init__(self, key: str, kind: Type) -> None:
        self.key = key
        self.type = kind


class ObjectType(Type):
    """An object type with fields given one by one, such as the request of an admission."""

    __slots__ = ("_fields",)

    def __init__(self, name: str, fields: Mapping[str, Type]) -> None:
        super().__init__(STRUCT, name)
        self._fields = {key: Field(key, kind) for key, kind in fields.items()}

    @property
    def fields(self) -> Mapping[str, Field]:
        return self._fields

    def bind(self, value: Any) -> Any:
        from trimtab.model.cel.binding import ObjectView

        return None if value is None else ObjectView(value, self)


DYN = Type(DYN_KIND, "dyn")
ERROR = Type(ERROR_KIND, "!error!")
NULL = Type(NULL_KIND, "null")
BOOL = Type(SCALAR, "bool")
INT = Type(SCALAR, "int")
UINT = Type(SCALAR, "uint")
DOUBLE = Type(SCALAR, "double")
STRING = Type(SCALAR, "string")
BYTES = Type(SCALAR, "bytes")
TIMESTAMP = Type(SCALAR, "timestamp")
DURATION = Type(SCALAR, "duration")
QUANTITY = Type(STRUCT, "kubernetes.Quantity")
URL = Type(STRUCT, "kubernetes.URL")
NAMED_FORMAT = Type(STRUCT, "kubernetes.NamedFormat")
AUTHORIZER = Type(STRUCT, "kubernetes.authorization.Authorizer")
PATH_CHECK = Type(STRUCT, "kubernetes.authorization.PathCheck")
GROUP_CHECK = Type(STRUCT, "kubernetes.authorization.GroupCheck")
RESOURCE_CHECK = Type(STRUCT, "kubernetes.authorization.ResourceCheck")
DECISION = Type(STRUCT, "kubernetes.authorization.Decision")
IP = Type(OPAQUE, "net.IP")
CIDR = Type(OPAQUE, "net.CIDR")

FIXED_SIZE = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_NULLABLE_SCALARS = frozenset({"timestamp", "duration"})


def list_of(item: Type) -> Type:
    return Type(LIST, "list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type(MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type(TYPE_KIND, "type", (value,))


def param(name: str) -> Type:
    return Type(PARAM, name)


def is_optional(kind: Type) -> bool:
    return kind.kind == OPAQUE and kind.name == "optional_type"


def unwrap_optional(kind: Type) -> tuple[Type, bool]:
    return (kind.params[0], True) if is_optional(kind) else (kind, False)


def signature(args: Sequence[Type], member: bool) -> str:
    """The arguments of a call as error messages show them: `string.(int)`."""
    listed = ", ".join(arg.text for arg in (args[1:] if member else args))
    return f"{args[0].text}.({listed})" if member else f"({listed})"


class Substitution:
    """What type variables stand for."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._trail: list[tuple[str, Type | None]] = []
        self._fresh = 0

    def fresh(self) -> Type:
        self._fresh += 1
        return Type(PARAM, f"_var{self._fresh - 1}")

    def instantiate(self, kinds: Sequence[Type], names: Sequence[str]) -> list[Type]:
        """The signature of a generic overload with variables of its own."""
        if not names:
            return list(kinds)
        fresh = {name: self.fresh() for name in names}
        return [_replace(kind, fresh) for kind in kinds]

    def assignable(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        """Whether each of `left` fits the one of `right`; binds variables only when all do."""
        mark = len(self._trail)
        if len(left) == len(right) and all(self._fits(a, b) for a, b in zip(left, right, strict=True)):
            return True
        while len(self._trail) > mark:
            name, before = self._trail.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def resolve(self, kind: Type, free: Type | None = None) -> Type:
        """`kind` with every bound variable replaced; unbound ones become `free` when it is given."""
        if kind.kind == PARAM:
            bound = self._bound.get(kind.name)
            if bound is not None:
                return self.resolve(bound, free)
            return kind if free is None else free
        if not kind.params:
            return kind
        params = tuple(self.resolve(p, free) for p in kind.params)
        if all(a is b for a, b in zip(params, kind.params, strict=True)):
            return kind
        return Type(kind.kind, kind.name, params)

    def _bind(self, name: str, kind: Type) -> None:
        self._trail.append((name, self._bound.get(name)))
        self._bound[name] = kind

    def _fits(self, a: Type, b: Type) -> bool:
        if b.kind == PARAM:
            valid, known = self._substitutes(a, b)
            if valid:
                return True
            if known:
                return False
        if a.kind == PARAM:
            return self._substitutes(b, a)[0]
        if a.kind <= ERROR_KIND or b.kind <= ERROR_KIND:
            return True
        if a.kind == NULL_KIND or b.kind == NULL_KIND:
            other = b if a.kind == NULL_KIND else a
            return other.kind in (NULL_KIND, OPAQUE, STRUCT) or other.name in _NULLABLE_SCALARS
        if a.kind != b.kind:
            return False
        if a.kind == TYPE_KIND:
            return True
        if a.name != b.name or len(a.params) != len(b.params):
            return False
        return all(self._fits(p, q) for p, q in zip(a.params, b.params, strict=True))

    def _substitutes(self, kind: Type, variable: Type) -> tuple[bool, bool]:
        if kind.kind == PARAM and kind.name == variable.name:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is not None:
            if kind == bound:
                return True, True
            if not self._fits(kind, bound):
                return False, True
            general = most_general(kind, bound)
            if not self._occurs(variable, general):
                self._bind(variable.name, general)
            return True, True
        if self._occurs(variable, kind):
            return False, False
        self._bind(variable.name, kind)
        return True, False

    def _occurs(self, variable: Type, within: Type) -> bool:
        if within.kind == PARAM:
            if within.name == variable.name:
                return True
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(variable, bound)
        return any(self._occurs(variable, p) for p in within.params)


def most_general(a: Type, b: Type) -> Type:
    return a if _less_specific(a, b) else b


def _less_specific(a: Type, b: Type) -> bool:
    if a.kind in (DYN_KIND, PARAM):
        return True
    if b.kind in (DYN_KIND, PARAM) or a.kind != b.kind:
        return False
    if a.kind == TYPE_KIND:
        return True
    if a.name != b.name or len(a.params) != len(b.params):
        return False
    return all(_less_specific(p, q) for p, q in zip(a.params, b.params, strict=True))


def _replace(kind: Type, names: dict[str, Type]) -> Type:
    if kind.kind == PARAM:
        return names.get(kind.name, kind)
    if not kind.params:
        return kind
    return Type(kind.kind, kind.name, tuple(_replace(p, names) for p in kind.params))
