"""`trimtab canary status`: how a release goes, once or live. On a terminal it changes in place; elsewhere each change is a
line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from shutil import get_terminal_size

from trimtab.cli.access import Access, Session, session
from trimtab.cli.canary_find import canary_of, missing
from trimtab.cli.canary_show import lines, summary
from trimtab.cli.codes import OK, Problem, run
from trimtab.cli.tables import coloured
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing, Query
from trimtab.model.clock import SystemClock
from trimtab.systems.delivery.kinds import CanaryDeployment

TICK = 1.0
"""Seconds after which what tells the time is drawn again."""


def status(access: Access, name: str, *, watch: bool) -> int:
    return run(_status(access, name, watch))


async def _status(access: Access, name: str, watch: bool) -> int:
    async with session(access) as server:
        if not watch:
            canary = await canary_of(server, name)
            width = get_terminal_size().columns if sys.stdout.isatty() else 0
            print("\n".join(lines(canary, SystemClock().now(), colours=coloured(), width=width)))
            return OK
        await canary_of(server, name)  # what is wrong is better said before the screen is taken
        await (_screen(server, name) if sys.stdout.isatty() else _lines(server, name))
    return OK


async def _lines(server: Session, name: str) -> None:
    told = ""
    async with aclosing(_followed(server, name)) as following:
        async for canary in following:
            said = summary(canary)
            if said != told:
                print(said, flush=True)
            told = said


async def _screen(server: Session, name: str) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    clock, colours = SystemClock(), coloured()
    shown: list[CanaryDeployment] = []
    console = Console(no_color=not colours, highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def draw() -> None:
            text = Text.from_ansi("\n".join(lines(shown[-1], clock.now(), colours=colours, width=console.width)))
            text.no_wrap, text.overflow = True, "ellipsis"
            live.update(text, refresh=True)

        async def tick() -> None:
            while True:
                await clock.sleep(TICK)
                if shown:
                    draw()

        ticking = asyncio.create_task(tick())
        try:
            async with aclosing(_followed(server, name)) as following:
                async for canary in following:
                    shown[:] = [canary]
                    draw()
        finally:
            ticking.cancel()


async def _followed(server: Session, name: str) -> AsyncGenerator[CanaryDeployment, None]:
    """The object as it is, and after each change; until it is deleted."""
    query = Query(namespace=server.namespace, fields=f"metadata.name={name}")
    following = follow(server.client, CanaryDeployment, query, patience=0)
    try:
        async for told in following:
            if isinstance(told, Listing) and not told.items:
                raise await missing(server, name)
            if not isinstance(told, Listing) and told.type is EventType.DELETED:
                raise Problem(f"canarydeployment/{name} was deleted meanwhile")
            found = told.items[0] if isinstance(told, Listing) else told.object
            if not isinstance(found, CanaryDeployment):
                raise Problem(f"canarydeployment/{name} is of another shape than this program knows")
            yield found
    finally:
        await following.aclose()
