"""`trimtab git sync`: ask for a run, and watch it to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from trimtab.cli.access import Access, Session, session
from trimtab.cli.annotations import annotate
from trimtab.cli.bar import Bar
from trimtab.cli.codes import FAILED, OK, TIMED_OUT, Problem, escaped, run
from trimtab.cli.git_find import called, stands, status_of, sync_of
from trimtab.cli.git_next import next_step
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing, Query
from trimtab.model.clock import SystemClock, format_micro_time
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.kinds.fields import SYNC_NOW


def sync(access: Access, name: str, *, wait: float) -> int:
    return run(_sync(access, name, wait))


async def _sync(access: Access, name: str, wait: float) -> int:
    async with session(access) as server:
        found = await sync_of(server, name)
        if found.spec.suspend:
            raise Problem(f"{called(found)} is suspended: `trimtab git resume {found.name}` lets it go on")
        asked = f"by hand {format_micro_time(SystemClock().now())}"
        await annotate(server, found, SYNC_NOW, asked)
        try:
            async with asyncio.timeout(wait):
                ended = await _followed(server, found, asked)
        except TimeoutError:
            raise Problem(f"{called(found)} did not end within {wait:g} s; it goes on", TIMED_OUT) from None
    ok, words = stands(ended)
    print("\n".join(lines(ended, words)))
    return OK if ok else FAILED


def lines(ended: GitSync, words: str) -> list[str]:
    """How it ended, in these words, what is in the way, and what to do."""
    told = [f"{called(ended)} {words}"]
    for problem in (status_of(ended).documents or ())[:20]:
        where = f"{problem.path}:{problem.line}" if problem.line else problem.path
        told.append(f"  {where}: {problem.message}")
    if step := next_step(ended):
        told.append(f"  next: {step}")
    return [escaped(line) for line in told]


async def _followed(server: Session, found: GitSync, asked: str) -> GitSync:
    query = Query(namespace=found.namespace, fields=f"metadata.name={found.name}")
    with Bar(found.name) as bar:
        async with aclosing(follow(server.client, GitSync, query, clock=SystemClock())) as following:
            async for told in following:
                seen: Sequence[object]
                if isinstance(told, Listing):
                    seen = told.items
                elif told.type is EventType.DELETED:
                    raise Problem(f"{called(found)} was deleted meanwhile")
                else:
                    seen = [told.object]
                for item in seen:
                    if not isinstance(item, GitSync):
                        continue
                    status = status_of(item)
                    if status.progress:
                        bar.show(status.progress.done, status.progress.total or None, status.progress.note or "")
                    if status.handled_request == asked:
                        return item
    raise Problem("the server ended the watch")
