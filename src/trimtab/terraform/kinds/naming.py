"""What kinds and fields are called in Terraform. Names are snake_case of the API's names, and never collide.

A name is a promise: users write it in their configurations. So it depends on as little as possible, and where two would
be called the same, the one that an earlier snapshot named so keeps it (see promises). The others get what is free, those
that came by the name honestly first.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import Any

PREFIX = "trimtab"
SUFFIX = "trimtab.dev"

META_ARGUMENTS = frozenset(
    {"connection", "count", "depends_on", "for_each", "lifecycle", "locals", "provider", "provisioner", "self"}
)
"""What Terraform itself means by these words at the root of a resource."""

OWN_ARGUMENTS = frozenset({"force_conflicts", "metadata", "status", "timeouts", "wait"})
"""What every resource of ours has at its root beside the fields of its kind."""

NO_NAMES: Mapping[Any, str] = MappingProxyType({})

_WORDS = re.compile(
    r"""
    [A-Z]{2,}s(?![a-z])        # CIDRs, IPs
    | [A-Z]+(?![a-z])          # IP, VEX before Source, V
    | [A-Z]?[a-z]+             # Range, spec
    | [0-9]+[a-z]?(?![a-z])    # 3, 2a
    | [0-9]+
    """,
    re.VERBOSE,
)


def snake(name: str) -> str:
    """`discoveryRuleIPRange` is discovery_rule_ip_range, `podCIDRs` pod_cidrs, `http2Port` http2_port."""
    parts = []
    for piece in re.split(r"[^A-Za-z0-9]+", name):
        words = [match.group().lower() for match in _WORDS.finditer(piece)]
        parts.append(_digits_joined(words))
    joined = "_".join(part for part in parts if part)
    if not joined:
        return "field"
    return joined if not joined[0].isdigit() else f"_{joined}"


def _digits_joined(words: list[str]) -> str:
    """A number belongs to the word before it: `http2`, `v3`."""
    joined = ""
    for word in words:
        if joined and not word[0].isdigit():
            joined += "_"
        joined += word
    return joined


def camel(name: str) -> str:
    """What most APIs call a field that is called so here: `rule_ref` is ruleRef."""
    return re.sub(r"(?<=[a-z0-9])_([a-z0-9])", lambda found: found[1].upper(), name)


def field_names(
    wires: Iterable[str], reserved: Iterable[str] = (), kept: Mapping[str, str] = NO_NAMES
) -> dict[str, str]:
    """Each field's name by its name in documents: no two alike, none reserved (those end in an underscore)."""
    wanted, barred = set(wires), frozenset(reserved)
    named = {wire: name for wire, name in kept.items() if wire in wanted and name not in barred}
    taken = barred | set(named.values())
    for wire in sorted(wanted - named.keys(), key=_honesty):
        name = snake(wire)
        named[wire] = free(f"{name}_" if name in barred and f"{name}_" not in taken else name, taken)
        taken |= {named[wire]}
    return named


def _honesty(wire: str) -> tuple[bool, bool, str]:
    """camelCase as APIs write it, then what is called so already, then the rest."""
    name = snake(wire)
    return (wire != camel(name), wire != name, wire)


def free(name: str, taken: Container[str]) -> str:
    """The name, with a number behind it if it is taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def kind_names(
    kinds: Iterable[tuple[str, str]],
    suffix: str = SUFFIX,
    kept: Mapping[tuple[str, str], str] = NO_NAMES,
    reserved: Iterable[str] = (),
) -> dict[tuple[str, str], str]:
    """The names of (group, kind) pairs without the prefix: `infra_cluster`. The group's first label stands for it."""
    wanted = set(kinds)
    named = {pair: name for pair, name in kept.items() if pair in wanted}
    labels = _group_labels({group for group, _ in wanted}, suffix, named)
    taken = {*reserved, *named.values()}
    for group, kind in sorted(wanted - named.keys(), key=lambda pair: (_rank(pair[0], suffix), pair)):
        named[group, kind] = free(f"{labels[group]}_{snake(kind)}", taken)
        taken.add(named[group, kind])
    return named


def _group_labels(groups: set[str], suffix: str, kept: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Where groups share their first label (`apps`, `apps.trimtab.dev`), the first in rank keeps it and each other takes
    as many of its labels as it needs: so a group that comes later renames nothing of ours. Groups whose kinds have names
    that are `kept` come first."""
    named: dict[str, str] = {}
    for (group, kind), name in sorted(kept.items()):
        label = name.removesuffix(f"_{snake(kind)}")
        if label != name and label not in named.values():
            named.setdefault(group, label)
    taken = set(named.values())
    for group in sorted(groups - named.keys(), key=lambda group: _rank(group, suffix)):
        labels = (group or "core").split(".")
        spelled = ["_".join(snake(label) for label in labels[:length]) for length in range(1, len(labels) + 1)]
        named[group] = next((one for one in spelled if one not in taken), free(spelled[-1], taken))
        taken.add(named[group])
    return named


def _rank(group: str, suffix: str) -> tuple[bool, bool, bool, str]:
    """The core group, groups of one label, our own, Kubernetes', then others by name."""
    return ("." in group, not group.endswith(f".{suffix}"), not group.endswith(".k8s.io"), group)


def plural_name(name: str, kind: str, plural: str, taken: Container[str]) -> str:
    """What the data source of many is called: the declared plural, in the words of the kind (`discovery_rules`).

    One that is already the name of a single object (`endpoints`) ends in `_list`."""
    words = snake(kind).split("_")
    before, stem = "".join(words[:-1]), "_".join(words[:-1])
    tail = plural[len(before) :] if plural.startswith(before) and len(plural) > len(before) else ""
    spelled = f"{stem}_{snake(tail)}" if stem and tail else snake(plural)
    group = name[: -len(snake(kind))] if name.endswith(snake(kind)) else f"{name}_"
    wanted = f"{group}{spelled}"
    return free(f"{wanted}_list", taken) if wanted in taken else wanted
