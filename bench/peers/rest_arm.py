"""The ARM emulator as a process, and the bare loop of requests against it: as fast as anyone can be with it."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from trimtab.testing.processes import Process
from trimtab.testing.usage import cpu_seconds

DOCUMENT = Path(__file__).parents[2] / "examples" / "rest" / "compute.json"
VERSION = "2024-07-01"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
SETS = "providers/Microsoft.Compute/virtualMachineScaleSets"
BODY: dict[str, Any] = {"location": "westus", "sku": {"name": "Standard_D2_v3", "capacity": 3}, "tags": {"team": "web"}}
"""What a scale set is made of, by the loop and by the objects."""


def group_id(number: int) -> str:
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/group{number}"


class Arm:
    """Every operation is done when it is answered, and nothing is limited."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "trimtab.lab.arm", str(DOCUMENT), "--instant"]
        self._process = Process(command, log=folder / "arm.log")
        self._process.wait_until(lambda: "http://" in self._process.log.read_text(), within=60)
        self.url = self._process.log.read_text().split()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def cpu(self) -> float:
        return cpu_seconds((self._process.pid,))

    def counts(self) -> Mapping[str, Any]:
        """What was asked since the log was last cleared: by verb, by method and type; writes; resources."""
        return self._told("counts")

    def asked(self, *verbs: str) -> int:
        """How many requests there were, of these verbs or in all."""
        found: dict[str, int] = self.counts()["verbs"]
        return sum(count for verb, count in found.items() if not verbs or verb in verbs)

    def requests(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._told("requests")
        return found

    def body(self, identifier: str) -> dict[str, Any]:
        found: dict[str, Any] = self._told(f"resources?id={identifier}")
        return found

    def clear(self) -> None:
        self._told("clear", {})

    def make_group(self, number: int) -> None:
        self._told("put", {"id": group_id(number), "body": {"location": "westus"}})

    def _told(self, order: str, given: Any = None) -> Any:
        data = None if given is None else json.dumps(given).encode()
        request = urllib.request.Request(f"{self.url}/_lab/{order}", data, method="GET" if data is None else "POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


def ceiling(folder: Path, objects: int, parents: int, concurrent: int) -> float:
    """Scale sets in a second, each by GET, PUT and GET, without any control plane."""
    with Arm(folder / "ceiling") as arm:
        for number in range(parents):
            arm.make_group(number)
        return asyncio.run(_loop(arm.url, objects, parents, concurrent))


async def _loop(url: str, objects: int, parents: int, concurrent: int) -> float:
    import aiohttp

    numbers = itertools.count()
    body = json.dumps(BODY)
    headers = {"Content-Type": "application/json"}

    async def work(http: aiohttp.ClientSession) -> None:
        while (number := next(numbers)) < objects:
            at = f"{url}{group_id(number % parents)}/{SETS}/set{number}?api-version={VERSION}"
            for method, expected in (("GET", 404), ("PUT", 201), ("GET", 200)):
                sent = {"data": body, "headers": headers} if method == "PUT" else {}
                async with http.request(method, at, **sent) as answer:  # type: ignore[arg-type]
                    await answer.read()
                    if answer.status != expected:
                        raise RuntimeError(f"the emulator answers {answer.status} to {method} {at}")

    began = time.perf_counter()
    async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as tasks:
        for _ in range(concurrent):
            tasks.create_task(work(http))
    return objects / (time.perf_counter() - began)
