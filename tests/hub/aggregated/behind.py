"""A real API server that aggregates, and hubs behind it.

There is no network of pods here. A Service of type ExternalName leads the API server to `localhost`, at the port that the
APIService names; the certificate that it expects there is still the Service's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, document_of
from trimtab.hub.install import NAME, api_services, rights
from trimtab.model.errors import StatusError
from trimtab.model.kind import Kind
from trimtab.model.scheme import Untyped
from trimtab.runtime.apply import apply
from trimtab.runtime.people import for_people
from trimtab.runtime.system import NAMESPACE
from trimtab.testing.cluster import RealCluster
from trimtab.testing.pki import Authority

PROXY = "front-proxy-client"


def aggregating(folder: Path) -> RealCluster:
    """A cluster whose API server shows others a certificate of an authority of its own."""
    (folder / "proxy").mkdir()
    authority = Authority(folder / "proxy", name="front-proxy-ca")
    pair = authority.client(PROXY)
    authority.client("somebody-else")
    flags = (
        f"--requestheader-client-ca-file={authority.certificate}",
        f"--requestheader-allowed-names={PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pair.certificate}",
        f"--proxy-client-key-file={pair.key}",
    )
    return RealCluster(folder, server_flags=flags)


async def install(client: ApiClient, kinds: Sequence[Kind], port: int) -> None:
    """What `trimtab install` brings, with a Service that leads to this machine."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port, "targetPort": port}]}
    metadata = {"name": NAME, "namespace": NAMESPACE}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    people = for_people("trimtab:papers", (), kinds, {})
    for document in (namespace, *rights(kinds), *people, service, *api_services(kinds, port=port)):
        await apply(client, Untyped(document), manager="test", force=True)


async def available(client: ApiClient, kinds: Sequence[Kind]) -> None:
    """Until the API server has found that what is behind the APIServices answers."""
    async with asyncio.timeout(60):
        for document in api_services(kinds):
            path = f"/apis/apiregistration.k8s.io/v1/apiservices/{document['metadata']['name']}"
            while True:
                found = document_of((await client.transport.call(Call(method="GET", path=path))).body)
                conditions = (found.get("status") or {}).get("conditions") or ()
                if any(c["type"] == "Available" and c["status"] == "True" for c in conditions):
                    break
                await asyncio.sleep(0.05)


async def uninstall(client: ApiClient, kinds: Sequence[Kind]) -> None:
    for document in api_services(kinds):
        path = f"/apis/apiregistration.k8s.io/v1/apiservices/{document['metadata']['name']}"
        with contextlib.suppress(StatusError):
            await client.transport.call(Call(method="DELETE", path=path, body=b"{}"))


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def doc(self) -> Any:
        return orjson.loads(self.out)


async def kubectl(cluster: RealCluster, *words: str, stdin: bytes = b"") -> Said:
    """One command of the real kubectl, which keeps what it learns in a folder of the cluster's."""
    program = shutil.which("kubectl")
    assert program is not None
    cache = cluster.kubeconfig.parent / "kubectl"
    process = await asyncio.create_subprocess_exec(
        program,
        f"--kubeconfig={cluster.kubeconfig}",
        f"--cache-dir={cache}",
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(cluster.kubeconfig.parent)},
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(stdin)
    assert process.returncode is not None
    return Said(process.returncode, out.decode(), err.decode())


@contextlib.asynccontextmanager
async def balanced(port: int, backends: list[int]) -> AsyncIterator[None]:
    """Connections to a port, handed to backends in turn, as a Service of a cluster does; to the next when one is gone."""
    turn = 0
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal turn
        for _ in backends:
            turn += 1
            try:
                there, back = await asyncio.open_connection("127.0.0.1", backends[turn % len(backends)])
            except OSError:
                continue
            for pair in ((reader, back), (there, writer)):
                task = asyncio.create_task(pump(*pair))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            return
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
