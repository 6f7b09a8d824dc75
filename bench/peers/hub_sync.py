"""A sync of many documents from Git, beside `kubectl apply --server-side` and a bare loop of applies, on one server.

The loop and the sync take turns, each into a project of its own, and of their times the middle one counts: a machine is not
equally fast from one second to the next.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, aclosing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.follow import follow
from trimtab.client.protocol import Listing, Named, Query
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model.clock import SystemClock
from trimtab.model.scheme import Untyped
from trimtab.model.yaml import dump
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

HUB = "hub.trimtab.dev/v3"
SYNC = Named(HUB, "GitSync")
CLIENTS = 32
BRANCH = "main"
TEAM = "team"


class Synced(NamedTuple):
    """Seconds, but for the last two, which are milliseconds."""

    documents: int
    kubectl: float
    loop: float
    sync: float
    unchanged: float
    one_p50: float
    one_max: float


def measure(count: int, kind: str, turns: int, rounds: int, say: Callable[[str], None]) -> Synced:
    """`turns` of the loop and the sync, `rounds` of one changed document."""
    folder = Path(tempfile.mkdtemp(prefix="hub-bench-"))
    try:
        with ExitStack() as stack:
            return asyncio.run(_measure(stack, folder, count, kind, turns, rounds, say))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(
    stack: ExitStack, folder: Path, count: int, kind: str, turns: int, rounds: int, say: Callable[[str], None]
) -> Synced:
    (folder / "home").mkdir()
    server = stack.enter_context(TrimtabServer(folder / "home", flags=("--systems", "platform,gitops")))
    daemon = stack.enter_context(GitDaemon(folder / "git", *free_ports(1)))
    client = connect(kubeconfig=server.kubeconfig)
    await _project(client, "by-kubectl")
    say(f"kubectl apply of {count:,} {kind}s")
    kubectl = await asyncio.to_thread(_kubectl, server.kubeconfig, folder, count, kind)
    loops, syncs, project = [], [], ""
    for turn in range(turns):
        say(f"a bare loop of applies, then a sync from Git, {turn + 1} of {turns}")
        loops.append(await _loop(client, count, kind, f"by-loop-{turn}"))
        project = f"by-sync-{turn}"
        syncs.append(await _sync(client, daemon, count, kind, project))
    say("a sync of what did not change")
    unchanged = []
    for _ in range(3):
        started = time.perf_counter()
        command = [_trimtab(), "git", "sync", TEAM, "-n", project, "--kubeconfig", str(server.kubeconfig)]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
        unchanged.append(time.perf_counter() - started)
    say("one changed document, told by a webhook")
    log = folder / "listen.log"
    listening = [_trimtab(), "git", "listen", "--listen", "127.0.0.1:0", "--kubeconfig", str(server.kubeconfig)]
    listener = Process(listening, log=log)
    stack.callback(listener.stop)
    listener.wait_until(lambda: "listening at" in log.read_text(), within=20)
    [base] = re.findall(r"listening at (http://[^/]+)/", log.read_text())
    times = [await _one(client, daemon, base, kind, project, n) for n in range(rounds)]
    await client.close()
    return Synced(
        documents=count,
        kubectl=kubectl,
        loop=median(loops),
        sync=median(syncs),
        unchanged=median(unchanged),
        one_p50=median(times) * 1e3,
        one_max=max(times) * 1e3,
    )


def document(kind: str, namespace: str, number: int, mark: str = "") -> dict[str, Any]:
    """About half a kilobyte."""
    metadata = {"name": f"d{number:05}", "namespace": namespace, "labels": {"bench": "hub", "shard": str(number % 7)}}
    text = hashlib.sha256(f"{number}{mark}".encode()).hexdigest()
    if kind == "ConfigMap":
        data = {"number": str(number), "mark": mark or "none", "text": text * 4}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}
    spec = {"namespace": f"ns-{text[:8]}", "artifact": {"uploadedYAML": {"paths": [{"name": f"{text}.yaml"}]}}}
    return {"apiVersion": "infra.trimtab.dev/v3", "kind": kind, "metadata": metadata, "spec": spec}


def _kubectl(kubeconfig: Path, folder: Path, count: int, kind: str) -> float:
    """The documents in one file: the fastest that kubectl has."""
    file = folder / "all.yaml"
    file.write_text("---\n".join(dump(document(kind, "by-kubectl", n)) for n in range(count)))
    command = ["kubectl", "--kubeconfig", str(kubeconfig), "apply", "--server-side", "-f", str(file)]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


async def _loop(client: ApiClient, count: int, kind: str, project: str) -> float:
    await _project(client, project)
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await _apply(client, document(kind, project, number))

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(CLIENTS)))
    return time.perf_counter() - started


async def _sync(client: ApiClient, daemon: GitDaemon, count: int, kind: str, project: str) -> float:
    """Seconds from the creation of a GitSync until it says that all is applied."""
    await _project(client, project)
    files = {f"{kind.lower()}s/{n:05}.yaml": dump(document(kind, project, n)) for n in range(count)}
    head = daemon.repositories.create(project, files, branch=BRANCH)
    for made in _sync_documents(daemon.url(project), project):
        await _apply(client, made)
    started = time.perf_counter()
    await _apply(client, _git_sync(project))
    await _applied(client, head, project)
    return time.perf_counter() - started


async def _project(client: ApiClient, name: str) -> None:
    await _apply(client, {"apiVersion": HUB, "kind": "Project", "metadata": {"name": name}, "spec": {}})


async def _apply(client: ApiClient, made: dict[str, Any]) -> None:
    await client.apply(Untyped(made), manager="bench", force=True)


def _sync_documents(url: str, project: str) -> list[dict[str, Any]]:
    place = {"namespace": project}
    secret = {"name": "hook", **place}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": {"token": "bench"}},
        {"apiVersion": HUB, "kind": "Repository", "metadata": {"name": TEAM, **place}, "spec": {"endpoint": url}},
    ]


def _git_sync(project: str) -> dict[str, Any]:
    hooks = [{"name": "push", "provider": "github", "secretRef": {"name": "hook", "key": "token"}}]
    spec = {"repository": TEAM, "revision": BRANCH, "triggers": {"interval": "1h", "webhooks": hooks}}
    return {"apiVersion": HUB, "kind": "GitSync", "metadata": {"name": TEAM, "namespace": project}, "spec": spec}


async def _applied(client: ApiClient, commit: str, project: str) -> None:
    """Until the sync says that it has applied this commit."""
    query = Query(namespace=project)
    async with aclosing(follow(client, SYNC, query, clock=SystemClock())) as following:
        async for told in following:
            for item in told.items if isinstance(told, Listing) else [told.object]:
                status = (item.raw if item is not None else {}).get("status") or {}
                if status.get("lastAppliedRevision") == commit:
                    return


async def _one(client: ApiClient, daemon: GitDaemon, base: str, kind: str, project: str, number: int) -> float:
    """Seconds from the webhook of a push until the document is live."""
    mark = f"round-{number}"
    wanted = document(kind, project, number, mark)
    at = f"{kind.lower()}s/{number:05}.yaml"
    commit = daemon.repositories.commit(project, {at: dump(wanted)}, branch=BRANCH, message=mark)
    named = Named(wanted["apiVersion"], kind)
    name = wanted["metadata"]["name"]
    field, word = ("data", "mark") if kind == "ConfigMap" else ("spec", "namespace")
    query = Query(namespace=project, fields=f"metadata.name={name}")
    async with aclosing(follow(client, named, query, clock=SystemClock())) as following:
        await anext(following)
        started = time.perf_counter()
        told = asyncio.create_task(asyncio.to_thread(_push, f"{base}/{project}/{TEAM}/push", commit))
        async for event in following:
            for item in event.items if isinstance(event, Listing) else [event.object]:
                found = item.raw if item is not None else {}
                if (found.get(field) or {}).get(word) == wanted[field][word]:
                    taken = time.perf_counter() - started
                    await told
                    await _applied(client, commit, project)
                    return taken
    raise AssertionError("unreachable")


def _push(url: str, commit: str) -> None:
    body = json.dumps({"ref": f"refs/heads/{BRANCH}", "after": commit}).encode()
    signature = hmac.new(b"bench", body, hashlib.sha256).hexdigest()
    headers = {
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": commit,
        "X-Hub-Signature-256": f"sha256={signature}",
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 202


def _trimtab() -> str:
    return str(Path(sys.executable).with_name("trimtab"))
