"""Schemas of built-in kinds: objects as the real server decodes them into Go structs.

null is an absent field, unknown fields go, and a value of the wrong type is an error that names the Go type. Bounds,
required fields and defaults in these schemas are remarks: each kind's own strategy knows the real ones.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Mapping
from typing import Any

from trimtab.model.clock import parse_time
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.quantity import MAX_EXPONENT, MAX_LENGTH
from trimtab.model.schema.embedded import EMBEDDED_FIELDS
from trimtab.model.schema.finding import Check, Finding, Found, MapKey, Stage, Step, above, added, pruned
from trimtab.model.schema.formats import check_of
from trimtab.model.schema.gotext import quoted
from trimtab.model.schema.kinds import JSON_TYPES, NoneType

Document = Mapping[str, Any]
Table = dict[type, Check | None]


class Undecodable(FieldError, frozen=True):  # noqa: N818  not an exception
    """A value that does not fit the Go type in `detail`. `message` is what Go's decoder says."""

    message: str = ""


class Misfit(Finding):
    """A finding that learns on its way up which Go struct has the field."""

    __slots__ = ("struct",)

    def __init__(self, value: Any, go_type: str, message: str = "") -> None:
        super().__init__(Stage.SCHEMA, lambda path: self._error(path, value, go_type, message))
        self.struct = ""

    def _error(self, path: str, value: Any, go_type: str, message: str) -> Undecodable:
        return Undecodable(path, FieldProblem.TYPE_INVALID, value, go_type, message or self._refusal(value, go_type))

    def _refusal(self, value: Any, go_type: str) -> str:
        fields = [step for step in reversed(self.steps) if isinstance(step, str) and not isinstance(step, MapKey)]
        number = not isinstance(value, bool) and isinstance(value, int | float)
        given = f"number {value}" if number and go_type.startswith(("int", "uint")) else json_kind(value)
        where = f"Go struct field {self.struct}.{'.'.join(fields)}" if self.struct else "Go value"
        return f"json: cannot unmarshal {given} into {where} of type {go_type}"


