"""Which changes need a new resource: asked of the modifiers at every depth, once the plan is made.

Objects within are asked about when they are there before and after; one that comes or goes replaces nothing by what is in
it (give the attribute that holds it a modifier of its own for that). Elements of a set that have no partner are a change
when some were lost and some were gained: of a set alone one cannot tell an element that was changed from one that was
exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.matching import assigned, pairs
from trimtab.terraform.framework.modifiers import Change, Modifier
from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.values import UNKNOWN, same


def replaced(
    schema: Schema, config: Mapping[str, Any], prior: Mapping[str, Any], planned: Mapping[str, Any]
) -> Iterator[Path]:
    """The places of changes that need a new resource, each once."""
    seen: set[Path] = set()
    for path in _body(schema.attributes, schema.blocks, config, prior, planned, ROOT):
        if path not in seen:
            seen.add(path)
            yield path


def _body(
    attributes: Mapping[str, Attribute], blocks: Mapping[str, Block], config: Any, prior: Any, planned: Any, place: Path
) -> Iterator[Path]:
    for name, attribute in attributes.items():
        where = place.name(name)
        wrote, was, will = _get(config, name), _get(prior, name), _get(planned, name)
        if attribute.write_only or same(was, will, attribute.value_type()):
            continue
        change = Change(where, wrote, was, will, existed=True)
        computed = will is UNKNOWN and wrote is None  # nobody asked for another value
        if not computed and any(modifier.replaces(change) for modifier in attribute.modifiers):
            yield where
        if isinstance(attribute.type, Nested):
            yield from _nested(attribute.type, wrote, was, will, where)
    for name, block in blocks.items():
        yield from _nested(block, _get(config, name), _get(prior, name), _get(planned, name), place.name(name))


def _nested(schema: Nested | Block, config: Any, prior: Any, planned: Any, place: Path) -> Iterator[Path]:
    blocks = schema.blocks if isinstance(schema, Block) else {}
    if not _asks(schema.attributes, blocks):
        return
    if planned is UNKNOWN and config is UNKNOWN and prior:
        yield place  # what will be in it may differ where it matters, and a plan must say so beforehand
    elif schema.nesting == "single":
        yield from _one(schema, config, prior, planned, place)
    elif isinstance(prior, dict) and isinstance(planned, dict):
        for name in prior.keys() & planned.keys():
            yield from _one(schema, _get(config, name), prior[name], planned[name], place.key(name))
    elif isinstance(prior, list) and isinstance(planned, list):
        if schema.nesting == "list":
            for at, (was, will) in enumerate(zip(prior, planned, strict=False)):
                wrote = config[at] if isinstance(config, list) and at < len(config) else None
                yield from _one(schema, wrote, was, will, place.index(at))
        elif _exchanged(schema, config, prior, planned):
            yield place


def _one(schema: Nested | Block, config: Any, prior: Any, planned: Any, place: Path) -> Iterator[Path]:
    if isinstance(prior, dict) and isinstance(planned, dict):
        blocks = schema.blocks if isinstance(schema, Block) else {}
        yield from _body(schema.attributes, blocks, config, prior, planned, place)
    elif isinstance(prior, dict) and planned is UNKNOWN:
        yield place


def _exchanged(schema: Nested | Block, config: Any, prior: list[Any], planned: list[Any]) -> bool:
    """Pairs off all that stayed, then all that differ only where it does not matter; is anything left on both sides?"""
    wrote = config if isinstance(config, list) and len(config) == len(planned) else planned

    def harmless(new: int, old: int) -> bool:
        return not any(_one(schema, wrote[new], prior[old], planned[new], ROOT.index(new)))

    likely = pairs(schema, planned, prior, planned=True)
    stayed = {new: old for new, old in likely.items() if harmless(new, old)}
    gained = [at for at in range(len(planned)) if at not in stayed]
    lost = [at for at in range(len(prior)) if at not in stayed.values()]
    changed = assigned({new: [old for old in lost if harmless(new, old)] for new in gained})
    return len(changed) < min(len(gained), len(lost))


def _asks(attributes: Mapping[str, Attribute], blocks: Mapping[str, Block]) -> bool:
    """Whether any modifier within could want a new resource."""
    for attribute in attributes.values():
        if any(type(modifier).replaces is not Modifier.replaces for modifier in attribute.modifiers):
            return True
        if isinstance(attribute.type, Nested) and _asks(attribute.type.attributes, {}):
            return True
    return any(_asks(block.attributes, block.blocks) for block in blocks.values())


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
