"""An audit policy (audit.k8s.io/v1 Policy): which requests are told of, and how much. Pure.

The first rule that fits decides. What no rule fits is not told of. A policy with a mistake, or with a field that we do not
know, is refused: a misspelt condition would tell more, or less, than its writer meant.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from trimtab.model.names import dns_subdomain_problems
from trimtab.server.auth.rbac import Attributes

API_VERSION = "audit.k8s.io/v1"
STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
MAX_POLICY = 1 << 20

CREDENTIALS = frozenset(
    {
        ("", "serviceaccounts/token"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authentication.k8s.io", "tokenrequests"),
    }
)
"""What has bearer tokens in its bodies: these are left out unless the rule names the resource itself."""


class Level(enum.IntEnum):
    """How much is told. Each has what those before it have."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3

    @property
    def word(self) -> str:
        return _WORDS[self]


_LEVELS = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
_WORDS = {level: word for word, level in _LEVELS.items()}


class PolicyError(Exception):
    """A policy that cannot be used. The message names the file and the fields."""


class Verdict(msgspec.Struct, frozen=True):
    """What a policy says of one request. `bodies` may be told less of than `level` says."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False
    bodies: Level = Level.NONE


class GroupResources(msgspec.Struct, frozen=True):
    group: str = ""
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def fits(self, asked: Attributes) -> bool:
        if self.group != asked.group:
            return False
        if not self.resources:
            return True
        if self.names and asked.name not in self.names:
            return False
        return any(_resource_fits(resource, asked) for resource in self.resources)

    def means(self, group: str, resource: str) -> bool:
        """Whether it names this resource itself, not as one of all."""
        return self.group == group and resource in self.resources


class Rule(msgspec.Struct, frozen=True):
    level: Level
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False

    def fits(self, asked: Attributes) -> bool:
        if self.users and asked.user.name not in self.users:
            return False
        if self.groups and not any(group in self.groups for group in asked.user.groups):
            return False
        if self.verbs and asked.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._fits_resource(asked)
        if self.urls:
            return not asked.resource and any(_url_fits(url, asked.path) for url in self.urls)
        return True

    def _fits_resource(self, asked: Attributes) -> bool:
        if not asked.resource or (self.namespaces and asked.namespace not in self.namespaces):
            return False
        return not self.resources or any(one.fits(asked) for one in self.resources)

    def verdict(self, asked: Attributes) -> Verdict:
        combined = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
        secret = (asked.group, combined) in CREDENTIALS
        named = secret and any(one.means(asked.group, combined) for one in self.resources)
        bodies = min(self.level, Level.METADATA) if secret and not named else self.level
        return Verdict(self.level, self.omit_stages, self.omit_managed_fields, bodies)


class Policy(msgspec.Struct, frozen=True):
    rules: tuple[Rule, ...]

    def judge(self, asked: Attributes) -> Verdict:
        """How much to tell of a request. `asked` has a path, and no resource, for what is not a resource."""
        for rule in self.rules:
            if rule.fits(asked):
                return rule.verdict(asked)
        return _NOTHING


_NOTHING = Verdict(Level.NONE)


def _resource_fits(wanted: str, asked: Attributes) -> bool:
    combined = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    if wanted in ("*", combined):
        return True
    if asked.subresource and wanted == f"*/{asked.subresource}":
        return True
    return wanted == f"{asked.resource}/*"


def _url_fits(wanted: str, path: str) -> bool:
    return wanted in ("*", path) or (wanted.endswith("*") and path.startswith(wanted.rstrip("*")))


def load_policy(path: Path) -> Policy:
    """The policy in a file, JSON or YAML. PolicyError, which names the file and each field that is wrong."""
    from trimtab.model.yaml import YamlError, load

    try:
        with path.open("rb") as file:
            raw = file.read(MAX_POLICY + 1)
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from None
    if len(raw) > MAX_POLICY:
        raise PolicyError(f"{path}: an audit policy has at most {MAX_POLICY} bytes")
    try:
        document = load(raw.decode())
    except (YamlError, UnicodeDecodeError, RecursionError) as error:
        raise PolicyError(f"{path}: {error}") from None
    try:
        return policy_of(document)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None


def policy_of(document: Any) -> Policy:
    """The policy of a document. PolicyError names every field that is wrong."""
    found = _Reading()
    policy = found.policy(document)
    if found.problems:
        raise PolicyError("; ".join(found.problems[:20]))
    return policy


class _Reading:
    """Takes a document apart, and notes all that is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def policy(self, document: Any) -> Policy:
        known = ("apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields")
        top = self._object("", document, known)
        if not isinstance(document, dict):
            return Policy(())
        if (top.get("apiVersion"), top.get("kind")) != (API_VERSION, "Policy"):
            given = f"{top.get('apiVersion')}, {top.get('kind')}"
            raise PolicyError(f"apiVersion and kind: must be {API_VERSION}, Policy; this is {given}")
        stages = self._stages("omitStages", top.get("omitStages"))
        omits = self._flag("omitManagedFields", top.get("omitManagedFields")) or False
        rules = self._list("rules", top.get("rules"))
        if not rules:
            self.problems.append("rules: Required value: a policy without rules tells of nothing")
        return Policy(tuple(self._rule(f"rules[{i}]", rule, stages, omits) for i, rule in enumerate(rules)))

    def _rule(self, path: str, given: Any, stages: frozenset[str], omits: bool) -> Rule:
        rule = self._object(path, given, _RULE_FIELDS)
        resources = self._list(f"{path}.resources", rule.get("resources"))
        urls = self._words(f"{path}.nonResourceURLs", rule.get("nonResourceURLs"))
        namespaces = self._words(f"{path}.namespaces", rule.get("namespaces"))
        self._check_urls(f"{path}.nonResourceURLs", urls)
        if urls and (resources or namespaces):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            self.problems.append(f"{path}.nonResourceURLs: Invalid value: {_shown(urls)}: {why}")
        own = self._flag(f"{path}.omitManagedFields", rule.get("omitManagedFields"))
        return Rule(
            level=self._level(f"{path}.level", rule.get("level")),
            users=self._words(f"{path}.users", rule.get("users")),
            groups=self._words(f"{path}.userGroups", rule.get("userGroups")),
            verbs=self._words(f"{path}.verbs", rule.get("verbs")),
            resources=tuple(self._resources(f"{path}.resources[{i}]", one) for i, one in enumerate(resources)),
            namespaces=namespaces,
            urls=urls,
            omit_stages=stages | self._stages(f"{path}.omitStages", rule.get("omitStages")),
            omit_managed_fields=omits if own is None else own,
        )

    def _resources(self, path: str, given: Any) -> GroupResources:
        one = self._object(path, given, ("group", "resources", "resourceNames"))
        group = one.get("group") or ""
        if not isinstance(group, str):
            self.problems.append(f"{path}.group: Invalid value: {_shown(group)}: must be a string")
            group = ""
        elif group:
            self.problems += [f'{path}.group: Invalid value: "{group}": {p}' for p in dns_subdomain_problems(group)]
        resources = self._words(f"{path}.resources", one.get("resources"))
        names = self._words(f"{path}.resourceNames", one.get("resourceNames"))
        if names and not resources:
            why = "using resourceNames requires at least one resource"
            self.problems.append(f"{path}.resourceNames: Invalid value: {_shown(names)}: {why}")
        return GroupResources(group, resources, names)

    def _level(self, path: str, given: Any) -> Level:
        if isinstance(given, str) and given in _LEVELS:
            return _LEVELS[given]
        if given is None or given == "":
            self.problems.append(f"{path}: Required value")
        else:
            supported = ", ".join(f'"{word}"' for word in _LEVELS)
            self.problems.append(f"{path}: Unsupported value: {_shown(given)}: supported values: {supported}")
        return Level.NONE

    def _stages(self, path: str, given: Any) -> frozenset[str]:
        stages = self._words(path, given)
        for index, stage in enumerate(stages):
            if stage not in STAGES:
                allowed = ",".join(STAGES)
                self.problems.append(f'{path}[{index}]: Invalid value: "{stage}": allowed stages are {allowed}')
        return frozenset(stages)

    def _check_urls(self, path: str, urls: Iterable[str]) -> None:
        for index, url in enumerate(urls):
            if url == "*":
                continue
            if not url.startswith("/"):
                why = "non-resource URL rules must begin with a '/' character"
                self.problems.append(f'{path}[{index}]: Invalid value: "{url}": {why}')
            if "*" in url[:-1]:
                why = "non-resource URL wildcards '*' must be the final character of the rule"
                self.problems.append(f'{path}[{index}]: Invalid value: "{url}": {why}')

    def _object(self, path: str, given: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(given, dict):
            self.problems.append(f"{path or 'the policy'}: must be an object, not {_shown(given)}")
            return {}
        unknown = [str(name) for name in given if name not in known]
        self.problems += [f'unknown field "{path}{"." if path else ""}{name}"' for name in unknown]
        return given

    def _list(self, path: str, given: Any) -> list[Any]:
        if given is None:
            return []
        if not isinstance(given, list):
            self.problems.append(f"{path}: must be a list, not {_shown(given)}")
            return []
        return given

    def _words(self, path: str, given: Any) -> tuple[str, ...]:
        words = self._list(path, given)
        for index, word in enumerate(words):
            if not isinstance(word, str):
                self.problems.append(f"{path}[{index}]: Invalid value: {_shown(word)}: must be a string")
        return tuple(word for word in words if isinstance(word, str))

    def _flag(self, path: str, given: Any) -> bool | None:
        if given is not None and not isinstance(given, bool):
            self.problems.append(f"{path}: Invalid value: {_shown(given)}: must be true or false")
            return None
        return given


_RULE_FIELDS = (
    "level",
    "users",
    "userGroups",
    "verbs",
    "resources",
    "namespaces",
    "nonResourceURLs",
    "omitStages",
    "omitManagedFields",
)


def _shown(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()[:200]
    except (TypeError, ValueError):
        return type(value).__name__
