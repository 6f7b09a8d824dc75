"""Strategic merge patch: a merge patch that knows which lists of a built-in kind merge, and by which key.

The OpenAPI document says so by `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`; the patch may steer by
directives ($patch, $retainKeys, $setElementOrder/<list>, $deleteFromPrimitiveList/<list>). Custom resources have no
such marks and the API refuses this patch for them. The given documents are never changed, and the result shares nothing
with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from trimtab.model.errors import bad_request
from trimtab.server.patch import element_order
from trimtab.server.patch.detached import detached
from trimtab.server.patch.failures import bounded, printed, rejected, unclassified
from trimtab.server.patch.patch_meta import PatchMeta

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE = "$deleteFromPrimitiveList"


def apply(
    document: dict[str, Any],
    patch: Any,
    schema: Mapping[str, Any],
    definitions: Mapping[str, Any] | None = None,
    *,
    name: str = "",
) -> dict[str, Any]:
    """The document with the patch merged into it. `name` is the kind's, for messages. Raises 400, 422 or 500."""
    if patch is None:
        patch = {}
    if not isinstance(patch, dict):
        names = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
        text = f"cannot unmarshal {names[type(patch)]} into Go value of type map[string]interface {{}}"
        raise bad_request(f"json: {text}")
    with bounded():
        merged = _merge_maps(document, patch, PatchMeta.of(schema, definitions or {}, name))
        return cast(dict[str, Any], detached(merged))


def _merge_maps(document: dict[str, Any], patch: dict[str, Any], meta: PatchMeta) -> dict[str, Any]:
    if _DIRECTIVE in patch:
        return _directed(patch)
    document = _retained(document, patch)
    rest = {key: value for key, value in patch.items() if key != _RETAIN}
    for key in [key for key in rest if key.startswith(_ORDER)]:
        _merge_ordered(document, rest, key, meta)
    for key, value in rest.items():
        deleting = key.startswith(_DELETE)
        _merge_field(document, _list_named(key, _DELETE) if deleting else key, value, meta, deleting)
    return document


def _merge_field(document: dict[str, Any], key: str, value: Any, meta: PatchMeta, deleting: bool) -> None:
    if value is None:
        document.pop(key, None)
        return
    before: Any = document.get(key)
    if key not in document or type(before) is not type(value):
        if not deleting:
            _put(document, key, _without_nulls(value))
    elif isinstance(value, dict):
        field = meta.field(key)
        document[key] = value if field.strategy == "replace" else _merge_maps(before, value, field.meta)
    elif isinstance(value, list):
        field = meta.field(key)
        if field.strategy == "merge" or deleting:
            document[key] = _merge_lists(before, value, field.items(), field.merge_key, deleting)
        else:
            document[key] = value
    else:
        document[key] = value


def _merge_lists(before: list[Any], patch: list[Any], meta: PatchMeta, merge_key: str, deleting: bool) -> list[Any]:
    if not before and not patch:
        return before
    if _element_type(before, patch) is not dict:
        if deleting:
            doomed = {_hashed(item) for item in patch}
            return [item for item in before if _hashed(item) not in doomed]
        merged = list({_hashed(item): item for item in [*before, *patch]}.values())
        return element_order.arranged(merged, patch, before, _hashed)
    if not merge_key:
        raise unclassified(f"cannot merge lists without merge key for {meta.go_kind}")
    before, patch = _special_elements(before, patch, merge_key)
    merged = list(before)
    places = {_hashed(item[merge_key]): place for place, item in reversed([*enumerate(before)]) if merge_key in item}
    for item in patch:
        found = places.get(_hashed(_keyed(item, merge_key)))
        if found is None:
            places[_hashed(item[merge_key])] = len(merged)
            merged.append(item)
        else:
            merged[found] = _merge_maps(merged[found], item, meta)
    return element_order.arranged(merged, patch, before, lambda item: _hashed(_keyed(item, merge_key)))


