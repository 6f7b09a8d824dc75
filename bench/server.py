"""The embedded server beside a real kube-apiserver with etcd: same machine, same run, same load, over TLS.

    python bench/server.py [--only ours|real] [--json FILE] [--quick] [--http2]

Every figure is printed, also those that are behind. The load generator (`bench/load`, Go) shares the machine with the
server that it loads; only one server runs at a time.
"""

import argparse
import contextlib
import http.client
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from trimtab.testing.cluster import RealCluster
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import Access, ApiServer, read_access
from trimtab.testing.usage import cpu_seconds, family, resident_bytes

HERE = Path(__file__).parent
OBJECTS = 10_000
COLLECTION = "/apis/bench.trimtab.dev/v1/namespaces/{}/gadgets"


class Figure(NamedTuple):
    """One line of the table. The goal is a factor over the real one; None is a figure without a goal."""

    key: str
    title: str
    unit: str
    more_is_better: bool
    goal: float | None = None


FIGURES = (
    Figure("start", "start to ready", "s", False, 5),
    Figure("create_1", "creates, 1 client", "/s", True, 1),
    Figure("create_32", "creates, 32 clients", "/s", True, 5),
    Figure("create_32_p99", "creates, 32 clients, p99", "ms", False),
    Figure("create_32_cpu", "CPU of a create", "µs", False),
    Figure("get_1", "gets, 1 client", "/s", True, 1),
    Figure("get_32", "gets, 32 clients", "/s", True, 5),
    Figure("get_32_p99", "gets, 32 clients, p99", "ms", False),
    Figure("get_32_cpu", "CPU of a get", "µs", False),
    Figure("list", "list of 10,000", "ms", False, 10),
    Figure("list_gzip", "list of 10,000, gzip accepted", "ms", False, 10),
    Figure("list_bytes", "list of 10,000, size", "MB", False),
    Figure("apply_1", "applies, 1 client", "/s", True, 1),
    Figure("apply_32", "applies, 32 clients", "/s", True, 1),
    Figure("apply_32_cpu", "CPU of an apply", "µs", False),
    Figure("watch_1_p50", "watch delivery, 1 watcher, p50", "ms", False, 1),
    Figure("watch_1_p99", "watch delivery, 1 watcher, p99", "ms", False, 1),
    Figure("watch_1000_p50", "watch delivery, 1,000 watchers, p50", "ms", False, 1),
    Figure("watch_1000_p99", "watch delivery, 1,000 watchers, p99", "ms", False, 1),
    Figure("watch_1000_cpu", "CPU of an event to 1,000 watchers, opening included", "µs", False),
    Figure("idle_memory", "memory, empty", "MB", False),
    Figure("memory", "memory, 10,000 objects", "MB", False, 4),
    Figure("server_memory", "memory, 10,000 objects, API server alone", "MB", False, 4),
    Figure("end_memory", "memory, after the run", "MB", False),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("ours", "real"))
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="a tenth of the load, to see that it works")
    parser.add_argument("--http2", action="store_true", help="HTTP/2 where the server speaks it")
    options = parser.parse_args()
    sides: dict[str, Callable[[Path], ApiServer]] = {
        "real": lambda folder: RealCluster(folder, controllers=(), durable=True),
        "ours": TrimtabServer,
    }
    measured: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as build:
        program = build_load(Path(build))
        for side, start in sides.items():
            if options.only in (None, side):
                measured[side] = measure(start, program, quick=options.quick, http2=options.http2)
    show(measured)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=2) + "\n")


def measure(start: Callable[[Path], ApiServer], program: Path, *, quick: bool, http2: bool) -> dict[str, float]:
    with running(start):  # the first start reads programs from disk
        pass
    with running(start) as (server, seconds):
        access = read_access(server.kubeconfig)
        prepare(access)
        figures = {"start": seconds, "idle_memory": memory(server)}
        bench = Bench(server, access, program, "1s" if quick else "4s", http2)
        objects = OBJECTS // 10 if quick else OBJECTS
        collection = COLLECTION.format("bench")
        bench.load(op="create", path=COLLECTION.format("single"), clients=32, count=320, prefix="warm")
        bench.throughput(figures, "create_32", op="create", path=collection, clients=32, count=objects)
        figures["memory"] = memory(server)
        figures["server_memory"] = resident_bytes(family(server.pids["server"])) / 1e6
        for suffix, extra in (("", {}), ("_gzip", {"gzip": True})):
            answer = bench.load(op="list", path=collection, count=6, **extra)
            figures["list" + suffix] = answer["p50_ms"]
            figures.setdefault("list_bytes", answer["bytes"] / answer["operations"] / 1e6)
        for clients in (1, 32):
            bench.throughput(figures, f"get_{clients}", op="get", path=collection, clients=clients, objects=objects)
            bench.throughput(figures, f"apply_{clients}", op="apply", path=collection, clients=clients)
        bench.throughput(figures, "create_1", op="create", path=COLLECTION.format("single"))
        for watchers, writes in ((1, 200), (1000, 10 if quick else 50)):
            bench.delivery(figures, f"watch_{watchers}", watchers, writes)
        figures["end_memory"] = memory(server)
        return figures


