"""The plan: what the resource shall be, of what the user wrote and what it is.

A pure function of schema, configuration and prior state. For each attribute, at any depth:

1. What the user wrote is planned as he wrote it, in the spelling of the state where the two mean the same (`equal`).
2. What he left out is its default; else, if the provider computes it, what the state has; else null.
3. When anything differs from the state, all that is computed may change with it and becomes unknown, but for what a
   modifier keeps. When nothing differs the plan is the state, and Terraform shows no change.

So planning runs twice: once as if nothing changed, to see whether something does. Elements of a list are compared with the
element at the same index, those of a map at the same key, those of a set with an element that the configuration could be
of. Write-only attributes are in no plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested, means_same
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.defaults import NONE, default_of
from trimtab.terraform.framework.matching import matched
from trimtab.terraform.framework.modifiers import Change
from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.replacing import replaced
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.shaping import Misfit, shaped
from trimtab.terraform.framework.values import UNKNOWN, distinct, same


@dataclass(frozen=True, slots=True)
class Planned:
    value: dict[str, Any]
    replace: tuple[Path, ...]
    """Where a change needs a new resource."""


def plan(schema: Schema, config: Mapping[str, Any], prior: Mapping[str, Any] | None) -> Planned:
    """`prior` is None when the resource is to be created."""
    walk = _Walk(changed=prior is None)
    value = walk.body(schema.attributes, schema.blocks, config, prior, ROOT)
    if prior is not None and not same(value, dict(prior), schema.value_type()):
        value = _Walk(changed=True).body(schema.attributes, schema.blocks, config, prior, ROOT)
    return Planned(value, tuple(replaced(schema, config, prior, value)) if prior is not None else ())


class _Walk:
    def __init__(self, changed: bool) -> None:
        self.changed = changed

    def body(
        self,
        attributes: Mapping[str, Attribute],
        blocks: Mapping[str, Block],
        config: Mapping[str, Any],
        prior: Mapping[str, Any] | None,
        place: Path,
    ) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, attribute in attributes.items():
            out[name] = self.attribute(attribute, config.get(name), prior, name, place.name(name))
        for name, block in blocks.items():
            before = prior.get(name) if prior is not None else None
            out[name] = self.nested(block, config.get(name), before, place.name(name))
            if out[name] is None and block.nesting != "single":
                out[name] = {} if block.nesting == "map" else []
        return out

    def attribute(
        self, attribute: Attribute, config: Any, parent: Mapping[str, Any] | None, name: str, place: Path
    ) -> Any:
        if attribute.write_only:
            return None
        existed = parent is not None
        prior = parent.get(name) if parent is not None else None
        planned = self.value(attribute, config, prior, existed, place)
        for modifier in attribute.modifiers:
            planned = modifier.plan(Change(place, config, prior, planned, existed))
        return planned

    def value(self, attribute: Attribute, config: Any, prior: Any, existed: bool, place: Path) -> Any:
        if config is UNKNOWN:
            return UNKNOWN
        if config is None:
            default = default_of(attribute.default)
            if default is NONE:
                if not attribute.computed:
                    return None
                return prior if existed and not self.changed else UNKNOWN
            config = _shaped_default(default, attribute, place)
            if config is None:
                return None
        planned = config
        if isinstance(attribute.type, Nested):
            planned = self.nested(attribute.type, config, prior, place)
        return prior if means_same(attribute, planned, prior) else planned

    def nested(self, schema: Nested | Block, config: Any, prior: Any, place: Path) -> Any:
        """Objects within: each with the one that it was before."""
        blocks = schema.blocks if isinstance(schema, Block) else {}

        def one(config: Any, prior: Any, place: Path) -> Any:
            if config is None or config is UNKNOWN:
                return config
            return self.body(schema.attributes, blocks, config, prior, place)

        if config is None or config is UNKNOWN:
            return config
        match schema.nesting:
            case "single":
                return one(config, prior, place)
            case "map":
                before = prior or {}
                return {key: one(element, before.get(key), place.key(key)) for key, element in config.items()}
            case "list":
                was = dict(enumerate(prior or []))
                return [one(element, was.get(at), place.index(at)) for at, element in enumerate(config)]
            case _:
                pairs = matched(schema, config, prior or [])
                return distinct([one(element, before, place) for element, before in pairs], schema.object_type())


def _shaped_default(default: Any, attribute: Attribute, place: Path) -> Any:
    try:
        return shaped(default, attribute.value_type(), place)
    except Misfit as misfit:
        raise Misfit(misfit.path, f"its default does not fit: {misfit.text}") from None
