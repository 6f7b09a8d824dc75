"""Asks Envoy what it has against some routes, without giving them to the one that works."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from trimtab.systems.local.gateway.envoy.bootstrap import trial
from trimtab.systems.local.gateway.envoy.process import binary

PATIENCE = 20.0
MESSAGE = 1000


async def complaint(routes: dict[str, Any]) -> str:
    """Envoy's words; "" when it would take them."""
    with tempfile.TemporaryDirectory(prefix="trimtab-trial-") as folder:
        path = Path(folder) / "trial.json"
        path.write_bytes(msgspec.json.encode(trial(routes)))
        process = await asyncio.create_subprocess_exec(
            binary(), "--mode", "validate", "-c", str(path), "-l", "error",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )  # fmt: skip
        try:
            async with asyncio.timeout(PATIENCE):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return "" if process.returncode == 0 else _words(output.decode(errors="replace"), str(path))


def _words(output: str, path: str) -> str:
    """What is left of the log when its own matters are taken away."""
    lines = [_PREFIX.sub("", line).replace(path, "").strip() for line in output.splitlines()]
    told = [line for line in lines if line and not line.startswith(("configuration ", "goo.gle/"))]
    return (told[-1] if told else "it gave no reason")[:MESSAGE]


_PREFIX = re.compile(r"^\[[0-9-]+ [0-9:.]+\]\[[0-9]+\]\[\w+\]\[\w+\] \[[^\]]*\] ")
