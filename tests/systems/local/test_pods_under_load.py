"""The whole local system under constant load: a rollout, a lost pod and a lost controller cost no request."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.needs import needs
from tests.systems.local.pods_kit import DRAIN, Bench, container, deployment, is_ready, ready_probe
from tests.systems.local.test_pods_surviving import controllers_of
from trimtab.client.connect import connect
from trimtab.model.kubernetes import Pod, Service
from trimtab.model.scheme import Scheme, Untyped
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.dataplane
ADDRESS = "local.trimtab.dev/address"


async def test_no_request_is_lost_while_pods_come_and_go(tmp_path: Path, scheme: Scheme) -> None:
    needs("wrk", "kubectl")
    with TrimtabServer(tmp_path, flags=("--local-workloads", "--systems", "none")) as server:
        client = connect(server.kubeconfig, scheme=scheme)
        try:
            await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
            bench = Bench(client, tmp_path / "data")
            service = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}
            metadata = {"name": "web", "namespace": "shop"}
            await client.create(Untyped({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service}))
            strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
            first = container(readinessProbe=ready_probe(), env=[{"name": "VERSION", "value": "v1"}])
            await bench.create(deployment("web", first, replicas=2, strategy=strategy, annotations={DRAIN: "0.1"}))
            await bench.complete()
            address = await _address(client)
            loading = await asyncio.create_subprocess_exec(
                "wrk", "-t1", "-c8", "-d12s", f"http://{address}/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )

            def roll(spec: dict) -> None:
                spec["template"]["spec"]["containers"][0]["env"][0]["value"] = "v2"

            await bench.change("web", roll)
            await _kubectl(server, "rollout", "status", "deployment/web", "--timeout=20s")
            await bench.until(lambda pods: len(pods) == 2)
            os.kill(controllers_of(server), signal.SIGKILL)
            (gone, _) = await bench.pods()
            name = gone["metadata"]["name"]
            await bench.delete(Pod, name)
            await bench.until(lambda pods: len(pods) == 2 and all(p["metadata"]["name"] != name for p in pods))
            await bench.until(lambda pods: all(map(is_ready, pods)))
            said = (await loading.communicate())[0].decode()
            print(said)
            assert "Non-2xx" not in said
            assert "Socket errors" not in said
            found = re.search(r"(\d+) requests in", said)
            assert found is not None
            assert int(found[1]) > 1000
        finally:
            await client.close()


async def _address(client) -> str:
    async with asyncio.timeout(20):
        while True:
            service = await client.get(Service, "web", "shop")
            address = (service.metadata.annotations or {}).get(ADDRESS)
            if address:
                try:
                    _, writer = await asyncio.open_connection(address, 80)
                    writer.write(b"GET / HTTP/1.0\r\nHost: web\r\n\r\n")
                    writer.close()
                    return str(address)
                except OSError:
                    pass
            await asyncio.sleep(0.05)


async def _kubectl(server: TrimtabServer, *words: str) -> None:
    command = ("kubectl", "--kubeconfig", str(server.kubeconfig), "-n", "shop", *words)
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
