"""What of a plan is sent: all that the user gave, and no more.

The plan is what he was shown, so its values are what he gave: where `ignore_changes` is set, Terraform plans what is in
the state, whatever the configuration says, and an apply is told of it by the plan alone. What was left as it is so stays
whose it is: sent again where we own it, since what an owner no longer sends is taken away, and not sent where others do.

The server fills in its defaults itself, so that they stay nobody's. Only a default that the object has lost to another
value is sent: the plan showed that it comes back. What is only written is in no plan, and comes from the configuration.
"""

from __future__ import annotations

from typing import Any

from trimtab.terraform.framework.values import UNKNOWN, whole
from trimtab.terraform.kinds.converting import aligned, is_whole, key_names, spelled, to_document
from trimtab.terraform.kinds.definition import INTEGER, KEYED, LIST, MAP, NOTHING, OBJECT, SET, Definition, Field, Shape
from trimtab.terraform.kinds.equality import means_the_same
from trimtab.terraform.kinds.keeping import unkept
from trimtab.terraform.kinds.reading import Owned
from trimtab.terraform.kinds.writing import default_value


def given(definition: Definition, config: Any, planned: Any, prior: Any = None, owned: Owned = None) -> Any:
    """What is sent, as a Terraform value. `owned` is what we own of the live object."""
    return _given(definition.root, config, planned, prior, owned)


def _given(shape: Shape, config: Any, planned: Any, prior: Any, owned: Owned) -> Any:
    if planned is None or planned is UNKNOWN:
        return config if planned is UNKNOWN else None
    if shape.form == SET:
        return _set(shape, config, planned, prior, owned)
    if shape.atomic or (shape.form not in (OBJECT, MAP, KEYED) and not shape.keys):
        return None if _is_left(shape, config, planned, prior, owned) else _whole(shape, config, planned)
    if shape.form == OBJECT:
        found: Any = _object(shape, config, planned, prior, owned)
        return None if not _is_any(found) and _is_others(config, prior, owned) else found
    found = (
        _list(shape, config, planned, prior, owned)
        if shape.form == LIST
        else _map(shape, config, planned, prior, owned)
    )
    return None if not found and planned and owned is None and prior is not None else found


def _object(shape: Shape, config: Any, planned: Any, prior: Any, owned: Owned) -> dict[str, Any]:
    return {field.name: _field(field, config, planned, prior, _of(owned, f"f:{field.wire}")) for field in shape.fields}


def _field(field: Field, config: Any, planned: Any, prior: Any, owned: Owned) -> Any:
    said, wanted, now = (_of(value, field.name) for value in (config, planned, prior))
    if field.computed or field.write_only:
        return None if field.computed else said
    if said is None and _is_default(field, wanted):
        if not isinstance(prior, dict) or (now is not None and means_the_same(field.shape, wanted, now)):
            return None
        return _given(field.shape, wanted, wanted, None, None)
    return _given(field.shape, said, wanted, now, owned)


def _map(shape: Shape, config: Any, planned: dict[str, Any], prior: Any, owned: Owned) -> dict[str, Any]:
    items = shape.items or shape
    found = {}
    for key, item in planned.items():
        below = _of(owned, _item_step(shape, {shape.keys[0]: key}) if shape.form == KEYED else f"f:{key}")
        said, now = _of(config, key), _of(prior, key)
        if (isinstance(config, dict) and key in config) or not _is_others(said, now, below):
            found[key] = _given(items, said, item, now, below)
    return found


def _list(shape: Shape, config: Any, planned: list[Any], prior: Any, owned: Owned) -> list[Any]:
    items = shape.items or shape
    names = key_names(shape)
    written = config if isinstance(config, list) else []
    says = {id(match): item for item, match in zip(written, aligned(shape, written, planned), strict=True)}
    found = []
    for item, now in zip(planned, aligned(shape, planned, prior if isinstance(prior, list) else []), strict=True):
        said = says.get(id(item))
        document = to_document(items, {name: _of(item, name) for name in names})
        below = _of(owned, _item_step(shape, document))
        if said is not None:
            found.append(_given(items, said, item, now, below))
        elif not _is_others(said, now, below):
            found.append({**_given(items, said, item, now, below), **{name: _of(item, name) for name in names}})
    return found


def _set(shape: Shape, config: Any, planned: list[Any], prior: Any, owned: Owned) -> list[Any] | None:
    items = shape.items or shape

    def is_in(item: Any, values: Any) -> bool:
        return isinstance(values, list) and any(means_the_same(items, item, one) for one in values)

    if not whole(planned):
        return list(config)
    if (isinstance(config, list) and all(is_in(item, config) for item in planned)) or planned != prior:
        return planned
    ours = [item for item in planned if _of(owned, f"v:{spelled(to_document(items, item))}") is not None]
    return ours or (planned if owned is not None and not planned else None)


def _whole(shape: Shape, config: Any, planned: Any) -> Any:
    """What has one owner: all of it, but for what the server fills in."""
    items = shape.items
    if shape.form == OBJECT:
        return _object(shape, config, planned, None, None)
    if items is None or items.form != OBJECT:
        return planned if whole(planned) else config
    if isinstance(planned, dict):
        return {key: _given(items, _of(config, key), item, None, None) for key, item in planned.items()}
    beside = aligned(shape, planned, config if isinstance(config, list) else [])
    return [_given(items, said, item, None, None) for item, said in zip(planned, beside, strict=True)]


def _is_left(shape: Shape, config: Any, planned: Any, prior: Any, owned: Owned) -> bool:
    """Whether the plan leaves it as it is, against the configuration, and it is not ours."""
    if owned is not None or prior is None or planned != prior:
        return False
    if shape.form in (OBJECT, MAP, LIST):
        return config is None or any(True for _ in unkept(shape, config, planned))
    return config is None or not means_the_same(shape, config, planned)


def _is_others(config: Any, prior: Any, owned: Owned) -> bool:
    """Whether something planned is there without us: the configuration does not say it, and we do not own it."""
    return config is None and prior is not None and owned is None


def _is_any(value: dict[str, Any]) -> bool:
    return any(item is not None for item in value.values())


def _is_default(field: Field, value: Any) -> bool:
    if field.default is NOTHING or value is None or value is UNKNOWN:
        return False
    return means_the_same(field.shape, value, default_value(field))


def _item_step(shape: Shape, keys: dict[str, Any]) -> str:
    """An item of a keyed list, as the book of managed fields names it."""
    numbers = shape.key_form == INTEGER
    return f"k:{spelled({key: int(value) if numbers and is_whole(value) else value for key, value in keys.items()})}"


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
