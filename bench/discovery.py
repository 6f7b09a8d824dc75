"""Sweeps side by side: Trimtab, masscan, nmap and fping on one network with 4,096 live devices, in one run.

    python bench/discovery.py [--quick] [--runs N] [--json FILE]

The network is a /16 between two namespaces (trimtab.lab.network): 4,096 addresses answer, the others are silent. Behind
them is one snmpd and one TCP server, so that what is measured is the scanner and not a farm of devices. Ours asks what
each device is (sysDescr, sysObjectID, sysName by SNMP) and sends everything again that was not answered; masscan only
asks whether a port is open, once. A time is that of the whole process, the start of the interpreter included.

Then the same with every processor kept busy by other processes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

from scanners import Ran, Scanner, fping, masscan, nmap, run, snmp, tcp  # noqa: E402 - of bench/peers
from sweep import COMMUNITY, SNMP_PORT, TCP_PORT  # noqa: E402

from trimtab.lab.network import Bed, available  # noqa: E402
from trimtab.testing.processes import Process  # noqa: E402

LIVE = 4096
RATE = 120_000
DEFAULT_RATE = 20_000
MEMORY = 300e6
LISTEN = f"""
import socket
server = socket.create_server(("0.0.0.0", {TCP_PORT}), backlog=4096)
while True:
    server.accept()[0].close()