def _special_elements(before: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Obey the elements that are directives: what remains of the list, and of the patch."""
    plain = [item for item in patch if _DIRECTIVE not in item]
    doomed = set()
    replaced = False
    for item in patch:
        if _DIRECTIVE not in item:
            continue
        match item[_DIRECTIVE]:
            case "delete":
                doomed.add(_hashed(_keyed(item, merge_key)))
            case "replace":
                replaced = True
            case "merge":
                raise unclassified("merging lists cannot yet be specified in the patch")
            case other:
                raise unclassified(f"unknown patch type: {printed(other)} in map: {printed(item)}")
    if replaced:
        return plain, []
    if doomed:
        before = [item for item in before if merge_key not in item or _hashed(item[merge_key]) not in doomed]
    return before, plain


def _merge_ordered(document: dict[str, Any], patch: dict[str, Any], key: str, meta: PatchMeta) -> None:
    """A list whose order the patch sets. Takes the list and the directive out of the patch."""
    order = patch.pop(key)
    if not isinstance(order, list):
        raise unclassified(f"expected a []interface {{}}, but received a {_go_type(order)}")
    name = _list_named(key, _ORDER)
    before, change = document.get(name, []), patch.get(name, [])
    for value in (before, change):
        if not isinstance(value, list):
            raise unclassified(f"expected a []interface {{}}, but received a {_go_type(value)}")
    field = meta.field(name)
    identity = _identity(field.merge_key)
    wanted = [item for item in change if not (isinstance(item, dict) and _DIRECTIVE in item)]
    if order and change and not element_order.follows(wanted, order, identity):
        text = f"The order in patch list:\n{printed(change)}\n doesn't match {_ORDER} list:\n{printed(order)}\n"
        raise unclassified(text)
    if name in document and name in patch:
        if field.strategy == "merge":
            merged = _merge_lists(before, change, field.items(), field.merge_key, False)
        else:
            merged = change
    elif name in patch:
        merged = _without_directives(change)[0]
    elif name in document:
        merged = before
    else:
        return
    if not before and not change:
        raise unclassified("no elements in any of the given slices")
    _element_type(before, change)
    document[name] = element_order.arranged(merged, order, before, identity)
    patch.pop(name, None)


def _directed(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise unclassified(f"unknown patch type: {printed(directive)} in map: {printed(patch)}")


def _retained(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A copy of the document, with only the fields that $retainKeys names, if the patch has it."""
    if _RETAIN not in patch:
        return dict(document)
    kept = patch[_RETAIN]
    meant = [k for k, v in patch.items() if k != _RETAIN and v is not None and not k.startswith((_DELETE, _ORDER))]
    if not isinstance(kept, list) or any(key not in kept for key in meant):
        raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in document.items() if key in kept}


def _list_named(key: str, directive: str) -> str:
    prefix, _, name = key.partition("/")
    if prefix != directive or not key.startswith(directive + "/"):
        what = "primitive list" if directive == _DELETE else "setElementOrder list"
        raise bad_request(f"invalid patch format of {what}")
    return name


def _put(document: dict[str, Any], key: str, value: Any) -> None:
    value, kept = _without_directives(value)
    if kept:
        document[key] = value
    else:
        document.pop(key, None)


def _without_directives(value: Any) -> tuple[Any, bool]:
    """The value without objects that are directives, and whether it is to be kept itself."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None, False
        kept = {key: _without_directives(item) for key, item in value.items()}
        return {key: item for key, (item, keep) in kept.items() if keep}, True
    if isinstance(value, list):
        return [item for item, keep in map(_without_directives, value) if keep], True
    return value, True


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _element_type(*lists: list[Any]) -> type:
    kind: type | None = None
    for items in lists:
        for item in items:
            kind = kind or type(item)
            if kind is list:
                raise rejected()
            if type(item) is not kind:
                raise unclassified(f"list element types are not identical: {printed(list(lists))}")
    return kind or type(None)


def _keyed(item: Any, merge_key: str) -> Any:
    if not isinstance(item, dict):
        raise unclassified(f"expected a map[string]interface {{}}, but received a {_go_type(item)}")
    if merge_key not in item:
        raise unclassified(f"map: {printed(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _identity(merge_key: str) -> Any:
    return (lambda item: _hashed(_keyed(item, merge_key))) if merge_key else _hashed


def _hashed(value: Any) -> Any:
    """A scalar as a dictionary key that keeps true and 1 apart."""
    if isinstance(value, dict | list):
        raise rejected()
    return type(value), value


def _go_type(value: Any) -> str:
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", int: "int64"}
    return names.get(type(value), "float64")
