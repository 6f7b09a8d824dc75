"""Envoy's admin interface, on a socket in our own folder that nobody else may open."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trimtab.model.clock import parse_time

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")
TIMEOUT = 5.0
MAX = 256 << 20
NAMED = 8192  # letters of names in one request: Envoy reads no longer ones than 60 KiB
_PATH_MAX = 100  # of a socket's name, in the kernel


class AdminError(OSError):
    """Envoy did not answer as it should."""


class Echo(msgspec.Struct, frozen=True):
    """What Envoy says of one resource: the version in force, and why and when (in seconds of the clock) it failed at a later
    one. Of a listener's failure it does not say which version that was."""

    version: str
    refused: str = ""
    refused_at: float = 0.0


class Admin:
    """A few questions. Connections are kept; `close` ends them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session: aiohttp.ClientSession | None = None
        self._folder = -1
        self._closed = False

    async def is_live(self) -> bool:
        """Whether it is there and has read its configuration."""
        try:
            return _decoded(await self.get("/server_info"), _Info).state == "LIVE"
        except AdminError:
            return False

    def pid(self) -> int:
        """The process at the other end; 0 when nobody is there."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(self._short())
                options = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            except OSError:
                return 0
        return int(struct.unpack("3i", options)[0])

    async def routes(self, names: Iterable[str]) -> dict[str, Echo]:
        """The versions of route configurations."""
        return await self._versions("dynamic_route_configs", "route_config", names)

    async def clusters(self, names: Iterable[str]) -> dict[str, Echo]:
        """Those that are ready for requests."""
        return await self._versions("dynamic_active_clusters", "cluster", names)

    async def listeners(self, names: Iterable[str]) -> dict[str, Echo]:
        """Those that take connections, and those that could not be made."""
        found = {}
        for each in await self._dump("dynamic_listeners", "name,active_state.version_info,error_state", names):
            error = each.get("error_state") or {}
            found[str(each.get("name"))] = Echo(
                str((each.get("active_state") or {}).get("version_info") or ""),
                str(error.get("details") or ""),
                _seconds(error.get("last_update_attempt")),
            )
        return found

    async def announced(self) -> set[str]:
        """The versions of all tables of routes that it says it has read. Much quicker than to show what is in force."""
        answer = await self.get("/stats", type="TextReadouts", filter=r"\.rds\..*version_text$")
        return {line.rpartition(b": ")[2].strip(b'"').decode() for line in answer.splitlines()}

    async def count(self, pattern: str) -> int:
        """The sum of its counters of such names; 0 for what it does not have (yet)."""
        answer = await self.get("/stats", filter=f"^{pattern}$")
        return sum(int(line.rpartition(b":")[2]) for line in answer.splitlines() if b":" in line)

    async def _versions(self, resource: str, inner: str, names: Iterable[str]) -> dict[str, Echo]:
        dumped = await self._dump(resource, f"version_info,{inner}.name", names)
        return {str((each.get(inner) or {}).get("name")): Echo(str(each.get("version_info") or "")) for each in dumped}

    async def _dump(self, resource: str, mask: str, names: Iterable[str]) -> list[dict[str, Any]]:
        """Of these names at least: of all, when they are too many to be named in a request."""
        chosen = "|".join(re.escape(name).replace("\\-", "-") for name in names)
        some = {"name_regex": f"^(?:{chosen})$"} if len(chosen) <= NAMED else {}
        answer = await self.get("/config_dump", resource=resource, mask=mask, **some)
        return _decoded(answer, _Dump).configs

    async def get(self, path: str, **query: str) -> bytes:
        """The body of an answer."""
        import aiohttp

        try:
            async with self._open() as session, session.get(f"http://envoy{path}", params=query) as response:
                parts, left = [], MAX
                while part := await response.content.read(left):
                    parts.append(part)
                    left -= len(part)
                body, status = b"".join(parts), response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise AdminError(f"Envoy does not answer {path}: {error or type(error).__name__}") from error
        if len(body) >= MAX:
            raise AdminError(f"Envoy's answer to {path} is longer than {MAX} bytes")
        if status != 200:
            raise AdminError(f"Envoy answers {path} with {status}: {body[:200].decode(errors='replace')}")
        return body

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[aiohttp.ClientSession]:
        import aiohttp

        if self._closed:
            raise AdminError("nobody asks any more")
        if self._session is None:
            connector = aiohttp.UnixConnector(self._short(), limit=4)
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=TIMEOUT))
        yield self._session

    def _short(self) -> str:
        """A name for the socket that is short enough, however deep its folder is."""
        if len(os.fsencode(self._path)) <= _PATH_MAX:
            return str(self._path)
        if self._folder < 0:
            self._folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    async def close(self, *, for_good: bool = False) -> None:
        """Let connections go; they are made anew when something is asked, unless it is for good."""
        self._closed = for_good
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


def _seconds(moment: object) -> float:
    try:
        return parse_time(moment).timestamp() if isinstance(moment, str) else 0.0
    except ValueError:
        return 0.0


def _decoded(answer: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.MsgspecError as error:
        raise AdminError(f"Envoy's answer is not understood: {error}") from None


class _Info(msgspec.Struct):
    state: str = ""


class _Dump(msgspec.Struct):
    configs: list[dict[str, Any]] = []
