"""`trimtab images discover`: ask for a discovery by a DiscoveryJob, and follow it to its end.

The job's status tells all, so a lost connection loses nothing and another terminal may follow the same job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.bar import Bar
from trimtab.cli.codes import FAILED, OK, TIMED_OUT, Problem, complain, run
from trimtab.cli.tables import Printer, shown
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing, Query
from trimtab.model.clock import parse_time
from trimtab.model.conditions import Condition, get_condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.images.kinds import (
    Diff,
    DiscoveryJob,
    DiscoveryJobSpec,
    DiscoveryJobStatus,
    ImageCounts,
    ImageError,
    ListingCounts,
    Registry,
)
from trimtab.systems.images.runs.states import COMPLETED, PROGRESSING, State, state_of

if TYPE_CHECKING:
    from trimtab.systems.images.kinds.job import Until

SHOWN = 10
"""Changes of a run."""
ALWAYS = ("repositories", "tags", "discovered")
"""Counts that are shown also when they are 0."""


def discover(access: Access, registry: str, until: str, *, wait: bool, timeout: float) -> int:
    """`until` is one of the words of the job's spec."""
    return run(_discover(access, registry, cast("Until", until), wait, timeout))


async def _discover(access: Access, registry: str, until: Until, wait: bool, timeout: float) -> int:
    async with session(access) as server:
        await server.client.get(Registry, registry, server.namespace)
        metadata = ObjectMeta(generate_name=f"{registry}-", namespace=server.namespace)
        job = await server.client.create(
            DiscoveryJob(metadata=metadata, spec=DiscoveryJobSpec(registry=registry, until=until))
        )
        if not wait:
            print(f"discoveryjob/{job.name}: a discovery of registry {registry} was asked for")
            return OK
        seen = _Seen(job)
        try:
            async with asyncio.timeout(timeout):
                await _followed(server, seen)
        except TimeoutError:
            complain(f"discoveryjob/{job.name} did not end within {timeout:g} s{_meanwhile(seen.job)}")
            return TIMED_OUT
    return _told(seen.job)


class _Seen:
    """The job as it was last seen."""

    def __init__(self, job: DiscoveryJob) -> None:
        self.job = job

    @property
    def status(self) -> DiscoveryJobStatus:
        return self.job.status or DiscoveryJobStatus()

    @property
    def completed(self) -> Condition | None:
        """How it ended, if it has."""
        return get_condition(self.status.conditions, COMPLETED) if state_of(self.status) is State.ENDED else None


async def _followed(server: Session, seen: _Seen) -> None:
    """Until the job has ended."""
    name = seen.job.name
    query = Query(namespace=server.namespace, fields=f"metadata.name={name}")
    following = follow(server.client, DiscoveryJob, query, patience=0)
    with Bar(f"discoveryjob/{name}") as bar:
        try:
            async for told in following:
                seen.job = _job(told, name)
                if seen.completed is not None:
                    return
                _show_progress(bar, seen.status)
        finally:
            await following.aclose()
    raise Problem(f"discoveryjob/{name} cannot be followed any more")


def _job(told: object, name: str) -> DiscoveryJob:
    found = told.items[0] if isinstance(told, Listing) and told.items else getattr(told, "object", None)
    if found is None or getattr(told, "type", None) is EventType.DELETED:
        raise Problem(f"discoveryjob/{name} was deleted meanwhile, and its discovery ends with it")
    if not isinstance(found, DiscoveryJob):
        raise Problem(f"discoveryjob/{name} is of another shape than this program knows: are both of one version?")
    return found


def _show_progress(bar: Bar, status: DiscoveryJobStatus) -> None:
    progressing = get_condition(status.conditions, PROGRESSING)
    stage = progressing.reason if progressing is not None else ""
    if status.progress:
        note = ", ".join(text for text in (stage, status.progress.note or "") if text)
        bar.show(status.progress.done, status.progress.total or None, note)
    elif stage:
        bar.show(0, None, stage)


def _meanwhile(job: DiscoveryJob) -> str:
    if job.status and job.status.run_id:
        return f"; it goes on without us: `trimtab get discoveryjob {job.name} -w` shows how far it is"
    return (
        ", for nobody has taken it: do controllers run the system images? `trimtab up` does, and so does"
        " `trimtab controllers`"
    )


def _told(job: DiscoveryJob) -> int:
    seen = _Seen(job)
    status, ended = seen.status, seen.completed
    if ended is None:
        raise Problem(f"discoveryjob/{job.name} has not ended")
    took = ""
    if status.start_time and status.completion_time:
        took = f" in {(parse_time(status.completion_time) - parse_time(status.start_time)).total_seconds():g} s"
    said = f": {shown(ended.message)}" if ended.message else ""
    print(f"discoveryjob/{job.name}: {ended.reason}{took}{said}")
    if status.blocked_by:
        print(f"discoveryjob/{status.blocked_by} has the registry: try again when it has ended")
    _show_counts(status)
    if status.images and status.images.held:
        print(f"{status.images.held} were not removed, for they are many: `trimtab images release {job.spec.registry}`")
    if status.diff:
        _show_diff(job.name, status.diff)
    if status.errors:
        _show_errors(status.errors, status.error_count or 0)
    return OK if ended.status == "True" else FAILED


def _show_counts(status: DiscoveryJobStatus) -> None:
    counts: dict[str, int] = {}
    if status.listing:
        counts |= _counts(status.listing, "found", "failed")
    if status.images:
        counts |= _counts(status.images)
    rows = [[name, str(count)] for name, count in counts.items() if count or name in ALWAYS]
    if rows:
        Printer(("what", "count")).add(rows)


def _counts(counts: ListingCounts | ImageCounts, *without: str) -> dict[str, int]:
    return {name: count for name, count in msgspec.structs.asdict(counts).items() if name not in without}


def _show_diff(name: str, diff: Diff) -> None:
    total = diff.added + diff.moved + diff.removed
    if not total:
        print("nothing changed since the listing before")
        return
    print(f"tags: {diff.added} added, {diff.moved} moved, {diff.removed} removed")
    listed = diff.changes[:SHOWN]
    if listed:
        rows = [
            [each.change, shown(f"{each.repository}:{each.tag}"), _short(each.digest or ""), _short(each.before or "")]
            for each in listed
        ]
        Printer(("change", "tag", "digest", "before")).add(rows)
    if total > len(listed):
        print(
            f"and {total - len(listed)} more: `trimtab get discoveryjob {name} -o yaml` has {len(diff.changes)} of them"
        )


def _show_errors(errors: Sequence[ImageError], count: int) -> None:
    rows = [[shown(_where(error)), shown(error.reason), shown(error.message)] for error in errors]
    Printer(("failed", "reason", "message")).add(rows)
    if count > len(errors):
        print(f"and {count - len(errors)} more")


def _where(error: ImageError) -> str:
    if not error.repository:
        return error.image or "the registry"
    return f"{error.repository}:{error.tag}" if error.tag else error.repository


def _short(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}:{value[:12]}" if value else digest