def json_kind(value: Any) -> str:
    """A JSON type in the words of Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    words = {str: "string", int: "number", float: "number", list: "array", dict: "object", NoneType: "null"}
    return words[type(value)]


def compile_native(document: Document, definitions: Document) -> Check:
    """The check of a whole object, but for its apiVersion, kind and metadata."""
    check = _Compiler.of(definitions).root(document)
    return check if check is not None else lambda value: None


def compile_struct(name: str, definitions: Document) -> Check:
    """The check of one struct, all of its fields included."""
    check = _Compiler.of(definitions).table({"$ref": f"#/definitions/{name}"})[dict]
    return check if check is not None else lambda value: None


def go_type(document: Document) -> str:
    """The Go type of a field: int32, []string, map[string]string, v1.PodSpec."""
    reference = reference_of(document)
    if reference:
        return ".".join(reference.rsplit(".", 2)[-2:])
    declared, form = document.get("type"), document.get("format") or ""
    if declared == "array":
        return f"[]{go_type(document.get('items') or {})}"
    if declared == "object":
        others = document.get("additionalProperties")
        return f"map[string]{go_type(others) if isinstance(others, Mapping) else 'interface {}'}"
    if declared == "string" and form == "byte":
        return "[]uint8"
    words = {"string": "string", "boolean": "bool", "integer": form or "int", "number": "float64"}
    return words.get(declared or "", "interface {}")


def reference_of(document: Document) -> str:
    """The name of the definition that a schema refers to. OpenAPI v3 wraps references in an allOf of one."""
    parts = document.get("allOf")
    if isinstance(parts, list) and len(parts) == 1:
        document = parts[0]
    return str(document.get("$ref") or "").rpartition("/")[2]


class _Compiler:
    """Compiles each definition once; a table exists before it is filled, so that types may contain themselves."""

    def __init__(self, definitions: Document) -> None:
        self.definitions = definitions
        self.tables: dict[str, Table] = {}
        self.scalars: dict[tuple[str, str], Table] = {}

    @classmethod
    def of(cls, definitions: Document) -> _Compiler:
        """Kinds with the same definitions share the compiled ones."""
        found = _compilers.get(id(definitions))
        if found is None:
            found = _compilers[id(definitions)] = cls(definitions)
        return found

    def root(self, document: Document) -> Check | None:
        name = reference_of(document)
        kinds = document.get("x-kubernetes-group-version-kind") or [{}]
        struct = name.rpartition(".")[2] or kinds[0].get("kind", "")
        document = self.definitions[name] if name else document
        skipped: Table = dict.fromkeys(JSON_TYPES)
        fields = {key: self.table(part) for key, part in document["properties"].items() if key not in EMBEDDED_FIELDS}
        return _struct({**fields, **dict.fromkeys(EMBEDDED_FIELDS, skipped)}, struct)

    def table(self, document: Document) -> Table:
        name = reference_of(document)
        if not name:
            key = (document.get("type") or "", document.get("format") or "")
            if key in self.scalars:
                return self.scalars[key]
            table: Table = {}
            self.fill(table, document, go_type(document))
            if key[0] in ("string", "boolean", "integer", "number"):
                self.scalars[key] = table
            return table
        if name not in self.tables:
            self.tables[name] = {}
            self.fill(self.tables[name], self.definitions[name], go_type(document))
        return self.tables[name]

    def fill(self, table: Table, document: Document, go: str) -> None:
        table.update({kind: _misfit(go) for kind in JSON_TYPES})
        table[NoneType] = None
        declared, form = document.get("type"), document.get("format") or ""
        if go == "resource.Quantity":
            table.update(dict.fromkeys((str, bool, list, dict), _quantity))
            table.update({int: None, float: None})
        elif document.get("x-kubernetes-int-or-string") or form == "int-or-string":
            table.update(dict.fromkeys((float, bool, list, dict), _misfit("int32")))
            table.update({str: None, int: _int_range("int32")})
        elif declared == "string":
            if form == "date-time":
                table.update({kind: _misfit("string") for kind in JSON_TYPES if kind is not NoneType})
            table[str] = _bytes if form == "byte" else _time if form == "date-time" else None
        elif declared == "boolean":
            table[bool] = None
        elif declared == "integer":
            table[int] = _int_range(go)
        elif declared == "number":
            table.update({int: None, float: None})
        elif declared == "array":
            table[list] = _list(self.table(document.get("items") or {}), zero(self, document.get("items") or {}))
        elif declared == "object":
            table[dict] = self.mapping(document, go)
        else:
            table.update(dict.fromkeys(JSON_TYPES))

    def mapping(self, document: Document, go: str) -> Check | None:
        properties = document.get("properties")
        others = document.get("additionalProperties")
        if properties:
            return _struct({name: self.table(part) for name, part in properties.items()}, go.rpartition(".")[2])
        return _map(self.table(others), zero(self, others)) if isinstance(others, Mapping) else None


_compilers: dict[int, _Compiler] = {}  # each keeps its definitions, so that their id stays theirs


def zero(compiler: _Compiler, document: Document) -> Any:
    """What Go makes of a null inside a list or a map: the zero value."""
    name = reference_of(document)
    declared = (compiler.definitions[name] if name else document).get("type")
    return {"string": "", "boolean": False, "integer": 0, "number": 0, "object": {}}.get(declared or "")


def _struct(tables: dict[str, Table], struct: str) -> Check:
    get = tables.get

    def check(value: dict[str, Any]) -> Found:
        found: Found = None
        drop: list[str] | None = None
        for name, item in value.items():
            table = get(name)
            if table is None or item is None:
                drop = added(drop, name)
                if table is None:
                    found = added(found, pruned(name))
                continue
            step = table[type(item)]
            if step is None:
                continue
            more = step(item)
            if more is not None:
                for finding in more:
                    if isinstance(finding, Misfit) and not finding.struct:
                        finding.struct = struct
                found = above(more, name, found)
        if drop is not None:
            for name in drop:
                del value[name]
        return found

    return check


def _map(table: Table, empty: Any) -> Check:
    def check(value: dict[str, Any]) -> Found:
        found: Found = None
        for name, item in value.items():
            step = table[type(item)]
            if item is None:
                value[name] = {} if empty == {} else empty
            elif step is not None:
                found = _climb(step(item), MapKey(name), found)
        return found

    return check


def _list(table: Table, empty: Any) -> Check:
    def check(value: list[Any]) -> Found:
        found: Found = None
        for index, item in enumerate(value):
            step = table[type(item)]
            if item is None:
                value[index] = {} if empty == {} else empty
            elif step is not None:
                found = _climb(step(item), index, found)
        return found

    return check


def _climb(more: Found, step: Step, found: Found) -> Found:
    return found if more is None else above(more, step, found)


def _misfit(go: str) -> Check:
    return lambda value: [Misfit(value, go)]


def _int_range(go: str) -> Check:
    bits = 32 if go == "int32" else 64
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def check(value: int) -> Found:
        return None if least <= value <= most else [Misfit(value, go)]

    return check


_QUANTITY = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[numkMGTPE]|[KMGTPE]i|[eE]([+-]?\d{1,4}))?", re.ASCII)


def _quantity(value: Any) -> Found:
    """What `Quantity` reads, its bounds included: a larger exponent would be a number of a thousand digits."""
    if isinstance(value, str) and len(value) <= MAX_LENGTH and (match := _QUANTITY.fullmatch(value)):
        if match[1] is None or abs(int(match[1])) <= MAX_EXPONENT:
            return None
        return [Misfit(value, "resource.Quantity", "unable to parse quantity's suffix")]
    form = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    return [Misfit(value, "resource.Quantity", f"quantities must match the regular expression {form}")]


def _time(value: str) -> Found:
    """One that can be reckoned with: neither before the year 1 nor after 9999, in UTC."""
    valid = check_of("date-time")
    if valid is not None and valid(value):
        with contextlib.suppress(ValueError):
            parse_time(value)
            return None
    layout = "2006-01-02T15:04:05Z07:00"
    return [
        Misfit(value, "v1.Time", f'parsing time {quoted(value)} as "{layout}": cannot parse {quoted(value)} as "2006"')
    ]


def _bytes(value: str) -> Found:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        bad = re.search(r"[^A-Za-z0-9+/]", value)
        where = bad.start() if bad else len(value)
        return [Misfit(value, "[]uint8", f"illegal base64 data at input byte {where}")]
    return None
