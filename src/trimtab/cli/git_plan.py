"""`trimtab git plan` and `diff`: what a sync would do with a revision or with a folder, and what that changes."""

from __future__ import annotations

import contextlib
import difflib
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.blobs import Place, opened
from trimtab.cli.codes import FAILED, OK, USAGE, Problem, escaped, run
from trimtab.cli.git_find import called, sync_of
from trimtab.cli.tables import coloured
from trimtab.client.api import ApiClient
from trimtab.model.clock import SystemClock
from trimtab.model.yaml import dump
from trimtab.runtime.credentials import CredentialError, Credentials

if TYPE_CHECKING:
    from trimtab.systems.gitops.knowing import Knowledge
    from trimtab.systems.gitops.parsing import Identity
    from trimtab.systems.gitops.planning import Plan
    from trimtab.systems.gitops.previewing import Previewer

Document = dict[str, Any]

CHANGES = 2
"""The exit code for a plan that is not empty, where it was asked for."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`revision`: of the repository; `folder`: of this machine, in its place."""

    revision: str = ""
    folder: Path | None = None
    exit_code: bool = False
    unchanged: bool = False
    blobs: Place = Place()


def plan(access: Access, name: str, options: Options) -> int:
    return run(_show(access, name, options, difference=False))


def diff(access: Access, name: str, options: Options) -> int:
    return run(_show(access, name, options, difference=True))


async def _show(access: Access, name: str, options: Options, *, difference: bool) -> int:
    from trimtab.cli.kinds import scheme
    from trimtab.runtime.git.errors import RemoteError
    from trimtab.systems.gitops.knowing import Knowledge
    from trimtab.systems.gitops.planning import told
    from trimtab.systems.gitops.running import Stop

    if options.folder is not None and options.revision:
        raise Problem("say --folder or --revision, not both", USAGE)
    if options.folder is not None and not options.folder.is_dir():
        raise Problem(f"{options.folder} is no folder", USAGE)
    async with session(access) as server, _previewer(access, server, options.blobs) as previewer:
        sync = await sync_of(server, name)
        try:
            if options.folder is not None:
                _, found = await previewer.folder(sync, options.folder)
            else:
                _, found = await previewer.revision(sync, options.revision)
        except Stop as stop:
            for problem in stop.verdict.documents:
                where = f"{problem.path}:{problem.line}" if problem.line else problem.path
                print(escaped(f"{where}: {problem.message}"))
            raise Problem(f"{called(sync)}: {stop.verdict.message}") from None
        except (RemoteError, CredentialError, ValueError) as error:
            raise Problem(str(error)) from None
    if difference:
        _print(differences(found, Knowledge(scheme())), colours=coloured())
    else:
        print(told(found, unchanged=options.unchanged, show=escaped), end="")
    return code_of(found, exit_code=options.exit_code)


def code_of(plan: Plan, *, exit_code: bool) -> int:
    """What waits for a person comes first: that there are changes, too, is not the news then."""
    if plan.guards or plan.conflicts or plan.refused:
        return FAILED
    return CHANGES if exit_code and not plan.is_noop else OK


@contextlib.asynccontextmanager
async def _previewer(access: Access, server: Session, blobs: Place) -> AsyncIterator[Previewer]:
    from trimtab.cli.kinds import scheme
    from trimtab.storage.scratch import Scratch
    from trimtab.systems.gitops.previewing import Previewer

    clock = SystemClock()
    client = ApiClient(server.transport, scheme(), namespace=server.namespace)
    with tempfile.TemporaryDirectory(prefix="trimtab-git-") as place:
        async with opened(access, blobs) as found, Credentials(client) as credentials:
            yield Previewer(client, clock, found, Scratch(Path(place), 4 << 30), credentials)


def differences(plan: Plan, knowledge: Knowledge) -> Iterator[str]:
    """Unified diffs of objects, as they are and as they would be. Secrets are only named, and sensitive fields, too."""
    from trimtab.systems.gitops.exporting import hidden
    from trimtab.systems.gitops.merging import impose, normal

    for step in (*plan.create, *plan.update, *plan.adopt, *plan.prune):
        before = normal(step.live) if step.live is not None else None
        after = step.document
        if before is not None and step.document is not None:
            after = impose(None, step.document, before).system
        yield from _unified(str(step.identity), step.identity, before, after, knowledge)
    for file in plan.uploads:
        yield f"~ {file.path}, a file of {file.identity}, {file.reason}"
    for edit in plan.write_back:
        written = hidden(edit, knowledge).document
        yield from _unified(f"{edit.path} in Git", edit.identity, edit.before, written, knowledge)
        yield from (f"~ {name} beside {edit.path} in Git, a file of {edit.identity}" for name in edit.files)


def _unified(
    name: str, identity: Identity, before: Document | None, after: Document | None, knowledge: Knowledge
) -> Iterator[str]:
    from trimtab.systems.gitops.hiding import for_people

    if (identity.group, identity.kind) == ("", "Secret"):
        yield f"~ {name} (a Secret is not shown)"
        return
    whole = after or before or {}
    paths = knowledge.sensitive(str(whole.get("apiVersion", "")), str(whole.get("kind", "")))
    old, new = (dump(side).splitlines() if side is not None else [] for side in for_people(before, after, paths))
    yield from difflib.unified_diff(old, new, f"{name} as it is", f"{name} as it would be", lineterm="", n=3)


def _print(lines: Iterator[str], *, colours: bool) -> None:
    codes = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
    for line in map(escaped, lines):
        code = codes.get(line[:1], "") if colours else ""
        print(f"{code}{line}\x1b[0m" if code else line)
