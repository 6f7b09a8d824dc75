"""A configuration against its schema and its rules, before anything is planned.

Types were checked by Terraform, and that required attributes are there; but not that they are more than null, where they
are inside others. Here are that, the validators of attributes at any depth, the rules of the whole, deprecations, and
write-only attributes for a Terraform that is too old to keep them out of the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.config_validators import ConfigValidator
from trimtab.terraform.framework.diagnostics import ERROR, WARNING, Diagnostic
from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.schema import Schema, clipped
from trimtab.terraform.framework.validators import check, shown
from trimtab.terraform.framework.values import UNKNOWN


def validate(
    schema: Schema, rules: Iterable[ConfigValidator], config: Mapping[str, Any], *, write_only_allowed: bool = True
) -> Iterator[Diagnostic]:
    if schema.deprecated:
        yield Diagnostic(WARNING, "Deprecated", schema.deprecated)
    yield from _body(schema.attributes, schema.blocks, config, ROOT, write_only_allowed)
    for rule in rules:
        yield from rule.check(config, schema.value_type())


def elements(value: Any, nesting: str, place: Path) -> Iterator[tuple[Path, Any]]:
    """The objects of a nested value that are there and known, each with its place. Those of a set have the set's."""
    if value is None or value is UNKNOWN:
        return
    match nesting:
        case "single":
            pairs: Iterable[tuple[Path, Any]] = ((place, value),)
        case "map":
            pairs = ((place.key(key), element) for key, element in value.items())
        case "list":
            pairs = ((place.index(at), element) for at, element in enumerate(value))
        case _:
            pairs = ((place, element) for element in value)
    yield from ((where, element) for where, element in pairs if element is not None and element is not UNKNOWN)


def _body(
    attributes: Mapping[str, Attribute],
    blocks: Mapping[str, Block],
    value: Mapping[str, Any],
    place: Path,
    write_only_allowed: bool,
    secret: bool = False,
) -> Iterator[Diagnostic]:
    for name, attribute in attributes.items():
        yield from _attribute(attribute, value.get(name), place.name(name), write_only_allowed, secret)
    for name, block in blocks.items():
        inside = list(elements(value.get(name), block.nesting, place.name(name)))
        if inside and block.deprecated:
            yield Diagnostic(WARNING, "Deprecated", f"{place.name(name)}: {block.deprecated}", place.name(name))
        for where, element in inside:
            yield from _body(block.attributes, block.blocks, element, where, write_only_allowed, secret)


def _attribute(
    attribute: Attribute, value: Any, place: Path, write_only_allowed: bool, secret: bool
) -> Iterator[Diagnostic]:
    if value is None:
        if attribute.required:
            yield Diagnostic(ERROR, "Missing value", f"{place} is required and must not be null.", place)
        return
    if attribute.deprecated:
        yield Diagnostic(WARNING, "Deprecated", f"{place}: {attribute.deprecated}", place)
    if attribute.write_only and not write_only_allowed:
        text = f"{place} is write-only: it needs Terraform or OpenTofu 1.11 or later, which keeps it out of plan and state."
        yield Diagnostic(ERROR, "Write-only attribute not supported", text, place)
    secret = secret or attribute.sensitive or attribute.write_only
    for where, rule, broken in check(attribute.validators, value):
        at = place.join(clipped(where, attribute.value_type()))
        yield Diagnostic(ERROR, "Invalid value", f"{at} {rule}{'' if secret else given(broken)}.", at)
    if isinstance(attribute.type, Nested):
        for where, element in elements(value, attribute.type.nesting, place):
            yield from _body(attribute.type.attributes, {}, element, where, write_only_allowed, secret)


def given(value: Any) -> str:
    """What was given instead, where it can be said in a few words."""
    return "" if isinstance(value, list | dict) else f", not {shown(value)}"
