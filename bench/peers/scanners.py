"""The commands that bench/discovery.py runs side by side: ours, masscan, nmap and fping. All sweep the same addresses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sweep import TCP_PORT

from trimtab.lab.network import CABLE, MAC_B, Bed

PATIENCE = 120
"""Seconds after which a scanner is stopped; then that is its time, and what it printed is what it found."""


_STOPPED = (0, -9, 137)


class Scanner(NamedTuple):
    """A command, and how to read from its output how many devices it found."""

    name: str
    command: list[str]
    found: Callable[[str], int]
    good: tuple[int, ...] = (0,)
    """Exit codes: fping says by 1 that somebody is not there, and a scanner that was stopped ended by a signal."""


class Ran(NamedTuple):
    """One run, from the start of the process to its end."""

    seconds: float
    found: int
    memory: float
    """The most that was resident, in bytes."""
    said: str


def snmp(first: str, last: str, rate: int, *, tries: int = 2) -> Scanner:
    once = ", asked once" if tries == 1 else ""
    return _ours(f"trimtab: SNMP identification, {rate:,}/s{once}", "snmp", first, last, rate, tries)


def tcp(first: str, last: str, rate: int) -> Scanner:
    return _ours(f"trimtab: TCP sweep, {rate:,}/s", "tcp", first, last, rate, 2)


def masscan(prefix: str, rate: int) -> Scanner:
    """Without retransmission, which it would wait for, and with one second for the last answers, as ours."""
    command = ["masscan", prefix, f"-p{TCP_PORT}", "--rate", str(rate), "--wait", "1", "-oG", "-"]
    command += ["-e", CABLE, "--source-ip", "192.0.2.1", "--router-mac", MAC_B.replace(":", "-")]
    return Scanner(f"masscan: TCP sweep, {rate:,}/s", command, lambda said: said.count("/open/"), _STOPPED)


def nmap(prefix: str) -> Scanner:
    command = ["nmap", "-n", "-sn", f"-PS{TCP_PORT}", "--min-rate", "5000", "--max-retries", "1", "-oG", "-", prefix]
    return Scanner("nmap: TCP ping, --min-rate 5000", command, lambda said: said.count("Status: Up"), _STOPPED)


def fping(prefix: str) -> Scanner:
    """It leaves out the network's own address and the broadcast address, so it finds one less."""
    command = ["fping", "-q", "-a", "-r0", "-t500", "-i0.1", "-g", prefix]
    return Scanner("fping: ICMP echo, -i0.1", command, lambda said: len(said.splitlines()), (*_STOPPED, 1))


def run(bed: Bed, scanner: Scanner) -> Ran:
    begin = time.monotonic()
    process = bed.a.popen(
        ["timeout", "-s", "KILL", str(PATIENCE), *scanner.command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    with process.stdout as output:
        said = output.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in scanner.good:
        sys.exit(f"{scanner.name} failed with code {process.returncode}")
    return Ran(seconds, scanner.found(said), usage.ru_maxrss * 1024, said)


def _ours(name: str, what: str, first: str, last: str, rate: int, tries: int) -> Scanner:
    program = Path(__file__).parent / "sweep.py"
    command = [sys.executable, str(program), what, f"{first}-{last}", "--rate", str(rate), "--tries", str(tries)]
    return Scanner(name, command, lambda said: int(json.loads(said)["found"]))
