"""Operators side by side: kopf, controller-runtime and Trimtab do the same work on the same machine in the same run.

    python bench/runtime.py [--only ours|real] [--operators NAMES] [--json FILE] [--quick] [--docs]

Each operator (`bench/peers`) keeps a ConfigMap and a status for every Gadget: first for all that exist when it starts,
then for some that are changed at a steady rate; last it holds many that need nothing. All that is measured is of the
operator's process alone, but for Trimtab inside the server's process, which has a table of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from server import COLLECTION, Bench, build_load, prepare
from trimtab.testing.cluster import RealCluster
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import Access, ApiServer, read_access

HERE = Path(__file__).parent
PEERS = HERE / "peers"
PAGE = HERE.parent / "docs" / "benchmarks.md"
sys.path.insert(0, str(PEERS))

from changes import change  # noqa: E402 - of bench/peers
from figures import (  # noqa: E402
    IN_PROCESS,
    KOPF,
    KOPF_IN_STATUS,
    OURS,
    RUNTIME,
    SOCKET,
    TITLES,
    Figures,
    Sides,
    markdown,
    show,
)
from process import Operator, operator, server_with_operator  # noqa: E402

RATE = 50  # changes a second
NAMESPACE = "bench"
MARKS = re.compile(r"(<!-- begin runtime figures -->\n).*?(<!-- end runtime figures -->)", re.DOTALL)


class Scale(NamedTuple):
    """How much of everything."""

    objects: int
    changes: int
    cached: tuple[int, ...]
    """The last only on our server: a real one takes minutes to make as many, and what an operator holds is the same."""
    settle: float
    """Seconds that an operator at rest still gets to let go of what it no longer needs: kopf's workers stay for 5."""


FULL = Scale(10_000, 1_000, (10_000, 100_000), 6.0)
QUICK = Scale(1_000, 100, (10_000,), 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("ours", "real"), help="on one server")
    parser.add_argument("--operators", help="some of them, with semicolons between")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="a tenth of the load, to see that it works")
    parser.add_argument("--figures", type=Path, help="show what an earlier run wrote, and measure nothing")
    parser.add_argument("--docs", action="store_true", help=f"put the tables into docs/{PAGE.name}")
    options = parser.parse_args()
    if options.docs and (options.only or options.operators):
        parser.error("--docs replaces all tables, so it goes neither with --only nor with --operators")
    measured = json.loads(options.figures.read_text()) if options.figures else measure_all(options)
    for side, operators in measured.items():
        show(TITLES[side], operators)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=2) + "\n")
    if options.docs:
        text = "\n\n".join(markdown(TITLES[side], operators) for side, operators in measured.items())
        PAGE.write_text(MARKS.sub(lambda found: f"{found[1]}{text}\n{found[2]}", PAGE.read_text()))


def measure_all(options: argparse.Namespace) -> Sides:
    scale = QUICK if options.quick else FULL
    everyone = [KOPF, RUNTIME, OURS, IN_PROCESS] if options.quick else [*COMMANDS, SOCKET, IN_PROCESS]
    wanted = options.operators.split(";") if options.operators else everyone
    commands = {name: command for name, command in COMMANDS.items() if name in wanted}
    measured: Sides = {}
    with tempfile.TemporaryDirectory() as build:
        load = build_load(Path(build))
        if RUNTIME in wanted:
            build_controller_runtime()
        if options.only != "real":
            measured["ours"] = measure(TrimtabServer, load, commands, scale, scale.cached)
            apart: dict[str, Figures] = {}
            if SOCKET in wanted:
                say("trimtab works over a unix socket")
                with running(TrimtabServer) as server:
                    apart[SOCKET] = work(server, load, [*COMMANDS[OURS], "--socket"], scale)
            if IN_PROCESS in wanted:
                say("trimtab works in the server's process")
                apart[IN_PROCESS] = work_in_process(load, scale)
            if apart:
                measured["apart"] = apart
        if options.only != "ours":
            measured["real"] = measure(real_cluster, load, commands, scale, scale.cached[:-1])
    return measured


def measure(
    start: Callable[[Path], ApiServer],
    load: Path,
    commands: dict[str, list[str]],
    scale: Scale,
    cached: tuple[int, ...],
) -> dict[str, Figures]:
    """What each operator does on a server of its own, and holds on one that all share."""
    measured: dict[str, Figures] = {}
    for name, command in commands.items():
        with running(start) as server:
            say(f"{name} works on {server.name}")
            measured[name] = work(server, load, command, scale)
    if not cached:
        return measured
    with running(start) as server:
        there = 0
        for count in cached:
            seed(server, load, count - there, prefix=f"cached-{count}", enabled=False)
            there = count
            for name, command in commands.items():
                if name == KOPF_IN_STATUS:
                    continue  # it holds what kopf holds
                say(f"{name} holds {count:,} objects of {server.name}")
                measured[name] |= hold(server, command, count, scale.settle, measured[name])
    return measured


