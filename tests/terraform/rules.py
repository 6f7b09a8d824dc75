"""What Terraform core demands of a provider, as an oracle: it knows the messages of the protocol and none of our classes.

`plan_errors` is the demand on a plan, `final_plan_errors` that on the same plan when all is known, `result_errors` that on
what an apply returns. They are written from the rules
that core documents: a plan may add to the configuration only what is computed; a result may differ from the plan only where
the plan was unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from trimtab.terraform.framework import types
from trimtab.terraform.framework.values import UNKNOWN, Typed, distinct, same, whole

SINGLE, LIST, SET, MAP = 1, 2, 3, 4


def attribute_type(attribute: dict[str, Any]) -> types.Type:
    if "nested_type" in attribute:
        nested = attribute["nested_type"]
        return _collected(object_type(nested.get("attributes", []), []), nested["nesting"])
    return types.parse(json.loads(attribute["type"]))


def object_type(attributes: list[dict[str, Any]], blocks: list[dict[str, Any]]) -> types.ObjectOf:
    inner = {attribute["name"]: attribute_type(attribute) for attribute in attributes}
    for block in blocks:
        inner[block["type_name"]] = _block_type(block)
    return types.ObjectOf(inner)


def schema_type(schema: dict[str, Any]) -> types.ObjectOf:
    return object_type(schema["block"].get("attributes", []), schema["block"].get("block_types", []))


def plan_errors(schema: dict[str, Any], prior: Any, config: Any, planned: Any) -> list[str]:
    return list(_plan_block(schema["block"], prior, config, planned, ""))


def result_errors(schema: dict[str, Any], planned: Any, result: Any) -> list[str]:
    errors = list(_result_block(schema["block"], planned, result, ""))
    return errors if whole(result) else [*errors, "unknown after apply"]


def final_plan_errors(schema: dict[str, Any], early: Any, final: Any) -> list[str]:
    """Of the plan that is made again just before an apply: it may fill in the first one, and not contradict it."""
    return list(_result_block(schema["block"], early, final, ""))


def _plan_block(block: dict[str, Any], prior: Any, config: Any, planned: Any, at: str) -> Iterator[str]:
    if (planned is None) != (config is None):
        yield f"{at}: absent on one side"
        return
    if planned is None:
        return
    for attribute in block.get("attributes", []):
        yield from _plan_attribute(attribute, prior, config, planned, at)
    for nested in block.get("block_types", []):
        name = nested["type_name"]
        here, was, wrote, will = f"{at}.{name}", _of(prior, name), _of(config, name), _of(planned, name)
        if nested["nesting"] != SINGLE and will is None:
            yield f"{here}: blocks are empty, not null"
        elif same(will, wrote, _block_type(nested)):
            continue
        elif wrote is UNKNOWN or will is UNKNOWN:
            yield f"{here}: unknown blocks"
        elif nested["nesting"] == SINGLE:
            yield from _plan_block(nested["block"], was, wrote, will, here)
        elif nested["nesting"] == SET:
            yield from (f"{here}: unknown element" for element in will if element is UNKNOWN)
        elif _keys(will) != _keys(wrote):
            yield f"{here}: other blocks than configured"
        else:
            for key in _keys(will):
                if will[key] is UNKNOWN:
                    yield f"{here}: unknown element"
                else:
                    yield from _plan_block(nested["block"], _at(was, key), wrote[key], will[key], f"{here}[{key!r}]")


def _plan_attribute(attribute: dict[str, Any], prior: Any, config: Any, planned: Any, at: str) -> Iterator[str]:
    name, type_ = attribute["name"], attribute_type(attribute)
    here, was, wrote, will = f"{at}.{name}", _of(prior, name), _of(config, name), _of(planned, name)
    if attribute.get("write_only"):
        if will is not None:
            yield f"{here}: write-only and not null"
        return
    if same(will, wrote, type_) or (was is not None and wrote is not None and same(will, was, type_)):
        return
    if attribute.get("computed") and (wrote is None or not attribute.get("optional")):
        return
    if wrote is None:
        yield f"{here}: planned, but neither configured nor computed"
    elif "nested_type" in attribute:
        yield from _plan_nested(attribute["nested_type"], was, wrote, will, here)
    else:
        yield f"{here}: {will!r} planned for {wrote!r}"


def _plan_nested(nested: dict[str, Any], prior: Any, config: Any, planned: Any, at: str) -> Iterator[str]:
    if planned is None or planned is UNKNOWN:
        yield f"{at}: configured, but planned as {planned!r}"
        return
    attributes = nested.get("attributes", [])
    if nested["nesting"] == SINGLE:
        for attribute in attributes:
            yield from _plan_attribute(attribute, prior, config, planned, at)
    elif nested["nesting"] == SET:
        inner = object_type(attributes, [])
        known = config is not UNKNOWN and whole(config) and whole(planned)
        if known and len(distinct(config, inner)) != len(distinct(planned, inner)):
            yield f"{at}: another number of elements"
    elif config is UNKNOWN:
        yield f"{at}: planned for what is unknown"
    elif _keys(config) != _keys(planned):
        yield f"{at}: other elements than configured"
    else:
        for key in _keys(config):
            for attribute in attributes:
                yield from _plan_attribute(attribute, _at(prior, key), config[key], planned[key], f"{at}[{key!r}]")


def _result_block(block: dict[str, Any], planned: Any, result: Any, at: str) -> Iterator[str]:
    if planned is UNKNOWN:
        return
    if planned is None or result is None:
        if planned is not result:
            yield f"{at}: absent on one side"
        return
    for attribute in block.get("attributes", []):
        name = attribute["name"]
        yield from _result_value(_of(planned, name), _of(result, name), attribute_type(attribute), f"{at}.{name}")
    for nested in block.get("block_types", []):
        here, will, is_ = (
            f"{at}.{nested['type_name']}",
            _of(planned, nested["type_name"]),
            _of(result, nested["type_name"]),
        )
        if nested["nesting"] == SINGLE:
            yield from _result_block(nested["block"], will, is_, here)
        elif will is UNKNOWN:
            continue
        elif is_ is None:
            yield f"{here}: null blocks"
        elif nested["nesting"] == SET:
            yield from _result_set(
                will, is_, lambda x, y, nested=nested: not any(_result_block(nested["block"], x, y, "")), here
            )
        elif len(will) != len(is_):
            yield f"{here}: another number of blocks"
        else:
            for key in _keys(will):
                yield from _result_block(nested["block"], will[key], _at(is_, key), f"{here}[{key!r}]")


def _result_value(planned: Any, result: Any, type_: types.Type, at: str) -> Iterator[str]:
    if planned is UNKNOWN:
        return
    if planned is None or result is None or result is UNKNOWN:
        if planned is not result:
            yield f"{at}: was {planned!r}, now {result!r}"
        return
    match type_:
        case types.ListOf(inner) | types.MapOf(inner):
            if _keys(planned) != _keys(result):
                yield f"{at}: elements appeared or vanished"
                return
            for key in _keys(planned):
                yield from _result_value(planned[key], result[key], inner, f"{at}[{key!r}]")
        case types.ObjectOf(attributes):
            for name, inner in attributes.items():
                yield from _result_value(_of(planned, name), _of(result, name), inner, f"{at}.{name}")
        case types.TupleOf(elements):
            for key, inner in enumerate(elements):
                yield from _result_value(planned[key], result[key], inner, f"{at}[{key!r}]")
        case types.SetOf(inner):
            left, right = distinct(planned, inner), distinct(result, inner)
            yield from _result_set(left, right, lambda x, y: not any(_result_value(x, y, inner, "")), at)
        case _ if isinstance(planned, Typed):
            if planned.type != result.type:
                yield f"{at}: another type"
            else:
                yield from _result_value(planned.value, result.value, planned.type, at)
        case _ if not same(planned, result, type_):
            yield f"{at}: was {planned!r}, now {result!r}"


def _result_set(planned: list[Any], result: list[Any], alike: Any, at: str) -> Iterator[str]:
    if len(result) > len(planned):
        yield f"{at}: the set grew"
    yield from (f"{at}: {x!r} is gone" for x in planned if not any(alike(x, y) for y in result))
    yield from (f"{at}: {y!r} is new" for y in result if not any(alike(x, y) for x in planned))


def _block_type(block: dict[str, Any]) -> types.Type:
    body = block["block"]
    return _collected(object_type(body.get("attributes", []), body.get("block_types", [])), block["nesting"])


def _collected(inner: types.Type, nesting: int) -> types.Type:
    return {SINGLE: inner, LIST: types.ListOf(inner), SET: types.SetOf(inner), MAP: types.MapOf(inner)}[nesting]


def _of(value: Any, name: str) -> Any:
    if value is UNKNOWN:
        return UNKNOWN
    return value.get(name) if isinstance(value, dict) else None


def _keys(value: Any) -> Any:
    return value.keys() if isinstance(value, dict) else range(len(value))


def _at(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    return value[key] if isinstance(value, list) and key < len(value) else None
