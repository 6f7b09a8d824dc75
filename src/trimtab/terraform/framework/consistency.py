"""What Terraform demands of a plan and of a result, checked before Terraform sees them.

Terraform stops with "Provider produced invalid plan" or "… inconsistent result after apply" when a provider breaks one of
these rules, and tells its user to report a bug. We say which attribute it was, and what of it.

A plan: what is configured is planned as configured (or as it is in the state, which says: they mean the same); what is
not configured may be planned only where it is computed. A result: what was known in the plan is so, what was unknown may
be anything; elements of a set may fall together, and never become more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import (
    DYNAMIC,
    ListOf,
    MapOf,
    ObjectOf,
    SetOf,
    TupleOf,
    Type,
)
from trimtab.terraform.framework.validators import shown
from trimtab.terraform.framework.values import UNKNOWN, distinct, same, whole

Fault = tuple[Path, str]


def plan_faults(
    schema: Schema, config: Mapping[str, Any], prior: Mapping[str, Any] | None, planned: Mapping[str, Any]
) -> Iterator[Fault]:
    yield from _planned_body(schema.attributes, schema.blocks, config, prior, planned, ROOT)


def result_faults(schema: Schema, planned: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Fault]:
    parts: dict[str, Attribute | Block] = {**schema.attributes, **schema.blocks}
    for name, part in parts.items():
        place = ROOT.name(name)
        secret = isinstance(part, Attribute) and _secret(part)
        for where, text in _result(planned.get(name), result.get(name), part.value_type(), place):
            yield where, "differs from the plan" if secret else text


def unknown_faults(value: Any, place: Path = ROOT) -> Iterator[Fault]:
    """What is unknown where nothing may be."""
    if value is UNKNOWN:
        yield place, "is still unknown"
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from unknown_faults(inner, place.name(name))
    elif isinstance(value, list) and not whole(value):
        yield place, "holds what is still unknown"


def _planned_body(
    attributes: Mapping[str, Attribute], blocks: Mapping[str, Block], config: Any, prior: Any, planned: Any, place: Path
) -> Iterator[Fault]:
    for name, attribute in attributes.items():
        yield from _planned(attribute, _get(config, name), _get(prior, name), _get(planned, name), place.name(name))
    for name, block in blocks.items():
        wrote, will, where = _get(config, name), _get(planned, name), place.name(name)
        if not same(wrote, will, block.value_type()):
            if will is UNKNOWN or wrote is UNKNOWN:
                yield where, "is a block: it is known just when it is known in the configuration"
            elif (wrote is None) != (will is None):
                yield where, "is a block: it is there just when it is in the configuration"
            else:
                yield from _planned_elements(block, wrote, _get(prior, name), will, where)


def _planned(attribute: Attribute, config: Any, prior: Any, planned: Any, place: Path) -> Iterator[Fault]:
    type_ = attribute.value_type()
    if attribute.write_only:
        if planned is not None:
            yield place, "is write-only, so that its planned value must be null"
        return
    if same(planned, config, type_) or (attribute.computed and (config is None or not attribute.optional)):
        return
    if prior is not None and config is not None and same(planned, prior, type_):
        return
    if config is None:
        yield place, f"is null in the configuration and not computed, but planned as {_said(planned, attribute)}"
    elif isinstance(attribute.type, Nested) and isinstance(planned, dict | list) and _followed(attribute.type, config):
        yield from _planned_elements(attribute.type, config, prior, planned, place)
    else:
        yield place, f"is {_said(config, attribute)} in the configuration, but planned as {_said(planned, attribute)}"


def _followed(nested: Nested, config: Any) -> bool:
    """Whether Terraform looks inside: of what is unknown in the configuration only into single objects and sets."""
    return config is not UNKNOWN or nested.nesting in ("single", "set")


def _planned_elements(schema: Nested | Block, config: Any, prior: Any, planned: Any, place: Path) -> Iterator[Fault]:
    blocks = schema.blocks if isinstance(schema, Block) else {}
    match schema.nesting:
        case "single":
            yield from _planned_body(schema.attributes, blocks, config, prior, planned, place)
        case "map":
            for name in sorted(config.keys() ^ planned.keys()):
                yield place.key(name), "is in the plan or in the configuration, but not in both"
            for name in config.keys() & planned.keys():
                yield from _planned_one(schema, config[name], (prior or {}).get(name), planned[name], place.key(name))
        case "list":
            if len(config) != len(planned):
                yield place, f"has {len(config)} elements in the configuration, but {len(planned)} in the plan"
                return
            for at, (wrote, will) in enumerate(zip(config, planned, strict=True)):
                was = prior[at] if isinstance(prior, list) and at < len(prior) else None
                yield from _planned_one(schema, wrote, was, will, place.index(at))
        case _ if isinstance(schema, Nested) and config is not UNKNOWN:  # of a set of blocks Terraform asks nothing
            wrote_, will_ = (len(distinct(items, schema.object_type())) for items in (config, planned))
            if whole(config) and whole(planned) and wrote_ != will_:
                yield (
                    place,
                    f"has {wrote_} elements in the configuration, but {will_} different ones once defaults are set",
                )


def _planned_one(schema: Nested | Block, config: Any, prior: Any, planned: Any, place: Path) -> Iterator[Fault]:
    if config is UNKNOWN or planned is UNKNOWN or (config is None) != (planned is None):
        if config is not planned:
            yield place, "is there, and known, just when it is so in the configuration"
    elif config is not None:
        blocks = schema.blocks if isinstance(schema, Block) else {}
        yield from _planned_body(schema.attributes, blocks, config, prior, planned, place)


def _result(planned: Any, result: Any, type_: Type, place: Path) -> Iterator[Fault]:
    if planned is UNKNOWN:
        return
    if planned is None or result is None or result is UNKNOWN:
        if planned is not result:
            yield place, f"was planned as {_brief(planned)}, but is {_brief(result)}"
        return
    match type_:
        case ListOf(inner):
            if len(planned) != len(result):
                yield place, f"was planned with {len(planned)} elements, but has {len(result)}"
                return
            for at, (was, is_) in enumerate(zip(planned, result, strict=True)):
                yield from _result(was, is_, inner, place.index(at))
        case MapOf(inner):
            for name in sorted(planned.keys() ^ result.keys()):
                yield place.key(name), "was planned, but is not there" if name in planned else "was not planned"
            for name in planned.keys() & result.keys():
                yield from _result(planned[name], result[name], inner, place.key(name))
        case ObjectOf(attributes):
            for name, inner in attributes.items():
                yield from _result(planned.get(name), result.get(name), inner, place.name(name))
        case TupleOf(elements):
            for at, inner in enumerate(elements):
                yield from _result(planned[at], result[at], inner, place.index(at))
        case SetOf(inner):
            yield from _result_set(distinct(planned, inner), distinct(result, inner), inner, place)
        case _ if type_ == DYNAMIC:
            if planned.type != result.type:
                yield place, "was planned with another type"
            else:
                yield from _result(planned.value, result.value, planned.type, place)
        case _ if not same(planned, result, type_):
            yield place, f"was planned as {_brief(planned)}, but is {_brief(result)}"


def _result_set(planned: list[Any], result: list[Any], inner: Type, place: Path) -> Iterator[Fault]:
    if len(result) > len(planned):
        yield place, f"was planned with {len(planned)} elements, but has {len(result)}"
        return
    pairs = [[not any(_result(was, is_, inner, place)) for is_ in result] for was in planned]
    if not all(map(any, pairs)):
        yield place, "lacks an element that was planned"
    elif not all(any(row[at] for row in pairs) for at in range(len(result))):
        yield place, "has an element that was not planned"


def _secret(attribute: Attribute) -> bool:
    inside = attribute.type.attributes.values() if isinstance(attribute.type, Nested) else ()
    return attribute.sensitive or attribute.write_only or any(map(_secret, inside))


def _said(value: Any, attribute: Attribute) -> str:
    return "another value" if _secret(attribute) and value is not None and value is not UNKNOWN else _brief(value)


def _brief(value: Any) -> str:
    if value is None:
        return "null"
    if value is UNKNOWN:
        return "unknown"
    return "a value" if isinstance(value, dict | list) and value else shown(value)


def _get(value: Any, name: str) -> Any:
    if value is UNKNOWN:
        return UNKNOWN
    return value.get(name) if isinstance(value, dict) else None
