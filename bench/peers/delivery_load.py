"""Constant load by wrk, and who answered it how."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

SCRIPT = Path(__file__).with_name("delivery_load.lua")
CONNECTIONS, THINK = 16, 10
"""With so many milliseconds from an answer to the next request: some 1,000 requests a second, and time for others."""


class Load:
    """What came back, known when the load has ended. `broken` are requests without an answer."""

    def __init__(self) -> None:
        self.broken = 0
        self.answers: dict[tuple[str, int], int] = {}

    def add(self, line: str) -> None:
        said = json.loads(line)
        self.broken += said["broken"]
        for key, count in said["answers"].items():
            version, _, status = key.rpartition(" ")
            self.answers[version, int(status)] = self.answers.get((version, int(status)), 0) + count

    @property
    def requests(self) -> int:
        return self.broken + sum(self.answers.values())

    def of(self, version: str) -> int:
        """Answered by this version."""
        return sum(count for (one, _), count in self.answers.items() if one == version)

    def failed(self, version: str = "") -> int:
        """Answers that are errors: all, or those of one version. Requests without an answer are of no version."""
        bad = sum(c for (one, status), c in self.answers.items() if status >= 400 and version in ("", one))
        return bad + (self.broken if not version else 0)


@contextlib.asynccontextmanager
async def load(url: str, *, connections: int = CONNECTIONS, think: int | None = THINK) -> AsyncIterator[Load]:
    """From here to the end of the block."""
    environment = {**os.environ, **({} if think is None else {"THINK": str(think)})}
    process = await asyncio.create_subprocess_exec(
        "wrk", "-t1", f"-c{connections}", "-d3600", "--timeout", "10s", "-s", str(SCRIPT), url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=environment,
    )  # fmt: skip
    found = Load()
    await asyncio.sleep(0.5)  # it has connected
    try:
        yield found
    finally:
        process.send_signal(signal.SIGINT)
        said = (await process.communicate())[0].decode()
    line = next((each for each in said.splitlines() if each.startswith("{")), "")
    if not line:
        raise RuntimeError(f"wrk did not say what it saw\n{said}")
    found.add(line)
