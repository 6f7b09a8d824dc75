"""HTTP without any code of ours in between: what a real server says to one request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec


class Said(msgspec.Struct, frozen=True):
    """An answer. `body` is JSON where it was, else text."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Raw:
    """One server."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session, self._base = session, base

    async def say(self, method: str, path: str, body: Any = None, **headers: str) -> Said:
        """Names of headers have underscores: If_Match."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(method, self._base + path, json=body, headers=named) as answer:
            text = await answer.text()
            try:
                decoded = json.loads(text)
            except ValueError:
                decoded = text
            return Said(answer.status, {name.lower(): value for name, value in answer.headers.items()}, decoded)

    async def get(self, path: str) -> Any:
        said = await self.say("GET", path)
        assert said.status == 200, said
        return said.body

    async def done(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        said = await self.say(method, path, body, **headers)
        assert 200 <= said.status < 300, said
        return said.body


@asynccontextmanager
async def raw(url: str, under: str = "", **headers: str) -> AsyncIterator[Raw]:
    """Speak to this endpoint, http://… or unix:///….socket, below a path. Names of headers have underscores."""
    socket = url.removeprefix("unix://") if url.startswith("unix://") else ""
    connector = aiohttp.UnixConnector(path=socket) if socket else None
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession(connector=connector, headers=named) as session:
        yield Raw(session, ("http://lab" if socket else url) + under)