def work(server: ApiServer, load: Path, command: list[str], scale: Scale) -> Figures:
    """Reconcile all that is there, then what changes. What a start on an empty server takes is no part of that."""
    with operator(command, server) as empty:
        empty.rest()
        start_cpu = empty.cpu()
        figures = {"memory": empty.memory() / 1e6}
        empty.collect()
        figures["collected"] = empty.memory() / 1e6
    seed(server, load, scale.objects, prefix="busy")
    with operator(command, server, scale.objects + scale.changes) as busy:
        end = busy.rest(reconciled=scale.objects)
        figures |= cold(busy, busy.cpu() - start_cpu, end)
        return figures | steady(busy, read_access(server.kubeconfig), scale)


def work_in_process(load: Path, scale: Scale) -> Figures:
    """The operator in the server's process begins when it gets a signal."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(PEERS / "in_process.py")]
        with server_with_operator(command, Path(folder), scale.objects + scale.changes) as (server, busy):
            prepare(read_access(server.kubeconfig))
            seed(server, load, scale.objects, prefix="busy")
            busy.rest()
            before = busy.cpu()
            os.kill(busy.process.pid, signal.SIGUSR2)
            end = busy.rest(reconciled=scale.objects)
            figures = cold(busy, busy.cpu() - before, end)
            figures["both_memory"] = busy.memory() / 1e6
            return figures | steady(busy, read_access(server.kubeconfig), scale)


def cold(busy: Operator, cpu: float, end: float) -> Figures:
    starts = busy.ledger.starts()
    count = len(starts)
    return {"cold_cpu": cpu / count * 1e6, "cold_rate": count / (end - min(starts.values()) / 1e9)}


def steady(busy: Operator, access: Access, scale: Scale) -> Figures:
    before = busy.cpu()
    known = busy.ledger.starts()
    collection = COLLECTION.format(NAMESPACE)
    answers = change(access, [f"{collection}/busy-{turn}" for turn in range(scale.changes)], RATE)
    busy.rest(reconciled=scale.objects + scale.changes)
    starts = busy.ledger.starts()
    delays = [(started - changed) / 1e6 for changed, started in starts.items() if changed not in known]
    return {
        "steady_cpu": (busy.cpu() - before) / scale.changes * 1e6,
        "p50": statistics.median(delays),
        "p99": percentile(delays, 99),
        "answer_p99": percentile(answers, 99),
    }


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[percent * (len(values) - 1) // 100]


def hold(server: ApiServer, command: list[str], count: int, settle: float, empty: Figures) -> Figures:
    """What an object takes that needs no work."""
    with operator(command, server) as idle:
        idle.rest(calls=count)
        time.sleep(settle)
        memory = idle.memory()
        idle.collect()
        return {
            f"memory_{count}": (memory / 1e3 - empty["memory"] * 1e3) / count,
            f"collected_{count}": (idle.memory() / 1e3 - empty["collected"] * 1e3) / count,
        }


def seed(server: ApiServer, load: Path, count: int, *, prefix: str, enabled: bool = True) -> None:
    """Create Gadgets; those that are not enabled need no work."""
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "gadget.json"
        text = (HERE / "gadget.json").read_text()
        template.write_text(text if enabled else text.replace('"enabled":true', '"enabled":false'))
        bench = Bench(server, read_access(server.kubeconfig), load, "10m", http2=False)
        collection = COLLECTION.format(NAMESPACE)
        bench.load(
            op="create", path=collection, clients=32, count=count, prefix=prefix, object=template, duration="10m"
        )


@contextlib.contextmanager
def running(start: Callable[[Path], ApiServer]) -> Iterator[ApiServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = start(Path(folder))
        try:
            prepare(read_access(server.kubeconfig))
            yield server
        finally:
            server.stop()


def say(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


def real_cluster(folder: Path) -> ApiServer:
    return RealCluster(folder, controllers=(), durable=True)


def controller_runtime() -> Path:
    """Where its program is built, once for all runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "trimtab" / "bench" / "controller-runtime"


def build_controller_runtime() -> None:
    if shutil.which("go") is None:
        sys.exit("the operator with controller-runtime needs Go to build")
    path = controller_runtime()
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", path, "."], cwd=PEERS / "controllerruntime", check=True)


COMMANDS = {
    KOPF: [sys.executable, str(PEERS / "with_kopf.py")],
    KOPF_IN_STATUS: [sys.executable, str(PEERS / "with_kopf.py"), "--in-status"],
    RUNTIME: [str(controller_runtime())],
    OURS: [sys.executable, str(PEERS / "ours.py")],
}


if __name__ == "__main__":
    main()
