"""Load: 200 clients, 1,000 watches with slow readers among them, and 100,000 objects, for ten minutes.

    python bench/load.py [--quick] [--seconds N] [--objects N] [--docs] [--picture FILE]

A real `trimtab up`, over TLS; clients and watchers are processes of their own. What each watcher saw is checked against the
store's own log, read from its file meanwhile: every event of its selector, once, in order, none lost. It ends with 1 when an
event was lost, repeated or out of order, an acknowledged write is not in the log, or memory grows without end.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import pickle
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "peers"), str(HERE)]

from load_check import Log, unacknowledged  # noqa: E402 - of bench/peers
from load_check import Row as Logged  # noqa: E402
from load_picture import Panel, picture  # noqa: E402
from load_watchers import Watched, chosen, watch  # noqa: E402
from load_wire import Way  # noqa: E402
from load_writers import Plan, hashed, marks, write  # noqa: E402

import table  # noqa: E402
from table import Row  # noqa: E402
from trimtab.testing.embedded import TrimtabServer  # noqa: E402
from trimtab.testing.peer import read_access  # noqa: E402
from trimtab.testing.usage import cpu_seconds, family, resident_bytes  # noqa: E402

WHOLE = Plan(
    clients=200, watches=1000, slow=20, objects=100_000, namespaces=100, rate=250.0,
    busy_share=0.2, busy_objects=200, busy_bytes=8_000, stall=45.0, seconds=600.0,
)  # fmt: skip
QUICK = Plan(
    clients=20, watches=60, slow=4, objects=1_000, namespaces=10, rate=150.0,
    busy_share=0.6, busy_objects=40, busy_bytes=24_000, stall=12.0, seconds=16.0,
)  # fmt: skip
LOG = """
    SELECT revision, namespace, name, deleted, labels FROM log
    WHERE resource = 'configmaps' AND revision > ? ORDER BY revision
