"""`trimtab images preview`: what a Registry would select, listed from this machine. Nothing is written.

Only names are read, of repositories and of tags: what a tag points to, and for which platforms, a discovery finds out.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.cli.access import Access, session
from trimtab.cli.bar import Bar
from trimtab.cli.codes import FAILED, OK, USAGE, Problem, run
from trimtab.cli.images_manifest import registry_in
from trimtab.cli.tables import Printer, shown
from trimtab.runtime.credentials import Credentials
from trimtab.systems.images.filters import Filters, InvalidFilter
from trimtab.systems.images.kinds import Filter, Registry
from trimtab.systems.images.reach import client_of, filters_of, named_of, repositories_of
from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.errors import RegistryError
from trimtab.systems.images.registry.outcomes import FilterFailed

AT_ONCE = 8
"""Repositories."""
ERRORS = 20
"""Filter errors that are kept of each repository, and shown of all."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`tags` of each repository are named."""

    file: Path | None = None
    tags: int = 3
    json: bool = False


class TagError(msgspec.Struct, frozen=True):
    tag: str
    message: str


class Previewed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of the tags of one repository. `left_out` counts them by the condition that said no."""

    repository: str
    tags: int = 0
    selected: int = 0
    left_out: dict[str, int] = {}
    failed: int = 0
    first_selected: tuple[str, ...] = ()
    filter_errors: tuple[TagError, ...] = ()
    error: str = ""


class Preview(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    registry: str
    uri: str
    repositories: tuple[Previewed, ...]
    missing: tuple[str, ...] = ()
    """Named in the Registry, and not in its catalogue."""

    @property
    def tags(self) -> int:
        return sum(each.tags for each in self.repositories)

    @property
    def selected(self) -> int:
        return sum(each.selected for each in self.repositories)


def preview(access: Access, name: str, options: Options) -> int:
    return run(_preview(access, name, options))


async def _preview(access: Access, name: str, options: Options) -> int:
    async with session(access) as server, Connections() as connections:
        if options.file is not None:
            registry = registry_in(options.file, name, server.namespace)
        elif name:
            registry = await server.client.get(Registry, name, server.namespace)
        else:
            raise Problem("name a Registry, or a file with one by -f", USAGE)
        judge = _judge(registry)
        try:
            client = await client_of(registry, connections, Credentials(server.client, cached=True))
            previewed = await _listed(registry, client, judge, options.tags)
        except RegistryError as error:
            raise Problem(f"registry/{registry.name}: {error}") from None
    if options.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(previewed), indent=2) + b"\n")
        sys.stdout.buffer.flush()
    else:
        _show(previewed)
    failed = [each for each in previewed.repositories if each.error]
    return FAILED if failed and len(failed) == len(previewed.repositories) else OK


async def _listed(registry: Registry, client: RegistryClient, judge: _Judge, tags: int) -> Preview:
    with Bar(f"registry/{registry.name}") as bar:
        bar.show(0, None, "repositories")
        named = await repositories_of(registry, client)
        repositories = [each async for each in client.repositories()] if named is None else named
        turn, done, found = asyncio.Semaphore(AT_ONCE), 0, dict[str, Previewed]()

        async def one(repository: str) -> None:
            nonlocal done
            async with turn:
                found[repository] = await _of_repository(client, repository, judge, tags)
            done += 1
            bar.show(done, len(repositories), "tags")

        failures: tuple[BaseException, ...] = ()
        try:
            async with asyncio.TaskGroup() as tasks:
                for repository in repositories:
                    tasks.create_task(one(repository))
        except* RegistryError as group:
            failures = group.exceptions
        if failures:
            raise failures[0]
    wanted = named_of(registry, client.registry)
    return Preview(
        registry=registry.name,
        uri=registry.spec.uri,
        repositories=tuple(found[repository] for repository in sorted(found)),
        missing=tuple(repository for repository in wanted if repository not in found),
    )


async def _of_repository(client: RegistryClient, repository: str, judge: _Judge, most: int) -> Previewed:
    """One that cannot be read is told of, and hides no other. What is wrong with the whole registry is raised."""
    selected, left_out, errors = list[str](), Counter[str](), list[TagError]()
    count = 0
    try:
        async for tag in client.tags(repository):
            count += 1
            try:
                why = judge.left_out_by(repository, tag)
            except FilterFailed as error:
                errors.append(TagError(tag, str(error)))
                continue
            if why:
                left_out[why] += 1
                continue
            selected.append(tag)
    except RegistryError as error:
        if error.of_registry:
            raise
        return Previewed(repository=repository, error=str(error))
    return Previewed(
        repository=repository,
        tags=count,
        selected=len(selected),
        left_out=dict(sorted(left_out.items())),
        failed=len(errors),
        first_selected=tuple(sorted(selected)[:most]),  # registries have an order of their own
        filter_errors=tuple(errors[:ERRORS]),
    )


class _Judge:
    """All filters as a discovery reads them; and each alone, to say which of them left a tag out."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._all = Filters.compile(filters)
        self._each = [(each, Filters.compile((each,)), _alone(each)) for each in filters]

    def left_out_by(self, repository: str, tag: str) -> str:
        """Empty when it is selected. FilterFailed."""
        if self._all(repository, tag):
            return ""
        for written, together, alone in self._each:
            if _holds(together, repository, tag):
                continue
            if written.match_operator == "And":
                return next(name for name, condition in alone if not _holds(condition, repository, tag))
            return " | ".join(name for name, _ in alone)
        raise FilterFailed("no filter says why it is left out")


def _alone(written: Filter) -> list[tuple[str, Filters]]:
    return [
        (each.name, Filters.compile((written.replace(match_conditions=(each,)),))) for each in written.match_conditions
    ]


def _holds(filters: Filters, repository: str, tag: str) -> bool:
    """What cannot be told did not leave the tag out: another one decided."""
    try:
        return filters(repository, tag)
    except FilterFailed:
        return True


def _judge(registry: Registry) -> _Judge:
    try:
        return _Judge(filters_of(registry))
    except InvalidFilter as error:
        raise Problem(f"registry/{registry.name}: {error}") from None


def _show(preview: Preview) -> None:
    rows = []
    for each in preview.repositories:
        left = ", ".join(f"{count} {name}" for name, count in each.left_out.items())
        more = (
            f" and {each.selected - len(each.first_selected)} more" if each.selected > len(each.first_selected) else ""
        )
        first = f"{', '.join(each.first_selected)}{more}" if each.first_selected else ""
        counts = ("-", "-", "-") if each.error else (str(each.tags), str(each.selected), str(each.failed))
        rows.append([shown(each.repository), *counts, shown(left), shown(first)])
    if rows:
        Printer(("repository", "tags", "selected", "errors", "left out by", "selected tags")).add(rows)
    print(f"{preview.selected} of {preview.tags} tags in {len(preview.repositories)} repositories would be discovered")
    for repository in preview.missing:
        print(f"{shown(repository)} is named and not in the catalogue")
    for each in preview.repositories:
        if each.error:
            print(f"not read: {shown(each.error)}")
    errors = [(each.repository, error) for each in preview.repositories for error in each.filter_errors]
    for repository, error in errors[:ERRORS]:
        print(f"{shown(repository)}:{shown(error.tag)} would be skipped: {shown(error.message)}")
    if (total := sum(each.failed for each in preview.repositories)) > len(errors[:ERRORS]):
        print(f"and {total - len(errors[:ERRORS])} more would be skipped")
