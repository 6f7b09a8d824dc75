"""RBAC policy rules: what one allows, and what one covers of another. As rbac.authorization.k8s.io/v1 means it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.server.auth.wording import quoted_list

MOST_COMPARISONS = 500_000
"""Of rules with each other, for one write: about a second."""


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = msgspec.field(name="apiGroups", default=())
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(name="nonResourceURLs", default=())

    def allows_resource(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule speaks of this resource; `resource_names` is still to be looked at."""
        if not (_has(self.verbs, verb) and _has(self.api_groups, group)):
            return False
        if not subresource:
            return _has(self.resources, resource)
        return _has(self.resources, f"{resource}/{subresource}") or f"*/{subresource}" in self.resources

    def allows_path(self, verb: str, path: str) -> bool:
        return _has(self.verbs, verb) and any(_url_covers(url, path) for url in self.non_resource_urls)

    def compact(self) -> str:
        """As messages about escalation print it."""
        parts = (
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.non_resource_urls),
            ("ResourceNames", self.resource_names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{name}:{quoted_list(values)}" for name, values in parts if values) + "}"


def rules_of(document: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules of a Role or ClusterRole document. Null lists are empty."""
    return tuple(
        msgspec.convert({key: value for key, value in rule.items() if value is not None}, type=Rule)
        for rule in document.get("rules") or ()
    )


class TooMany(Exception):  # noqa: N818 - it reads as what is wrong
    """Rules that are not compared, since nobody else would be answered for long: a few words of one may mean millions."""


def uncovered(held: Iterable[Rule], wanted: Iterable[Rule], *, most: float = MOST_COMPARISONS) -> list[Rule]:
    """The parts of `wanted`, each of one verb, that no rule of `held` covers alone. Raises TooMany."""
    held, wanted = tuple(dict.fromkeys(held)), tuple(dict.fromkeys(wanted))
    _check_amount(len(wanted), held, most)
    wanted = tuple(rule for rule in wanted if not any(_covers(owner, rule) for owner in held))  # as a whole
    _check_amount(sum(map(_amount, wanted)), held, most)
    return [part for rule in wanted for part in breakdown(rule) if not any(_covers(owner, part) for owner in held)]


def breakdown(rule: Rule) -> list[Rule]:
    """Rules of at most one verb, group, resource, name and URL each, that together say the same."""
    names: tuple[tuple[str, ...], ...] = tuple((name,) for name in rule.resource_names) or ((),)
    parts = [
        Rule((verb,), (group,), (resource,), name)
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
        for name in names
    ]
    parts += [Rule((verb,), non_resource_urls=(url,)) for url in rule.non_resource_urls for verb in rule.verbs]
    return parts


def _amount(rule: Rule) -> int:
    """How many `breakdown` makes of it."""
    named = len(rule.api_groups) * len(rule.resources) * (len(rule.resource_names) or 1)
    return len(rule.verbs) * (named + len(rule.non_resource_urls))


def _check_amount(parts: int, held: tuple[Rule, ...], most: float) -> None:
    if parts * (len(held) + 1) > most:
        raise TooMany


def compacted(parts: Iterable[Rule]) -> list[Rule]:
    """Parts that differ in their verb only, put together again."""
    together: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    rest: list[Rule] = []
    for part in parts:
        if part.non_resource_urls:
            rest.append(part)
        else:
            together.setdefault((part.api_groups, part.resources, part.resource_names), []).extend(part.verbs)
    simple = [Rule(tuple(verbs), groups, resources, names) for (groups, resources, names), verbs in together.items()]
    return rest + simple


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or "*" in values


def _url_covers(owner: str, path: str) -> bool:
    return owner == path or (owner.endswith("*") and path.startswith(owner.rstrip("*")))


def _covers(owner: Rule, part: Rule) -> bool:
    """Whether all that `part` says is said by `owner`."""
    return (
        ("*" in owner.verbs or set(part.verbs) <= set(owner.verbs))
        and ("*" in owner.api_groups or set(part.api_groups) <= set(owner.api_groups))
        and all(_resource_covers(owner.resources, resource) for resource in part.resources)
        and (
            not owner.resource_names
            or (bool(part.resource_names) and set(part.resource_names) <= set(owner.resource_names))
        )
        and all(any(_url_covers(url, path) for url in owner.non_resource_urls) for path in part.non_resource_urls)
    )


def _resource_covers(owned: tuple[str, ...], resource: str) -> bool:
    if _has(owned, resource):
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in owned
