"""A small web service to release: `python -m trimtab.lab.web --version 2 --errors 0.05`.

It answers every request with its version; a share of them fails, or takes longer, where that is wanted. `/ready` is for
probes. It listens at `POD_IP`, where there is such a variable. On SIGTERM it stops listening, answers what it has begun,
and ends.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal


class Service:
    """What it answers."""

    def __init__(self, version: str, errors: float, delay: float, chance: random.Random) -> None:
        self.version, self._errors, self._delay, self._chance = version, errors, delay, chance
        self.stopping = False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept for as many requests as come."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _length(head)
                if length:
                    await reader.readexactly(length)
                writer.write(await self._answer(head.split(b" ", 2)[1]))
                await writer.drain()
                if self.stopping:
                    break
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, IndexError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: bytes) -> bytes:
        if path == b"/ready":
            return _response(200, "ready", self.version, self.stopping)
        if self._delay:
            await asyncio.sleep(self._delay)
        failed = self._chance.random() < self._errors
        text = f"version {self.version}" + (" failed" if failed else "")
        return _response(500 if failed else 200, text, self.version, self.stopping)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return min(int(value), 1 << 20)
    return 0


def _response(status: int, text: str, version: str, last: bool) -> bytes:
    body = f"{text}\n".encode()
    reason = {200: "OK", 500: "Internal Server Error"}[status]
    close = "Connection: close\r\n" if last else ""
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return f"{head}X-Version: {version}\r\n{close}\r\n".encode() + body


async def serve(host: str, port: int, service: Service) -> None:
    """Until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(service.handle, host, port, backlog=1024)
    await stop.wait()
    service.stopping = True
    server.close()
    await asyncio.sleep(0.2)  # what has come in is answered


def main() -> None:
    parser = argparse.ArgumentParser(description="A small web service to release.")
    parser.add_argument("--host", default=os.environ.get("POD_IP", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--version", default="1")
    parser.add_argument("--errors", type=float, default=0.0, help="the share of requests that fails: 0.05")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds that each answer takes")
    given = parser.parse_args()
    service = Service(given.version, given.errors, given.delay, random.Random())  # noqa: S311 - which request fails
    asyncio.run(serve(given.host, given.port, service))


if __name__ == "__main__":
    main()
