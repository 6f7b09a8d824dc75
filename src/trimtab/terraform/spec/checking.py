"""What is wrong with a document: all of it at once, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.terraform.spec import forms

DEEPEST = 64


def problems(document: Any) -> list[str]:
    """In the order of the document; none, and it can be read."""
    if not isinstance(document, dict):
        return ["the document is no JSON object"]
    return list(_document(document))


def _document(document: dict[str, Any]) -> Iterator[str]:
    version = document.get("version")
    if not isinstance(version, str):
        yield "version: it must be there, as text"
    elif version != forms.VERSION:
        yield f"version: {version!r} is not known, only {forms.VERSION!r}"
    provider = document.get("provider")
    if not isinstance(provider, dict):
        yield "provider: it must be there, as an object with a name"
    else:
        yield from _name(provider, "provider")
        yield from _schema(provider.get("schema", {}), "provider.schema", forms.PROVIDER)
    yield from _named(document, "resources", forms.RESOURCE)
    yield from _named(document, "datasources", forms.DATA_SOURCE)


def _named(document: dict[str, Any], member: str, place: str) -> Iterator[str]:
    seen: set[str] = set()
    for at, item in enumerate(_items(document.get(member, []))):
        where = f"{member}[{at}]"
        if not isinstance(item, dict):
            yield f"{where}: it must be an object"
            continue
        yield from _name(item, where, seen)
        schema = item.get("schema")
        if not isinstance(schema, dict) or not schema:
            yield f"{where}.schema: it must be there, with attributes, blocks or a description"
        else:
            yield from _schema(schema, f"{member}[{item.get('name', at)}]", place)
    if not isinstance(document.get(member, []), list):
        yield f"{member}: it must be a list"


def _name(item: dict[str, Any], where: str, seen: set[str] | None = None) -> Iterator[str]:
    name = item.get("name")
    if not isinstance(name, str) or not forms.IDENTIFIER.fullmatch(name):
        yield f"{where}.name: {name!r} is no name: lower case letters, digits and underscores, no digit first"
    elif seen is not None:
        if name in seen:
            yield f"{where}.name: {name!r} is there twice"
        seen.add(name)


def _schema(schema: Any, where: str, place: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{where}: it must be an object"
        return
    yield from _unknown(
        schema, {"attributes", "blocks", "description", "markdown_description", "deprecation_message"}, where
    )
    yield from _body(schema, where, place, 0)


def _body(body: dict[str, Any], where: str, place: str, depth: int) -> Iterator[str]:
    seen: set[str] = set()
    for member, kinds in (("attributes", forms.ATTRIBUTES), ("blocks", forms.BLOCKS)):
        if not isinstance(body.get(member, []), list):
            yield f"{where}.{member}: it must be a list"
        for at, item in enumerate(_items(body.get(member, []))):
            place_of = f"{where}.{member}[{at}]"
            if not isinstance(item, dict):
                yield f"{place_of}: it must be an object"
                continue
            yield from _name(item, place_of, seen)
            here = f"{where}.{item['name']}" if isinstance(item.get("name"), str) else place_of
            kind = [each for each in item if each != "name"]
            if len(kind) != 1 or kind[0] not in kinds:
                yield f"{here}: one type is needed, of {', '.join(kinds)}; there is {', '.join(kind) or 'none'}"
            elif not isinstance(item[kind[0]], dict):
                yield f"{here}.{kind[0]}: it must be an object"
            elif depth > DEEPEST:
                yield f"{here}: it is nested too deeply"
            else:
                yield from _typed(kind[0], item[kind[0]], here, place, member == "blocks", depth)


def _typed(kind: str, said: dict[str, Any], where: str, place: str, block: bool, depth: int) -> Iterator[str]:
    yield from _unknown(said, forms.members(kind, place, block=block), where)
    if not block:
        member, allowed = forms.choices(place)
        if said.get(member) not in allowed:
            yield f"{where}.{member}: it must be one of {', '.join(sorted(allowed))}, not {said.get(member)!r}"
    for member, wanted in (("description", str), ("deprecation_message", str), ("sensitive", bool)):
        if member in said and not isinstance(said[member], wanted):
            yield f"{where}.{member}: it must be {'text' if wanted is str else 'true or false'}"
    yield from _default(kind, said, where)
    for member in ("validators", "plan_modifiers"):
        for at, rule in enumerate(_items(said.get(member, []))):
            if not _is_code(rule):
                yield f"{where}.{member}[{at}]: it must be custom code with a schema_definition"
    if kind in forms.COLLECTIONS:
        yield from _element(said.get("element_type"), f"{where}.element_type", forms.ELEMENTS, depth + 1)
    elif kind == "object":
        yield from _members(said.get("attribute_types"), f"{where}.attribute_types", depth + 1)
    elif kind == "single_nested":
        yield from _body(said, where, place, depth + 1)
    elif kind in forms.NESTED:
        inner = said.get("nested_object")
        if not isinstance(inner, dict):
            yield f"{where}.nested_object: it must be there, as an object with attributes"
        else:
            known = {"associated_external_type", "attributes", "custom_type", "plan_modifiers", "validators"}
            yield from _unknown(inner, known | ({"blocks"} if block else set()), f"{where}.nested_object")
            yield from _body(inner, where, place, depth + 1)


def _default(kind: str, said: dict[str, Any], where: str) -> Iterator[str]:
    default = said.get("default")
    if default is None:
        return
    if not isinstance(default, dict) or ("static" in default) == ("custom" in default):
        yield f"{where}.default: it must be either static or custom"
    elif "custom" in default and not _is_code(default):
        yield f"{where}.default.custom: it must have a schema_definition"
    elif "static" in default:
        wanted = forms.STATIC.get(kind)
        value = default["static"]
        if wanted is None:
            yield f"{where}.default: of a {kind} it must be custom"
        elif not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
            yield f"{where}.default.static: {value!r} is no {kind}"


def _element(element: Any, where: str, kinds: tuple[str, ...], depth: int) -> Iterator[str]:
    said = [each for each in element if each != "name"] if isinstance(element, dict) else []
    if len(said) != 1 or said[0] not in kinds or not isinstance(element[said[0]], dict):
        yield f"{where}: one type is needed, of {', '.join(kinds)}"
        return
    kind, inner = said[0], element[said[0]]
    if depth > DEEPEST:
        yield f"{where}: it is nested too deeply"
    elif kind in forms.COLLECTIONS:
        yield from _unknown(inner, {"custom_type", "element_type"}, where)
        yield from _element(inner.get("element_type"), f"{where}.{kind}", forms.ELEMENTS, depth + 1)
    elif kind == "object":
        yield from _members(inner.get("attribute_types"), f"{where}.object", depth + 1)
    else:
        yield from _unknown(inner, {"custom_type"}, where)


def _members(members: Any, where: str, depth: int) -> Iterator[str]:
    if not isinstance(members, list) or not members:
        yield f"{where}: it must be a list with at least one member"
        return
    seen: set[str] = set()
    for at, member in enumerate(members):
        if not isinstance(member, dict):
            yield f"{where}[{at}]: it must be an object"
            continue
        yield from _name(member, f"{where}[{at}]", seen)
        yield from _element(member, f"{where}[{member.get('name', at)}]", (*forms.ELEMENTS, "dynamic"), depth)


def _is_code(rule: Any) -> bool:
    custom = rule.get("custom") if isinstance(rule, dict) else None
    return isinstance(custom, dict) and isinstance(custom.get("schema_definition"), str)


def _unknown(said: dict[str, Any], known: set[str] | frozenset[str], where: str) -> Iterator[str]:
    for member in said:
        if member not in known:
            yield f"{where}: {member!r} has no meaning here; there may be {', '.join(sorted(known))}"


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
