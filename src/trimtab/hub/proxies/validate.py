"""Refuses what a kind does not allow, with everything that is wrong at once: its schema and rules, sharing, paths of files.

Behind the server most of this was checked before; whoever applies in this process is checked here, and nothing is pruned in
silence: a field that the kind does not know is a mistake.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from trimtab.hub import sharing
from trimtab.hub.artifacts.digests import FilePaths, files_in
from trimtab.hub.artifacts.paths import problem
from trimtab.hub.contract import ApplyOptions, Hub, Refused
from trimtab.hub.proxies.passing import Passing
from trimtab.hub.references import has_sharing
from trimtab.model.kind import Kind
from trimtab.model.schema.shape import copied

Problems = list[tuple[str, str]]


class Validate(Passing):
    """Of one kind. `files`: where it names files. `rules`: whether its CEL rules are checked here, too. `served`: whoever
    applies gives the document away, so it is walked itself and not a copy."""

    def __init__(
        self,
        inner: Any,
        kind: Kind,
        *,
        files: FilePaths = FilePaths(),  # noqa: B008
        rules: bool = False,
        served: bool = False,
    ) -> None:
        super().__init__(inner)
        self._kind = kind
        self._files = files
        self._rules = rules
        self._served = served

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        problems = wrong(
            hub, self._kind, files=self._files, rules=self._rules, project=options.project, copy=not self._served
        )
        if problems:
            raise Refused(problems)
        return await super().apply(hub, options)


def wrong(
    hub: Hub,
    kind: Kind,
    *,
    files: FilePaths = FilePaths(),  # noqa: B008
    rules: bool = False,
    project: str = "",
    copy: bool = True,
) -> Problems:
    """All that is wrong with a document: (field, what is wrong and what would be right). Without a `copy` the document is
    pruned and defaulted."""
    found = _named(hub, kind, project)
    if found:
        return found
    walked = copied(hub) if copy else hub
    walk = kind.schema.walk(walked)
    found = [(error.path, error.body) for error in walk.errors]
    found += [(path, f"a {kind.kind} has no such field") for path in walk.unknown]
    if rules and not walk.errors:
        found += [(error.path, error.body) for error in kind.schema.rules(walked, None)]
    if has_sharing(kind.schema.document):
        metadata, spec = hub["metadata"], hub.get("spec")
        owner = str(metadata.get("project") or metadata.get("namespace") or project)
        given = spec.get("sharing") if isinstance(spec, dict) else None
        told = {path for path, _ in found}
        found += [(path, why) for path, why in sharing.problems(given, owner) if path not in told]
    return found + _paths(hub, files)


def _named(hub: Hub, kind: Kind, project: str) -> Problems:
    """What a document calls itself. Nothing else is looked at when that is wrong."""
    found: Problems = []
    for word, right in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if hub.get(word) not in (None, right):
            found.append((word, f"must be {right}, not {hub[word]!r}"))
    metadata = hub.get("metadata")
    if not isinstance(metadata, dict):
        return [*found, ("metadata", "must be an object with a name")]
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        found.append(("metadata.name", "must be the name of the resource"))
    if kind.namespaced and not (metadata.get("project") or metadata.get("namespace") or project):
        found.append(("metadata.project", "must name a project"))
    return found


def _paths(hub: Hub, files: FilePaths) -> Problems:
    if not files:
        return []
    names = [file["name"] for file in files_in(hub, files)]
    found = [("spec", f'"{name}" names no file: {why}') for name in dict.fromkeys(names) if (why := problem(name))]
    if len(set(names)) == len(names):
        return found
    twice = [name for name, count in Counter(names).items() if count > 1]
    return found + [("spec", f'the file "{name}" is named twice: each is named once') for name in twice]
