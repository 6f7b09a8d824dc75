"""`trimtab get -w`: a table that keeps up. On a terminal rows change in place; elsewhere each change is a new line."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from trimtab.cli.access import Session
from trimtab.cli.get import TABLE, Options, View, selectors
from trimtab.cli.output import Form
from trimtab.cli.tables import coloured
from trimtab.cli.targets import Target, namespace_of
from trimtab.client.transport import Call, Silent, Unreachable, document_of
from trimtab.model.errors import StatusError

INACTIVITY = 150.0
PAUSE = 1.0
PATIENCE = 60  # tries, with a pause between them


async def watch(server: Session, target: Target, options: Options, asked: Form) -> int:
    """Show what is there and then every change, until it is interrupted."""
    screen: Screen | Lines = Screen(options) if sys.stdout.isatty() else Lines()
    place = target.resource.place
    path = place.path(namespace_of(server, target.resource, options.everywhere))
    query = selectors(options)
    if target.names:
        query["fieldSelector"] = f"metadata.name={target.names[0]}"
    with screen:
        while True:
            call = Call(method="GET", path=path, query=query, accept=TABLE)
            table = document_of((await server.transport.call(call)).body)
            screen.start(View(table, target, options, asked), table.get("rows") or [])
            await _changes(server, path, query, table["metadata"]["resourceVersion"], screen)


async def _changes(server: Session, path: str, query: dict[str, str], revision: str, screen: Screen | Lines) -> None:
    """Shows changes until the past is lost: then the caller lists again. A server that stays away is given up."""
    misses = 0
    while True:
        since = {**query, "watch": "true", "resourceVersion": revision, "allowWatchBookmarks": "true"}
        lines = server.transport.stream(Call(method="GET", path=path, query=since, accept=TABLE), INACTIVITY)
        quiet = True
        try:
            async for line in lines:
                quiet, misses, event = False, 0, document_of(line)
                if event["type"] == "ERROR":
                    error = StatusError.from_status(event["object"], 500)
                    if error.code == 410:
                        return
                    raise error
                for row in event["object"].get("rows") or ():
                    revision = row["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        screen.change(event["type"], row)
        except StatusError as error:
            if error.code == 410:
                return
            raise
        except (Unreachable, Silent):
            quiet, misses = True, misses + 1
            if misses == 1:
                print("trimtab: the server does not answer; trying again", file=sys.stderr)
            if misses > PATIENCE:
                raise
        finally:
            await lines.aclose()
        if quiet:  # it may be gone, or end every watch at once
            await asyncio.sleep(PAUSE)


class Lines:
    """A line for each change, for pipes."""

    def __init__(self) -> None:
        self._view: View | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def start(self, view: View, rows: list[dict[str, Any]]) -> None:
        again, self._view = self._view is not None, self._view or view
        if not again:
            self._view.printer.add([view.cells(row) for row in rows])

    def change(self, kind: str, row: dict[str, Any]) -> None:
        if self._view is not None:
            self._view.printer.add([self._view.cells(row)])


class Screen:
    """The table as it is now, in place. What was deleted goes; what changed last is bright."""

    def __init__(self, options: Options) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(no_color=not coloured(), highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="visible")
        self._rows: dict[str, list[str]] = {}
        self._view: View | None = None
        self._changed = ""
        self._header = not options.no_headers

    def __enter__(self) -> None:
        self._live.__enter__()

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def start(self, view: View, rows: list[dict[str, Any]]) -> None:
        self._view = view
        self._rows = {_key(row): view.cells(row) for row in rows}
        self._draw()

    def change(self, kind: str, row: dict[str, Any]) -> None:
        assert self._view is not None  # noqa: S101 - a listing comes first
        key = self._changed = _key(row)
        if kind == "DELETED":
            self._rows.pop(key, None)
        else:
            self._rows[key] = self._view.cells(row)
        self._draw()

    def _draw(self) -> None:
        from rich.table import Table
        from rich.text import Text

        assert self._view is not None  # noqa: S101
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=self._header)
        for name in self._view.headers:
            table.add_column(name.upper(), overflow="ellipsis", no_wrap=True)
        for key in sorted(self._rows):
            table.add_row(*map(Text, self._rows[key]), style="bold" if key == self._changed else "")
        self._live.update(table, refresh=True)


def _key(row: dict[str, Any]) -> str:
    metadata = row["object"]["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
