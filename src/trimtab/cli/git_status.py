"""`trimtab git status`: what a sync is at, what is in its way, what its last runs did, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trimtab.cli.access import Access, session
from trimtab.cli.codes import FAILED, OK, escaped, run
from trimtab.cli.git_find import called, stands, status_of, sync_of
from trimtab.cli.git_next import next_step
from trimtab.runtime.runs import Run
from trimtab.systems.gitops.kinds import DocumentProblem, GitSync
from trimtab.systems.gitops.kinds.fields import SUSPENDED_BY

WAYS = {(True, True): "both ways", (True, False): "to the system", (False, True): "to Git", (False, False): "no way"}
MOST_NAMES, MOST_PROBLEMS, MOST_RUNS = 10, 20, 5

Line = tuple[str, str]
"""A word, and what is said of it; "" goes on with the one above."""


def status(access: Access, name: str) -> int:
    return run(_status(access, name))


async def _status(access: Access, name: str) -> int:
    async with session(access) as server:
        sync = await sync_of(server, name)
    print("\n".join(lines(sync)))
    return OK if stands(sync)[0] else FAILED


def lines(sync: GitSync) -> list[str]:
    """All that there is to say."""
    spec = sync.spec
    place = f"{spec.repository} {spec.revision}{f' {spec.path}' if spec.path else ''}"
    head = [f"{called(sync)}  {place}, {WAYS[spec.git_to_system, spec.system_to_git]}", f"  {_plain(stands(sync)[1])}"]
    told = [*_pause(sync), *_revisions(sync), *_waiting(sync), *_problems(sync), *_hooks(sync), *_runs(sync)]
    if step := next_step(sync):
        told.insert(0, ("next", step))
    width = max(len(word) for word, _ in told)
    return [escaped(line) for line in (*head, *(f"  {word:{width}s}  {words}" for word, words in told))]


def _pause(sync: GitSync) -> Iterator[Line]:
    reason = (sync.metadata.annotations or {}).get(SUSPENDED_BY, "")
    if sync.spec.suspend and reason:
        yield "suspended", _plain(reason)


def _revisions(sync: GitSync) -> Iterator[Line]:
    status = status_of(sync)
    yield "applied", status.last_applied_revision or "-"
    if status.last_attempted_revision and status.last_attempted_revision != status.last_applied_revision:
        yield "looked at", status.last_attempted_revision
    if status.last_pushed_revision:
        yield "pushed", status.last_pushed_revision
    if status.inventory:
        yield "objects", str(status.inventory.count)


def _waiting(sync: GitSync) -> Iterator[Line]:
    status = status_of(sync)
    if held := status.held:
        count = "1 deletion" if held.count == 1 else f"{held.count} deletions"
        yield (
            "held",
            f"{count} that {held.revision[:12]} would make ({held.reason}{f', plan {held.plan}' if held.plan else ''})",
        )
        yield from (("", name) for name in held.deletes[:MOST_NAMES])
        yield from _more(held.count, MOST_NAMES)
    if status.conflicts:
        yield "conflicts", str(status.conflicts)


def _problems(sync: GitSync) -> Iterator[Line]:
    status = status_of(sync)
    found = (status.documents or ())[:MOST_PROBLEMS]
    rows = [(_where(problem), problem.reason, _plain(problem.message)) for problem in found]
    yield from _block("documents", _aligned(rows))
    yield from _more(status.problems or 0, MOST_PROBLEMS)


def _hooks(sync: GitSync) -> Iterator[Line]:
    hooks = status_of(sync).webhooks or ()
    yield from _block("webhooks", _aligned([(hook.name, hook.path) for hook in hooks]))


def _runs(sync: GitSync) -> Iterator[Line]:
    """The newest first; what a run says beyond the condition is below it."""
    history = (status_of(sync).history or ())[:MOST_RUNS]
    rows = [(run.started, run.outcome, run.trigger, run.reason or "", _counted(run)) for run in history]
    said = stands(sync)[1]
    told: list[str] = []
    for each, row in zip(history, _aligned(rows), strict=True):
        told.append(row)
        if each.outcome == "Failed" and each.message and each.message not in said:
            told.append(f"  {_plain(each.message)}")
    yield from _block("runs", told)


def _counted(run: Run) -> str:
    return ", ".join(f"{count} {what}" for what, count in (run.counts or {}).items())


def _where(problem: DocumentProblem) -> str:
    return f"{problem.path}:{problem.line}" if problem.line else problem.path


def _block(word: str, rows: Iterable[str]) -> Iterator[Line]:
    yield from ((word if number == 0 else "", row) for number, row in enumerate(rows))


def _more(count: int, shown: int) -> Iterator[Line]:
    if count > shown:
        yield "", f"and {count - shown} more"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _plain(words: str) -> str:
    """On one line, whatever a server put into it."""
    return " ".join(words.split())