"""
IDLE = 30.0  # seconds that a connection is trusted to be open
WITHOUT = 0.2  # of the time, before slow readers are slow
PICTURE = HERE.parent / "docs" / "pictures" / "load.svg"
GROWTH, SLACK = 1.25, 24e6  # memory may be that much more in the last third than in the first
LATER, JITTER = 1.5, 0.005  # and latencies
SEEN_APART = 2.0  # p99 of writes with slow readers over that without


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few of everything, for seconds: that it works")
    parser.add_argument("--seconds", type=float, help="how long, beside the filling")
    parser.add_argument("--objects", type=int)
    parser.add_argument("--docs", action="store_true", help="put table and picture into docs/")
    parser.add_argument("--picture", type=Path, help="draw latency and memory over time here")
    options = parser.parse_args()
    plan = QUICK if options.quick else WHOLE
    changed = {"seconds": options.seconds or plan.seconds, "objects": options.objects or plan.objects}
    plan = Plan(**{field: changed.get(field, getattr(plan, field)) for field in plan.__struct_fields__})
    with tempfile.TemporaryDirectory() as folder, TrimtabServer(Path(folder), flags=("--systems", "none")) as server:
        run = Run(plan, server, Path(folder))
        run.measure()
        rows, faults = run.judged()
    table.show(
        f"Load: {plan.clients} clients, {plan.watches} watches, {plan.objects:,} objects, {plan.seconds:g} s", rows
    )
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    for path in [options.picture, PICTURE if options.docs else None]:
        if path is not None:
            path.write_text(run.picture())
    if options.docs:
        table.renew("load", rows)
    sys.exit(1 if faults else 0)


class Sample(NamedTuple):
    at: float
    memory: float
    wal: float


class Follower(threading.Thread):
    """Reads the log from the store's file while it is written, before it is compacted; and the server's memory."""

    def __init__(self, server: TrimtabServer, file: Path) -> None:
        super().__init__(daemon=True)
        self._pids = family(server.pids["server"])
        self._file = file
        self.rows: list[Logged] = []
        self.samples: list[Sample] = []
        self._over = threading.Event()

    def run(self) -> None:
        store = sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)
        done = False
        while not done:
            done = self._over.wait(0.5)
            newest = self.rows[-1].revision if self.rows else 0
            for revision, namespace, name, deleted, labels in store.execute(LOG, (newest,)).fetchall():
                part = json.loads(labels).get("part", "") if labels else ""
                self.rows.append(Logged(revision, namespace, name, bool(deleted), part))
            wal = self._file.with_name(self._file.name + "-wal")
            self.samples.append(Sample(time.monotonic(), resident_bytes(self._pids), wal.stat().st_size))
        store.close()

    def finish(self) -> None:
        self._over.set()
        self.join()


class Run:
    def __init__(self, plan: Plan, server: TrimtabServer, folder: Path) -> None:
        self.plan, self._server, self._folder = plan, server, folder
        access = read_access(server.kubeconfig)
        self._way = Way(
            access.url, str(access.ca), str(access.certificate or ""), str(access.key or ""), access.token or ""
        )
        self._asking = http.client.HTTPSConnection(urlsplit(access.url).netloc, context=access.tls(), timeout=60)
        self._spawn = multiprocessing.get_context("spawn")
        self._follower = Follower(server, server.kubeconfig.parent / "store.db")
        self._acknowledged: dict[int, int] = {}
        self._refused: list[str] = []
        self._took: list[tuple[float, float]] = []
        self._lags: list[tuple[float, float]] = []
        self._watched: list[Watched] = []
        self._filled = self._cpu = self._asked = 0.0

    def measure(self) -> None:
        plan = self.plan
        self._follower.start()
        for name in ("busy", *(f"n-{number}" for number in range(plan.namespaces))):
            self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        began = time.monotonic()
        self._finish(self._writers(fill=True, begin=began))
        self._filled = plan.objects / (time.monotonic() - began)
        self._took.clear()
        say(f"filled with {plan.objects:,} objects, {self._filled:,.0f}/s")
        since = int(json.loads(self._ask("GET", "/api/v1/configmaps?limit=1"))["metadata"]["resourceVersion"])
        self.begin = time.monotonic() + 4.0  # processes start, watchers dial
        self.slow_from = self.begin + WITHOUT * plan.seconds
        watchers = self._watchers(since)
        used = cpu_seconds(family(self._server.pids["server"]))
        self._finish(self._writers(fill=False, begin=self.begin))
        self._cpu = (cpu_seconds(family(self._server.pids["server"])) - used) / plan.seconds
        say("the clients are done; the watchers read what is left")
        for namespace, name, part in marks(plan):
            mark = {"metadata": {"name": name, "labels": {"part": part}}}
            self._ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", mark)
        for process, out in watchers:
            process.join()
            watched, lags = pickle.loads(out.read_bytes())
            self._watched += watched
            self._lags += lags
        self._listed = self._list()
        self._follower.finish()

    def judged(self) -> tuple[list[Row], list[str]]:
        """The table, and what must not be."""
        plan, rows = self.plan, self._follower.rows
        log = Log(rows, {*(chosen(plan, number) for number in range(plan.watches)), ("", "")})
        told = [(one, log.faults(one)) for one in self._watched]
        faults = [f"{one.namespace or 'all'} part={one.part or 'all'}: {each}" for one, found in told for each in found]
        lost = unacknowledged(rows, self._acknowledged)
        faults += [f"{lost} acknowledged writes are not in the log"] if lost else []
        faults += [f"refused: {each}" for each in self._refused]
        if len(self._watched) != plan.watches:
            faults.append(f"{plan.watches - len(self._watched)} watchers did not come to the end")
        if self._listed != log.state(("", ""), rows[-1].revision):
            faults.append("the list at the end is not what the log says")
        slow = [one for one in self._watched if one.slow]
        expired, broken = sum(one.expired for one in slow), sum(one.broken for one in slow)
        others = sum(one.expired + one.broken for one in self._watched if not one.slow)
        events = sum(len(segment.revisions) for one in self._watched for segment in one.segments)
        without = [took for at, took in self._took if at < self.slow_from]
        beside = [took for at, took in self._took if at >= self.slow_from]
        memory, latency = self._thirds(self._memory(), median), self._thirds(self._took, median)
        tail, lag = self._thirds(self._took, p99), self._thirds(self._lags, p99)
        bounded = memory[1] <= memory[0] * GROWTH + SLACK
        complete = not faults
        if not bounded:
            faults.append(f"memory grew from {table.megabytes(memory[0])} to {table.megabytes(memory[1])}")
        ratio, apart = p99(beside) / max(p99(without), JITTER), (ms(p99(without)), ms(p99(beside)))
        made = [
            Row("events that watchers saw, all as in the log", "", f"{events:,}", None, "none lost", complete),
            Row("slow readers told 410, or cut off", "", f"{expired} + {broken}", None, "some", expired + broken > 0),
            Row("other watchers cut off", "", f"{others}", None, "none", others == 0),
            Row("writes, p99: without slow readers, with them", *apart, None, "2x", ratio <= SEEN_APART),
            _flat("writes, p50: first third, last third", latency, ms, latency[1] <= latency[0] * LATER + JITTER),
            _flat("writes, p99: first third, last third", tail, ms, tail[1] <= tail[0] * LATER + JITTER),
            _flat("delivery to watchers, p99: first third, last third", lag, ms, lag[1] <= lag[0] * LATER + JITTER),
            _flat("memory: first third, last third", memory, table.megabytes, bounded),
            Row("log beside the database, highest", "", table.megabytes(max(s.wal for s in self._follower.samples))),
            Row("writes a second; CPU of the server", "", f"{len(self._took) / plan.seconds:,.0f}/s; {self._cpu:.0%}"),
        ]  # fmt: skip
        return made, faults

    def picture(self) -> str:
        def line(points: Sequence[tuple[float, float]], of: object, scale: float) -> list[tuple[float, float]]:
            return [(at, value * scale) for at, value in self._binned(points, of)]  # type: ignore[arg-type]

        panels = [
            Panel("Writes", "ms", (("p99", line(self._took, p99, 1e3)), ("p50", line(self._took, median, 1e3)))),
            Panel("Delivery to watchers", "ms", (("p99", line(self._lags, p99, 1e3)), ("p50", line(self._lags, median, 1e3)))),
            Panel("Memory of the server", "MB", (("resident", line(self._memory(), median, 1e-6)),)),
        ]  # fmt: skip
        plan = self.plan
        title = f"{plan.clients} clients, {plan.watches} watches, {plan.objects:,} objects; readers are slow where it is shaded"
        return picture(title, panels, plan.seconds, self.slow_from - self.begin)

    def _memory(self) -> list[tuple[float, float]]:
        return [(sample.at, sample.memory) for sample in self._follower.samples if sample.at >= self.begin]

    def _binned(self, points: Sequence[tuple[float, float]], of: object) -> list[tuple[float, float]]:
        width = max(1.0, self.plan.seconds / 120)
        bins: dict[int, list[float]] = {}
        for at, value in points:
            if self.begin <= at < self.begin + self.plan.seconds:
                bins.setdefault(int((at - self.begin) / width), []).append(value)
        return [(number * width, of(values)) for number, values in sorted(bins.items())]  # type: ignore[operator]

    def _thirds(self, points: Sequence[tuple[float, float]], of: object) -> tuple[float, float]:
        """The first and the last third of the time with slow readers."""
        end = self.begin + self.plan.seconds
        third = (end - self.slow_from) / 3
        first = [value for at, value in points if self.slow_from <= at < self.slow_from + third]
        last = [value for at, value in points if end - third <= at < end]
        return of(first), of(last)  # type: ignore[operator]

    def _writers(self, *, fill: bool, begin: float) -> list[tuple[BaseProcess, Path]]:
        half = self.plan.clients // 2
        shards = (range(half), range(half, self.plan.clients))
        return [self._start(write, "writers", shard, fill, begin) for shard in shards]

    def _watchers(self, since: int) -> list[tuple[BaseProcess, Path]]:
        share = max(50, self.plan.watches // 4)
        shards = [range(at, min(at + share, self.plan.watches)) for at in range(0, self.plan.watches, share)]
        return [self._start(watch, "watchers", shard, since, self.begin, self.slow_from) for shard in shards]

    def _start(self, work: object, name: str, shard: range, *rest: object) -> tuple[BaseProcess, Path]:
        out = self._folder / f"{name}-{shard.start}"
        process = self._spawn.Process(target=work, args=(self._way, self.plan, shard, *rest, out), daemon=True)  # type: ignore[arg-type]
        process.start()
        return process, out

    def _finish(self, writers: list[tuple[BaseProcess, Path]]) -> None:
        for process, out in writers:
            process.join()
            if process.exitcode:
                sys.exit(f"a process of clients failed\n{self._server.logs()}")
            at, took, acknowledged, refused = pickle.loads(out.read_bytes())
            self._took += zip(at, took, strict=True)
            self._acknowledged |= dict(acknowledged)
            self._refused += refused

    def _list(self) -> dict[int, int]:
        listed: dict[int, int] = {}
        go_on = ""
        while True:
            page = json.loads(self._ask("GET", f"/api/v1/configmaps?limit=500&continue={go_on}"))
            for item in page["items"]:
                meta = item["metadata"]
                listed[hashed(meta["namespace"], meta["name"])] = int(meta["resourceVersion"])
            go_on = page["metadata"].get("continue", "")
            if not go_on:
                return listed

    def _ask(self, method: str, path: str, body: object = None) -> bytes:
        if time.monotonic() - self._asked > IDLE:
            self._asking.close()  # it opens again by itself
        self._asked = time.monotonic()
        headers = {"Content-Type": "application/json"}
        if self._way.token:
            headers["Authorization"] = f"Bearer {self._way.token}"
        self._asking.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._asking.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            sys.exit(f"{method} {path}: {answer.status} {text[:500]!r}")
        return text


def _flat(title: str, thirds: tuple[float, float], shown: object, flat: bool) -> Row:
    return Row(title, shown(thirds[0]), shown(thirds[1]), None, "flat", flat)  # type: ignore[operator]


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0


def p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)] if values else 0.0


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
