"""What a process and all that it started use, read from /proc: resident memory and processor time. Linux only."""

import os
from collections.abc import Iterable
from pathlib import Path


def family(pid: int) -> tuple[int, ...]:
    """The process and its descendants that run now."""
    members = [pid]
    for each in members:  # grows while it is walked
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            members += map(int, task.read_text().split())
    return tuple(members)


def resident_bytes(pids: Iterable[int]) -> int:
    """Resident memory, pages shared between them counted for each."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time used so far, in user and system mode."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")
