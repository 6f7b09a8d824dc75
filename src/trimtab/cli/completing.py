"""`trimtab __complete kinds | names KIND | contexts`, which the scripts of `trimtab completion` ask while somebody types.

It must be quick and it must not disturb: only the standard library is imported where a server of this machine is asked by
its socket, all ends within two seconds, and a failure is silence.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

WITHIN = 2
LIMIT = 500
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+=,-]*")
"""What may be offered. Others name objects: a role may be called `$(reboot)` or `--all`, and bash takes words as they are."""

Fetch = Callable[[str, str], Any]


def run(words: list[str]) -> int:
    """Print what fits, a line each. The exit code is 0 whatever happens: a shell would only show an error."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.alarm(WITHIN)
    try:
        found = sorted(set(_asked(words)))
    except Exception:
        return 0
    sys.stdout.write("".join(f"{each}\n" for each in found if PLAIN.fullmatch(each)))
    return 0


def _asked(words: list[str]) -> Iterator[str]:
    options = {"--namespace": "", "--kubeconfig": "", "--context": ""}
    plain: list[str] = []
    left = iter(words)
    for word in left:
        if word in options:
            options[word] = next(left, "")
        else:
            plain.append(word)
    kubeconfig, context = options["--kubeconfig"], options["--context"]
    if plain[0] == "contexts":
        yield from _contexts(kubeconfig)
        return
    fetch, namespace = _server(kubeconfig, context)
    resources = list(_resources(fetch))
    if plain[0] == "kinds":
        yield from (each["resource"] for _, each in resources if "list" in each["verbs"])
        return
    for base, each in resources:
        if _is_called(each, plain[1].lower()):
            where = f"/namespaces/{options['--namespace'] or namespace}" if each["scope"] == "Namespaced" else ""
            answer = fetch(f"{base}{where}/{each['resource']}?limit={LIMIT}", METADATA)
            yield from (item["metadata"]["name"] for item in answer.get("items") or ())
            return


def _resources(fetch: Fetch) -> Iterator[tuple[str, dict[str, Any]]]:
    for root in ("/api", "/apis"):
        for group in fetch(root, DISCOVERY).get("items") or ():
            name = group["metadata"].get("name")
            for version in group["versions"]:
                base = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                for each in version.get("resources") or ():
                    yield base, each


def _is_called(resource: dict[str, Any], word: str) -> bool:
    names = (resource["resource"], resource.get("singularResource"), *(resource.get("shortNames") or ()))
    kind = (resource.get("responseKind") or {}).get("kind", "")
    return word.partition(".")[0] in (*names, kind.lower())


def _server(kubeconfig: str, context: str) -> tuple[Fetch, str]:
    """How to ask, and the namespace that is meant where none is named."""
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    if not path:
        path = os.path.join(os.environ.get("TRIMTAB_DATA_DIR") or ".trimtab", "kubeconfig")
    beside = os.path.join(os.path.dirname(path), "trimtab.sock")
    if not context and os.path.basename(path) == "kubeconfig" and os.path.exists(beside):
        return lambda where, accept: _by_socket(beside, where, accept), "default"
    if not any(os.path.exists(each) for each in (*path.split(os.pathsep), os.path.expanduser("~/.kube/config"))):
        raise FileNotFoundError(path)  # before anything is imported
    return _by_client(kubeconfig, context)


def _by_socket(place: str, where: str, accept: str) -> Any:
    import socket

    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(1)
        link.connect(place)
        ask = f"GET {where} HTTP/1.1\r\nHost: trimtab\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        link.sendall(ask.encode())
        answer = b"".join(iter(lambda: link.recv(1 << 16), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        body = _joined(body)
    return json.loads(body) if head.split(b" ", 2)[1] == b"200" else {}


def _joined(body: bytes) -> bytes:
    """The pieces of a chunked answer (RFC 9112, 7.1)."""
    whole = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if not length:
            break
        whole.append(rest[:length])
        body = rest[length + 2 :]
    return b"".join(whole)


def _by_client(kubeconfig: str, context: str) -> tuple[Fetch, str]:
    """By way of TLS and credentials, as all commands do it."""
    import asyncio
    from pathlib import Path
    from urllib.parse import parse_qsl, urlsplit

    from trimtab.cli.access import Access, configured, session
    from trimtab.client.transport import Call, document_of

    access = Access(Path(kubeconfig) if kubeconfig else None, context, "")

    async def ask(where: str, accept: str) -> Any:
        parts = urlsplit(where)
        async with session(access) as server:
            call = Call(method="GET", path=parts.path, query=dict(parse_qsl(parts.query)), accept=accept)
            return document_of((await server.transport.call(call)).body)

    return lambda where, accept: asyncio.run(ask(where, accept)), configured(access).namespace or "default"


def _contexts(kubeconfig: str) -> Iterator[str]:
    from trimtab.model.yaml import load

    path = kubeconfig or os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
    with open(path.split(os.pathsep)[0]) as file:
        for each in load(file.read()).get("contexts") or ():
            yield each["name"]
