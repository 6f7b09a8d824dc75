"""What of a live object is ours to show. Terraform's state tells of fields that Terraform manages, and of no others.

Managed is what the field manager `terraform` owns, and what the state already has: a field that somebody took from us is
drift, and is shown; one that others set beside ours is theirs. Defaults that the schema tells are always shown, and what
the system alone writes (status) is shown whole. Values keep the spelling that they have in the state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trimtab.terraform.kinds.converting import aligned, from_document, key_names, matched, same_keys, spelled
from trimtab.terraform.kinds.definition import JSON, NOTHING, OBJECT, Field, Shape
from trimtab.terraform.kinds.equality import means_the_same
from trimtab.terraform.kinds.writing import default_value

MANAGER = "terraform"

Owned = Mapping[str, Any] | None
"""A part of a `fieldsV1` tree: `f:` fields, `k:` items by keys, `v:` items by value. None: not owned."""

PRESENT: Mapping[str, Any] = {".": {}}
"""Owned, and nothing that is below."""
EVERYTHING: Mapping[str, Any] = {"*": True}
"""Owned with all that is below."""


def owned_by(document: Mapping[str, Any], manager: str = MANAGER) -> dict[str, Any] | None:
    """The fields of the object itself that a manager applied; None for one who never did."""
    trees = [
        entry.get("fieldsV1") or {}
        for entry in _entries(document)
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    return _union(trees) if trees else None


def owned_by_anyone(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """All fields that somebody wrote, which leaves out what is the system's; everything where nobody keeps book."""
    trees = [entry.get("fieldsV1") or {} for entry in _entries(document) if not entry.get("subresource")]
    return _union(trees) if trees else EVERYTHING


def managers(document: Mapping[str, Any]) -> list[str]:
    return sorted({str(entry.get("manager", "")) for entry in _entries(document) if not entry.get("subresource")})


def shown(shape: Shape, live: Any, owned: Owned, prior: Any) -> Any:
    """The Terraform value of what is managed in a live document. `prior` is the value in the state."""
    if live is None:
        return prior if _is_empty(prior) else None
    if owned is None and prior is None:
        return None
    whole = shape.atomic and owned is not None and not owned  # the tree ends here: owned as one, with all that is below
    if whole and shape.form == OBJECT:
        owned = EVERYTHING if prior is None else None
    match shape.form:
        case "object":
            return {
                field.name: _field(field, live.get(field.wire), _below(owned, f"f:{field.wire}"), _of(prior, field))
                for field in shape.fields
            }
        case "map" if shape.items is not None:
            taken = shape.atomic and owned is None  # by one who now owns it as one: what he added is drift
            return _map(shape.items, live, EVERYTHING if whole or taken else owned, prior)
        case "keyed" if shape.items is not None:
            return _keyed(shape, live, owned, prior)
        case "set" if shape.items is not None:
            return _set(shape.items, live, owned, prior)
        case "list" if shape.items is not None:
            return _list(shape, live, owned, prior)
        case "json":
            return _json(live, owned, prior)
    return _spelling(shape, from_document(shape, live), prior)


def _field(field: Field, live: Any, owned: Owned, prior: Any) -> Any:
    if field.computed:
        return from_document(field.shape, live)
    if field.write_only:
        return None
    if field.default is not NOTHING:
        if live is None:  # servers leave out what is empty: absent is the default
            return _spelling(field.shape, default_value(field), prior)
        if owned is None and prior is None:  # the default is ours to show, and not what others set beside it
            prior = default_value(field)
    return shown(field.shape, live, owned, prior)


def _of(prior: Any, field: Field) -> Any:
    return prior.get(field.name) if isinstance(prior, dict) else None


def _map(items: Shape, live: Mapping[str, Any], owned: Owned, prior: Any) -> dict[str, Any]:
    known = prior if isinstance(prior, dict) else {}
    found = {}
    for key, item in live.items():
        below = _below(owned, f"f:{key}")
        if below is not None or known.get(key) is not None:
            before = known.get(key)
            found[key] = _whole(items, item, before) if _is_everything(below) else shown(items, item, below, before)
    return _ordered(_nulls(known) | found, known)


def _keyed(shape: Shape, live: list[Any], owned: Owned, prior: Any) -> dict[str, Any]:
    known = prior if isinstance(prior, dict) else {}
    items = shape.items or shape
    found: dict[str, Any] = {}
    for item in live:
        below = _below_item(owned, item, shape.keys)
        key = str(item.get(shape.keys[0], ""))
        if below is not None or known.get(key) is not None:
            found[key] = shown(items, item, PRESENT if below is None else below, known.get(key))
    return _ordered(_nulls(known) | found, known)


def _set(items: Shape, live: list[Any], owned: Owned, prior: Any) -> list[Any]:
    known = prior if isinstance(prior, list) else []
    values = [(item, from_document(items, item)) for item in live]
    kept = [
        value
        for item, value in values
        if _is_everything(owned)
        or (owned is not None and any(_is_value(word, item) for word in owned))
        or any(means_the_same(items, value, one) for one in known)
    ]
    before = [one for one in known if any(means_the_same(items, one, value) for value in kept)]
    return before + [value for value in kept if not any(means_the_same(items, value, one) for one in before)]