"""


class Scale(NamedTuple):
    """Which part of 10.77.0.0/16, and how often who runs. The live ones are in it in any case."""

    prefix: str
    last: str
    runs: int
    rates: tuple[int, ...]
    """Of masscan. Above the last it is no faster here, and finds less."""
    masscan_runs: int
    busy_peers: bool


FULL = Scale("10.77.0.0/16", "10.77.255.255", 5, (20_000, 60_000, 200_000), 3, True)
QUICK = Scale("10.77.0.0/18", "10.77.63.255", 1, (200_000,), 1, False)


class Line(NamedTuple):
    """What a scanner did in all its runs."""

    name: str
    busy: bool
    runs: list[Ran]

    @property
    def seconds(self) -> float:
        return statistics.median(ran.seconds for ran in self.runs)

    @property
    def found(self) -> int:
        return min(ran.found for ran in self.runs)

    @property
    def memory(self) -> float:
        return max(ran.memory for ran in self.runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a quarter of the network, once, to see that it works")
    parser.add_argument("--runs", type=int, help="of ours, each")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    missing = [name for name in ("masscan", "nmap", "fping", "snmpd") if shutil.which(name) is None]
    if missing or available():
        sys.exit(available() or f"not installed: {', '.join(missing)} (the Debian packages have the same names)")
    scale = QUICK if options.quick else FULL
    lines = measure(scale, options.runs or scale.runs)
    show(lines, scale)
    if options.json:
        figures = [
            {"name": line.name, "busy": line.busy, "seconds": [ran.seconds for ran in line.runs]}
            | {"found": [ran.found for ran in line.runs], "memory": line.memory}
            for line in lines
        ]
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def measure(scale: Scale, runs: int) -> list[Line]:
    first = scale.prefix.partition("/")[0]
    ours = [snmp(first, scale.last, RATE), tcp(first, scale.last, RATE)]
    polite = snmp(first, scale.last, DEFAULT_RATE)
    fast_peers = [masscan(scale.prefix, rate) for rate in scale.rates]
    slow_peers = [fping(scale.prefix), nmap(scale.prefix)]
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder, Bed() as bed, devices(bed, Path(folder)):
        run(bed, ours[0])  # the first start reads programs from disk
        for busy in (False, True):
            with burners() if busy else contextlib.nullcontext():
                plan: list[tuple[Scanner, int]] = [(each, runs) for each in ours]
                if not busy:
                    plan.append((polite, 1))
                if not busy or scale.busy_peers:
                    plan += [(each, scale.masscan_runs) for each in fast_peers]
                if not busy:
                    plan += [(each, 1) for each in slow_peers]
                for scanner, times in plan:
                    lines.append(Line(scanner.name, busy, [told(bed, scanner, busy) for _ in range(times)]))
    return lines


def told(bed: Bed, scanner: Scanner, busy: bool) -> Ran:
    ran = run(bed, scanner)
    note = " (busy)" if busy else ""
    print(f"{scanner.name}{note}: {ran.seconds:.2f} s, {ran.found} found", file=sys.stderr, flush=True)
    return ran


@contextlib.contextmanager
def devices(bed: Bed, folder: Path) -> Iterator[None]:
    """One snmpd and one TCP server, which are all live addresses of the bed."""
    settings = folder / "snmpd.conf"
    settings.write_text(
        f"agentaddress udp:0.0.0.0:{SNMP_PORT}\nrocommunity {COMMUNITY.decode()}\nsysName bench\n"
        "serverRecvBuf 8388608\nserverSendBuf 8388608\n[snmp] persistentDir " + str(folder) + "\n"
    )
    agent = bed.b.command(["snmpd", "-f", "-Ln", "-C", "-c", str(settings)])
    listener = bed.b.command([sys.executable, "-c", LISTEN])
    murmur = bed.b.command(["fping", "-q", "-l", "-p", "50", "192.0.2.1"])  # masscan ends only when a packet comes
    with (
        Process(agent, log=folder / "snmpd.log", env={"MIBS": ""}) as snmpd,
        Process(listener, log=folder / "listener.log") as server,
        Process(murmur, log=folder / "murmur.log"),
    ):
        for process, option, port in ((snmpd, "-uan", SNMP_PORT), (server, "-tln", TCP_PORT)):
            process.wait_until(lambda o=option, p=port: f":{p} " in bed.b.run("ss", o), within=20)
        yield


@contextlib.contextmanager
def burners() -> Iterator[None]:
    """As many processes as processors, which never rest."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(os.cpu_count() or 2)]
    try:
        time.sleep(0.5)  # until they burn
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def show(lines: list[Line], scale: Scale) -> None:
    table = Table(
        "",
        "median s",
        "slowest s",
        "found in each run",
        "memory MB",
        "ours is",
        title=f"{scale.prefix}, {LIVE:,} live",
        caption="ours: SNMP identification",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for busy in (False, True):
        part = [line for line in lines if line.busy is busy]
        for line in part:
            table.add_row(
                line.name + (", processors busy" if busy else ""),
                f"{line.seconds:.2f}",
                f"{max(ran.seconds for ran in line.runs):.2f}",
                " ".join(f"{ran.found:,}" for ran in line.runs),
                f"{line.memory / 1e6:.0f}" if line.name.startswith("trimtab") else "",
                "" if line is part[0] else f"{line.seconds / part[0].seconds:.2f}x as fast",
            )
        table.add_section()
    console = Console(width=130)
    console.print(table)
    for text, reached in goals(lines):
        console.print(f"{'reached' if reached else 'BEHIND '}  {text}")


def goals(lines: list[Line]) -> Iterator[tuple[str, bool]]:
    ours = [line for line in lines if line.name.startswith("trimtab")]
    for busy in (False, True):
        identification = next(line for line in ours if line.busy is busy)
        sweeps = [line.seconds for line in lines if line.name.startswith("masscan") and line.busy is busy]
        if not sweeps:
            continue
        best = min(sweeps)
        when = ", with all processors busy" if busy else ""
        times = f"{identification.seconds:.2f} s, {best:.2f} s"
        yield f"SNMP identification not slower than masscan's best{when}: {times}", identification.seconds <= best
    yield f"all {LIVE:,} found in each run", all(line.found == LIVE for line in ours)
    most = max(line.memory for line in ours)
    yield f"memory under {MEMORY / 1e6:.0f} MB: {most / 1e6:.0f} MB", most < MEMORY


if __name__ == "__main__":
    main()
