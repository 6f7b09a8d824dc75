"""Sweeps side by side: Trimtab, masscan, nmap and fping on one network with 4,096 live devices, in one run.

    python bench/discovery.py [--quick] [--runs N] [--json FILE] [--docs]

The network is a /16 between two namespaces (trimtab.lab.network): 4,096 addresses answer, the others are silent. Behind
them is one snmpd and one TCP server, so that what is measured is the scanner and not a farm of devices. Ours asks what
each device is (sysDescr, sysObjectID, sysName by SNMP) and sends everything again that was not answered; masscan only
asks whether a port is open, once, so one line is ours without repetition. A time is that of the whole process, the
start of the interpreter included.

Then the same with every processor kept busy by other processes. At last, how many devices are identified in a second by
each protocol, beside the bare library on the same servers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "peers"))

import gnmi_rate  # noqa: E402 - of bench/peers
import snmp_rate  # noqa: E402
import ssh_rate  # noqa: E402
from scanners import Ran, Scanner, fping, masscan, nmap, run, snmp, tcp  # noqa: E402 - of bench/peers
from sweep import COMMUNITY, SNMP_PORT, TCP_PORT  # noqa: E402

from trimtab.lab.network import Bed, available  # noqa: E402
from trimtab.testing.processes import Process  # noqa: E402

Rates = dict[str, dict[str, float]]
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
    """Which part of 10.77.0.0/16, and how often. The live ones are in it in any case."""

    prefix: str
    last: str
    runs: int
    rates: tuple[int, ...]
    """Of masscan. Above the last it is no faster here, and finds less."""
    busy_peers: bool


FULL = Scale("10.77.0.0/16", "10.77.255.255", 5, (20_000, 60_000, 200_000), True)
QUICK = Scale("10.77.0.0/18", "10.77.63.255", 1, (200_000,), False)


class Line(NamedTuple):
    """What a scanner did in all its runs."""

    name: str
    busy: bool
    runs: list[Ran]

    @property
    def ours(self) -> bool:
        return self.name.startswith("trimtab")

    @property
    def seconds(self) -> float:
        return statistics.median(ran.seconds for ran in self.runs)

    @property
    def found(self) -> int:
        return min(ran.found for ran in self.runs)

    @property
    def usually_found(self) -> float:
        return statistics.median(ran.found for ran in self.runs)

    @property
    def memory(self) -> float:
        return max(ran.memory for ran in self.runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a quarter of the network, once, to see that it works")
    parser.add_argument("--runs", type=int, help="of each, but for the slow ones")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--docs", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    missing = [name for name in ("masscan", "nmap", "fping", "snmpd") if shutil.which(name) is None]
    if missing or available():
        sys.exit(available() or f"not installed: {', '.join(missing)} (the Debian packages have the same names)")
    scale = QUICK if options.quick else FULL
    lines = measure(scale, options.runs or scale.runs)
    rates = asyncio.run(identifications(options.quick))
    show(lines, scale)
    show_rates(rates)
    if options.docs:
        put(ROOT / "docs" / "benchmarks.md", f"{sweeps_table(lines, scale)}\n\n{rates_table(rates)}")
    if options.json:
        figures = [
            {"name": line.name, "busy": line.busy, "seconds": [ran.seconds for ran in line.runs]}
            | {"found": [ran.found for ran in line.runs], "memory": line.memory}
            for line in lines
        ]
        options.json.write_text(json.dumps({"sweeps": figures, "rates": rates}, indent=2) + "\n")


async def identifications(quick: bool) -> Rates:
    """In a second, one by one: servers and clients share this machine."""
    found: Rates = {}
    for protocol, module, devices in (("gnmi", gnmi_rate, 300), ("", ssh_rate, 60), ("snmp", snmp_rate, 2000)):
        part = await module.measure(devices // 10 if quick else devices, 1 if quick else 3)
        found |= {f"{protocol} {name}".strip(): sides for name, sides in part.items()}
        print(f"identification, {module.__name__}: measured", file=sys.stderr, flush=True)
    return found


def show_rates(rates: Rates) -> None:
    table = Table(title="identifications in a second")
    for title in ("", "trimtab", "bare library", "of it"):
        table.add_column(title, justify="right" if title else "left")
    for name, sides in rates.items():
        ours, ceiling = sides["ours"], sides["ceiling"]
        table.add_row(name, f"{ours:,.0f}", f"{ceiling:,.0f}", f"{ours / ceiling:.2f}")
    Console(width=130).print(table)


def sweeps_table(lines: list[Line], scale: Scale) -> str:
    rows = [f"| {scale.prefix}, {LIVE:,} live | median | slowest | found at least |", "|-|-:|-:|-:|"]
    for line in lines:
        slowest = max(ran.seconds for ran in line.runs)
        name = line.name + (", all processors busy" if line.busy else "")
        rows.append(f"| {name} | {line.seconds:.2f} s | {slowest:.2f} s | {line.found:,} |")
    said = [f"- {text}: {'reached' if reached else 'behind'}." for text, reached in goals(lines)]
    return "\n".join([*rows, "", *said])


def rates_table(rates: Rates) -> str:
    rows = ["| identifications in a second | Trimtab | bare library | of it |", "|-|-:|-:|-:|"]
    for name, sides in rates.items():
        ours, ceiling = sides["ours"], sides["ceiling"]
        rows.append(f"| {name} | {ours:,.0f} | {ceiling:,.0f} | {ours / ceiling:.2f} |")
    return "\n".join(rows)


def put(page: Path, text: str) -> None:
    marks = re.compile(r"(<!-- begin discovery figures -->\n).*?(<!-- end discovery figures -->)", re.DOTALL)
    page.write_text(marks.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page.read_text()))


def measure(scale: Scale, runs: int) -> list[Line]:
    """The fast ones by turns, so that what else the machine does meets all alike; the slow ones once."""
    first = scale.prefix.partition("/")[0]
    ours = [snmp(first, scale.last, RATE), tcp(first, scale.last, RATE)]
    peers = [masscan(scale.prefix, rate) for rate in scale.rates]
    alone = [snmp(first, scale.last, DEFAULT_RATE), fping(scale.prefix), nmap(scale.prefix)]
    turns = {False: [snmp(first, scale.last, RATE, tries=1), *ours, *peers], True: ours}
    if scale.busy_peers:
        turns[True] = [*ours, *peers]
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder, Bed() as bed, devices(bed, Path(folder)):
        run(bed, ours[0])  # the first start reads programs from disk
        for busy, scanners in turns.items():
            part = [Line(scanner.name, busy, []) for scanner in scanners]
            with burners() if busy else contextlib.nullcontext():
                for _ in range(runs):
                    for scanner, line in zip(scanners, part, strict=True):
                        line.runs.append(told(bed, scanner, busy))
            lines += part
            if not busy:
                lines += [Line(scanner.name, busy, [told(bed, scanner, busy)]) for scanner in alone]
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
    command = [sys.executable, "-c", "print('burns', flush=True)\nwhile True: pass"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(os.cpu_count() or 2)]
    try:
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def show(lines: list[Line], scale: Scale) -> None:
    table = Table(title=f"{scale.prefix}, {LIVE:,} live")
    table.add_column("", min_width=52)
    for title in ("median s", "slowest s", "found at least", "memory MB", "ours is"):
        table.add_column(title, justify="right")
    for busy in (False, True):
        part = [line for line in lines if line.busy is busy]
        ours = identification(part)
        for line in part:
            table.add_row(
                line.name + (", busy" if busy else ""),
                f"{line.seconds:.2f}",
                f"{max(ran.seconds for ran in line.runs):.2f}",
                f"{line.found:,}",
                f"{line.memory / 1e6:.0f}" if line.ours else "",
                "" if line.ours else f"{line.seconds / ours.seconds:.2f}x as fast",
            )
        table.add_section()
    console = Console(width=130)
    console.print(table)
    for text, reached in goals(lines):
        console.print(f"{'reached' if reached else 'BEHIND '}  {text}")


def goals(lines: list[Line]) -> Iterator[tuple[str, bool]]:
    """masscan is compared at its fastest rate that usually finds nine of ten devices; if there is none, at the one that
    finds most. Asked once, ours is compared with any."""
    for busy in (False, True):
        part = [line for line in lines if line.busy is busy]
        sweeps = [line for line in part if line.name.startswith("masscan")]
        when = ", with all processors busy" if busy else ""
        if sweeps:
            useful = [line for line in sweeps if line.usually_found >= 0.9 * LIVE]
            best = min(useful, key=lambda line: line.seconds) if useful else max(sweeps, key=lambda x: x.usually_found)
            ours = identification(part)
            times = f"{ours.seconds:.2f} s, {best.seconds:.2f} s ({best.name})"
            yield f"SNMP identification not slower than masscan's sweep{when}: {times}", ours.seconds <= best.seconds
        once = [line for line in part if line.name.endswith("once")]
        if once and sweeps:
            fastest = min(line.seconds for line in sweeps)
            times = f"{once[0].seconds:.2f} s, {fastest:.2f} s"
            yield f"asked once, not slower than masscan at any rate: {times}", once[0].seconds <= fastest
    ours_all = [line for line in lines if line.ours and not line.name.endswith("once")]
    yield f"all {LIVE:,} found in each run", all(line.found == LIVE for line in ours_all)
    most = max(line.memory for line in ours_all)
    yield f"memory under {MEMORY / 1e6:.0f} MB: {most / 1e6:.0f} MB", most < MEMORY


def identification(part: list[Line]) -> Line:
    return next(line for line in part if line.name == f"trimtab: SNMP identification, {RATE:,}/s")


if __name__ == "__main__":
    main()