def _list(shape: Shape, live: list[Any], owned: Owned, prior: Any) -> list[Any]:
    items = shape.items or shape
    known = prior if isinstance(prior, list) else []
    if shape.keys and items.form == OBJECT:
        return _told_apart(shape, items, live, owned, known)
    return [_whole(items, item, _at(known, at)) for at, item in enumerate(live)]


def _whole(shape: Shape, live: Any, prior: Any) -> Any:
    """Of what is owned as one. What the state does not have in an object of it was filled in by the server."""
    return shown(shape, live, None if shape.form in (OBJECT, JSON) and prior is not None else EVERYTHING, prior)


def _told_apart(shape: Shape, items: Shape, live: list[Any], owned: Owned, known: list[Any]) -> list[Any]:
    names = key_names(shape)
    values = [from_document(items, item) for item in live]
    found: list[Any] = []
    used: list[int] = []
    for wanted, value in zip(known, aligned(shape, known, values), strict=True):
        at = next((at for at, one in enumerate(values) if one is value and at not in used), None)
        if value is None or at is None:
            continue
        used.append(at)
        found.append(shown(items, live[at], _below_item(owned, live[at], shape.keys), wanted))
    for at, item in enumerate(live):
        below = _below_item(owned, item, shape.keys)
        if at not in used and below is not None and not any(same_keys(names, one, values[at]) for one in known):
            found.append(shown(items, item, below, None))
    return found


def _json(live: Any, owned: Owned, prior: Any) -> str:
    try:
        before = json.loads(prior) if isinstance(prior, str) else None
    except ValueError:
        before = None
    text = spelled(_any(live, owned, before))
    return prior if isinstance(prior, str) and means_the_same(Shape(JSON), text, prior) else text


def _any(live: Any, owned: Owned, before: Any) -> Any:
    """Free JSON: objects are owned field by field, lists as the book of managers tells."""
    if _is_everything(owned):
        return live
    if isinstance(live, list):
        return _any_list(live, owned, before if isinstance(before, list) else [])
    if not isinstance(live, dict) or (not owned and not isinstance(before, dict)):
        return live
    known = before if isinstance(before, dict) else {}
    kept = {}
    for key, item in live.items():
        below = _below(owned, f"f:{key}")
        if below is not None or key in known:
            kept[key] = _any(item, below, known.get(key))
    return kept


def _any_list(live: list[Any], owned: Owned, before: list[Any]) -> list[Any]:
    """Items are owned one by one where the book tells them apart, by keys or by value; else they are by their places."""
    words = [word for word in owned or () if word.startswith(("k:", "v:"))]
    if not words:
        return [_any(item, None, _at(before, at)) for at, item in enumerate(live)]
    keys = tuple(_json_or_none(words[0][2:]) or ()) if words[0].startswith("k:") else ()
    matches = matched(keys, before, live) if keys else [item if item in live else None for item in before]
    kept = [
        _any(match, _below_item(owned, match, keys), was)
        for was, match in zip(before, matches, strict=True)
        if match is not None
    ]
    for item in live:
        below = _below_item(owned, item, keys)
        if item not in matches and (below is not None or any(_is_value(word, item) for word in words)):
            kept.append(_any(item, below, None))
    return kept


def _spelling(shape: Shape, value: Any, prior: Any) -> Any:
    return prior if prior is not None and means_the_same(shape, value, prior) else value


def _nulls(known: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that were given without a value, which no document has: they are ours as long as we own nothing there."""
    return {key: None for key, item in known.items() if item is None}


def _ordered(found: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in [*(k for k in known if k in found), *(k for k in found if k not in known)]}


def _at(known: list[Any], at: int) -> Any:
    return known[at] if at < len(known) else None


def _is_empty(value: Any) -> bool:
    """Nothing, said in so many words: servers leave empty lists, maps and objects out."""
    if isinstance(value, dict):
        return all(item is None or _is_empty(item) for item in value.values())
    return value in ([], "")


def _is_everything(owned: Owned) -> bool:
    return owned is not None and "*" in owned


def _below(owned: Owned, step: str) -> Owned:
    if owned is None or _is_everything(owned):
        return owned
    return owned.get(step)


def _below_item(owned: Owned, item: Any, keys: Iterable[str]) -> Owned:
    if owned is None or _is_everything(owned):
        return owned
    wanted = {key: item.get(key) for key in keys if isinstance(item, Mapping)}
    for word, below in owned.items():
        if word.startswith("k:") and _json_or_none(word[2:]) == wanted:
            return below if isinstance(below, Mapping) else {}
    return None


def _is_value(word: str, item: Any) -> bool:
    return word.startswith("v:") and bool(_json_or_none(word[2:]) == item)


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _entries(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for entry in (document.get("metadata") or {}).get("managedFields") or ():
        if isinstance(entry, Mapping):
            yield entry


def _union(trees: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for tree in trees:
        for word, below in tree.items():
            inner = below if isinstance(below, Mapping) else {}
            joined[word] = _union([joined[word], inner]) if word in joined else dict(inner)
    return joined
