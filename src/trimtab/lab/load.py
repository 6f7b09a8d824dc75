"""Requests to a service, steadily, and who answered them: `python -m trimtab.lab.load http://127.20.0.80:8000/`.

Every second it says how many answers came from which version (`X-Version`), and how many of them failed. A request that
got no answer at all is told apart: that is what a release must never cause.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

PATIENCE = 10.0
"""Seconds to an answer."""


class Tally(msgspec.Struct):
    """What came of requests: answers by version, those of them that failed, and requests without an answer."""

    answers: Counter[str] = msgspec.field(default_factory=Counter)
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    unanswered: int = 0

    def add(self, other: Tally) -> None:
        self.answers += other.answers
        self.failed += other.failed
        self.unanswered += other.unanswered

    def __str__(self) -> str:
        total = sum(self.answers.values()) or 1
        words = []
        for version, count in sorted(self.answers.items()):
            bad = f", {self.failed[version]} failed" if self.failed[version] else ""
            words.append(f"version {version}: {count} ({100 * count / total:.0f} %{bad})")
        if self.unanswered:
            words.append(f"no answer: {self.unanswered}")
        return "   ".join(words) or "no request"


class Load:
    """So many connections that together make `rate` requests a second."""

    def __init__(self, url: str, *, rate: float, connections: int, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url}: http://host:port/ is wanted")
        self._where = parts.hostname, parts.port or 80
        lines = [f"GET {parts.path or '/'} HTTP/1.1", f"Host: {parts.netloc}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self._request = "\r\n".join((*lines, "", "")).encode("latin-1")
        self._pause, self._connections = connections / rate, connections
        self.now, self.all = Tally(), Tally()

    async def run(self, seconds: float) -> Tally:
        """For so long; 0 is until it is cancelled."""
        tasks = [asyncio.create_task(self._connection(number)) for number in range(self._connections)]
        try:
            await asyncio.sleep(seconds or 86400.0 * 365)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.taken()
        return self.all

    def taken(self) -> Tally:
        """What came since it was last taken."""
        found, self.now = self.now, Tally()
        self.all.add(found)
        return found

    async def _connection(self, number: int) -> None:
        """Requests one after another, at the times that are its own whatever the answers take."""
        due = time.monotonic() + self._pause * number / self._connections
        stream: _Stream | None = None
        try:
            while True:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                due = max(due + self._pause, time.monotonic())
                try:
                    async with asyncio.timeout(PATIENCE):
                        stream = stream or _Stream(*await asyncio.open_connection(*self._where))
                        status, version, last = await stream.ask(self._request)
                except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                    self.now.unanswered += 1
                    last = True
                else:
                    self.now.answers[version] += 1
                    self.now.failed[version] += status >= 500
                if last and stream is not None:
                    stream.close()
                    stream = None
        finally:
            if stream is not None:
                stream.close()


class _Stream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes) -> tuple[int, str, bool]:
        """The status, who answered, and whether the connection ends with this."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        await self._reader.readexactly(int(fields.get("content-length", "0")))
        ends = fields.get("connection", "").lower() == "close"
        return int(head[0].split(" ")[1]), fields.get("x-version", "?"), ends

    def close(self) -> None:
        self._writer.close()


async def shown(load: Load, seconds: float, every: float) -> None:
    """Says every so often what came."""

    async def say() -> None:
        while True:
            await asyncio.sleep(every)
            print(time.strftime("%H:%M:%S"), load.taken(), sep="   ", flush=True)

    saying = asyncio.create_task(say())
    try:
        await load.run(seconds)
    finally:
        saying.cancel()
        print("altogether", load.all, sep=" ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Requests to a service, steadily, and who answered them.")
    parser.add_argument("url", help="http://host:port/")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second, altogether")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.0, help="how long; until Ctrl-C without it")
    parser.add_argument("--every", type=float, default=1.0, help="seconds from one line to the next")
    parser.add_argument("--header", action="append", default=[], metavar="NAME:VALUE", help="may be repeated")
    given = parser.parse_args()
    headers = {name.strip(): value.strip() for name, _, value in (each.partition(":") for each in given.header)}
    try:
        load = Load(given.url, rate=given.rate, connections=given.connections, headers=headers)
    except ValueError as error:
        sys.exit(str(error))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(shown(load, given.seconds, given.every))


if __name__ == "__main__":
    main()