class Bench:
    """Sends load to one server and notes rates, latencies and what the server's processes used meanwhile."""

    def __init__(self, server: ApiServer, access: Access, program: Path, duration: str, http2: bool) -> None:
        self._server = server
        self._duration = duration
        self._command = [str(program), f"-server={access.url}", f"-ca={access.ca}", f"-object={HERE / 'gadget.json'}"]
        if access.certificate:
            self._command += [f"-cert={access.certificate}", f"-key={access.key}"]
        if access.token:
            self._command += [f"-token={access.token}"]
        if http2:
            self._command += ["-http2"]

    def load(self, **flags: object) -> dict[str, Any]:
        flags.setdefault("duration", "1m" if "count" in flags else self._duration)
        arguments = [f"-{name}={str(value).lower() if value is True else value}" for name, value in flags.items()]
        ran = subprocess.run([*self._command, *arguments], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            sys.exit(f"{flags['op']} failed on {self._server.name}: {ran.stderr}\n{self._server.logs()}")
        answer: dict[str, Any] = json.loads(ran.stdout)
        return answer

    def throughput(self, figures: dict[str, float], key: str, **flags: object) -> None:
        before = self._cpu()
        answer = self.load(**flags)
        figures[key] = answer["per_second"]
        figures[f"{key}_p99"] = answer["p99_ms"]
        figures[f"{key}_cpu"] = (self._cpu() - before) / answer["operations"] * 1e6

    def delivery(self, figures: dict[str, float], key: str, watchers: int, writes: int) -> None:
        path = COLLECTION.format("watched")
        before = self._cpu()
        answer = self.load(op="watch", path=path, clients=watchers, count=writes, prefix=f"by-{watchers}")
        if answer["missing"]:
            sys.exit(f"{answer['missing']} events never came from {self._server.name}")
        figures[f"{key}_p50"], figures[f"{key}_p99"] = answer["p50_ms"], answer["p99_ms"]
        figures[f"{key}_cpu"] = (self._cpu() - before) / answer["events"] * 1e6

    def _cpu(self) -> float:
        return sum(cpu_seconds(family(pid)) for pid in self._server.pids.values())


@contextlib.contextmanager
def running(start: Callable[[Path], ApiServer]) -> Iterator[tuple[ApiServer, float]]:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        server = start(Path(folder))
        seconds = time.monotonic() - begin
        try:
            yield server, seconds
        finally:
            server.stop()


def memory(server: ApiServer) -> float:
    return sum(resident_bytes(family(pid)) for pid in server.pids.values()) / 1e6


def prepare(access: Access) -> None:
    """Creates the kind and the namespaces, and waits until the kind is served."""
    connection = http.client.HTTPSConnection(urlsplit(access.url).netloc, context=access.tls())

    def ask(method: str, path: str, body: object = None) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        if access.token:
            headers["Authorization"] = f"Bearer {access.token}"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    definition = json.loads((HERE / "gadget.crd.json").read_text())
    documents = [("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)]
    for namespace in ("bench", "single", "watched"):
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        documents.append(("/api/v1/namespaces", document))
    for path, document in documents:
        status, body = ask("POST", path, document)
        if status != http.HTTPStatus.CREATED:
            sys.exit(f"{path}: {status} {body.decode()}")
    while ask("GET", COLLECTION.format("bench"))[0] != http.HTTPStatus.OK:
        time.sleep(0.05)
    connection.close()


def build_load(folder: Path) -> Path:
    if shutil.which("go") is None:
        sys.exit("the load generator needs Go to build")
    subprocess.run(["go", "build", "-o", folder / "load", "."], cwd=HERE / "load", check=True)
    return folder / "load"


def show(measured: dict[str, dict[str, float]]) -> None:
    table = Table(
        "", *measured, "unit", title="API servers side by side", caption="ratio: how many times better ours is"
    )
    both = len(measured) == 2
    if both:
        table.add_column("ratio")
        table.add_column("goal")
    for column in table.columns[1:]:
        column.justify = "right"
    for figure in FIGURES:
        values = {side: figures[figure.key] for side, figures in measured.items()}
        row = [figure.title, *(f"{value:,.{digits(value)}f}" for value in values.values()), figure.unit]
        if both:
            ours, real = values["ours"], values["real"]
            ratio = ours / real if figure.more_is_better else real / ours
            reached = figure.goal is None or ratio >= figure.goal
            goal = "" if figure.goal is None else f"{figure.goal:g}x {'reached' if reached else 'BEHIND'}"
            row += [f"{ratio:.2f}x", goal]
        table.add_row(*row)
    Console(width=110).print(table)


def digits(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2


if __name__ == "__main__":
    main()
