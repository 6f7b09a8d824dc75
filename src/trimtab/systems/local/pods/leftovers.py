"""Ends processes by their records alone: those whose pod is gone, and all of them when the home stops."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from trimtab.model.logs import log
from trimtab.systems.local.pods.launch import Launcher
from trimtab.systems.local.pods.process import follow
from trimtab.systems.local.pods.records import Folder, Record, folders, kill_rest, living


async def end_strays(root: Path, known: Collection[str], launcher: Launcher, grace: float = 5.0) -> int:
    """End what belongs to no pod of `known`, by uid, and remove its files; how many pods that were."""
    strays = [folder for folder in folders(root) if folder.uid not in known]
    await asyncio.gather(*(_end(folder, launcher, grace) for folder in strays))
    for folder in strays:
        log.info("processes of a pod that is gone were ended", uid=folder.uid)
        await asyncio.to_thread(folder.remove)
    return len(strays)


async def end_all(root: Path, launcher: Launcher, grace: float) -> None:
    """End every process; files stay, for the next start."""
    await asyncio.gather(*(_end(folder, launcher, grace) for folder in folders(root)))


async def _end(folder: Folder, launcher: Launcher, grace: float) -> None:
    living_ones = [(record, pid) for record in folder.records() if (pid := living(record))]
    await asyncio.gather(*(_end_one(pid, min(grace, record.grace)) for record, pid in living_ones))
    for record in folder.records():
        await clear(launcher, record)


async def clear(launcher: Launcher, record: Record) -> None:
    """What is left of a container whose process has ended."""
    if record.name:
        await launcher.clear(record.name)
    elif record.mark:
        await asyncio.to_thread(kill_rest, record.mark)


async def _end_one(pid: int, grace: float) -> None:
    process = follow(pid)
    if process is not None:
        await process.end(grace)
