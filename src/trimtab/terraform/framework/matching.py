"""Which element of a set was which before: elements have no name, so that only their values can tell.

An element of a configuration can be an element of the state when all that the user wrote is in it, in any spelling that
means the same, and all that he left out is computed or has its default there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested, means_same
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.defaults import NONE, default_of
from trimtab.terraform.framework.values import UNKNOWN, key, same


def matched(schema: Nested | Block, config: list[Any], prior: list[Any]) -> list[tuple[Any, Any]]:
    """Each element of the configuration with its element of the state, or None. None is used twice."""
    found = pairs(schema, config, prior)
    return [(element, prior[found[at]] if at in found else None) for at, element in enumerate(config)]


def pairs(schema: Nested | Block, config: list[Any], prior: list[Any], *, planned: bool = False) -> dict[int, int]:
    """Indexes of elements that belong together, as many as there can be.

    `planned`: the first are of a plan or a state; defaults are in them, and what is unknown may become anything.
    """
    type_ = schema.object_type()
    same_key: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, element in enumerate(prior):
        same_key[key(element, type_)].append(at)
    found = {at: twins.pop() for at, element in enumerate(config) if (twins := same_key.get(key(element, type_)))}
    taken = set(found.values())
    free = [at for at in range(len(prior)) if at not in taken]
    fitting = {
        at: [other for other in free if fits(schema, element, prior[other], planned)]
        for at, element in enumerate(config)
        if at not in found
    }
    return found | assigned(fitting)


def assigned(fitting: dict[int, list[int]]) -> dict[int, int]:
    """A largest assignment, by augmenting paths: one that could be two goes to the one that nobody else can be."""
    holder: dict[int, int] = {}
    for start in fitting:
        came: dict[int, int] = {}  # from which element each candidate was reached
        waiting, seen = [start], {start}
        while waiting:
            at = waiting.pop()
            end = None
            for other in fitting[at]:
                if other in came:
                    continue
                came[other] = at
                if other not in holder:
                    end = other
                    break
                if holder[other] not in seen:
                    seen.add(holder[other])
                    waiting.append(holder[other])
            if end is not None:
                _hand_over(holder, came, start, end)
                break
    return {at: other for other, at in holder.items()}


def _hand_over(holder: dict[int, int], came: dict[int, int], start: int, end: int) -> None:
    """Along the path: each gives its candidate to the one before it and takes the next."""
    had = {at: other for other, at in holder.items()}
    while True:
        at = came[end]
        holder[end] = at
        if at == start:
            return
        end = had[at]


def fits(schema: Nested | Block, config: Any, prior: Any, planned: bool = False) -> bool:
    """Whether an object of the configuration could have become this object of the state."""
    if not isinstance(config, dict) or not isinstance(prior, dict):
        return config is prior or (planned and config is UNKNOWN)
    return _body(schema, config, prior, planned)


def _body(schema: Nested | Block, config: Mapping[str, Any], prior: Mapping[str, Any], planned: bool) -> bool:
    for name, attribute in schema.attributes.items():
        if not _attribute(attribute, config.get(name), prior.get(name), planned):
            return False
    if isinstance(schema, Block):
        for name, block in schema.blocks.items():
            if not _nested(block, config.get(name), prior.get(name), planned):
                return False
    return True


def _attribute(attribute: Attribute, config: Any, prior: Any, planned: bool) -> bool:
    if attribute.write_only:
        return True
    if config is None:
        default = NONE if planned else default_of(attribute.default)
        if default is NONE:
            return attribute.computed or prior is None
        config = default
    if config is UNKNOWN:
        return planned
    if same(config, prior, attribute.value_type()):
        return True
    if config is None or prior is None:
        return False
    if means_same(attribute, config, prior):
        return True
    return isinstance(attribute.type, Nested) and _nested(attribute.type, config, prior, planned)


def _nested(schema: Nested | Block, config: Any, prior: Any, planned: bool) -> bool:
    if config is UNKNOWN:
        return planned
    if config is None or prior is None:
        return config is prior
    match schema.nesting:
        case "single":
            return fits(schema, config, prior, planned)
        case "map":
            return config.keys() == prior.keys() and all(
                fits(schema, config[name], prior[name], planned) for name in config
            )
        case "list":
            return len(config) == len(prior) and all(
                fits(schema, x, y, planned) for x, y in zip(config, prior, strict=True)
            )
        case _:
            return len(config) == len(prior) == len(pairs(schema, config, prior, planned=planned))
