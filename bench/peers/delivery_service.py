"""A web service of the lab as pods of this machine: its template, and where it is reached."""

from __future__ import annotations

import asyncio
import sys

import aiohttp
from delivery_home import DEPLOYMENT, SERVICE, Document, Home

NAMESPACE = "default"
ADDRESS = "local.trimtab.dev/address"
PORTS = [{"name": "http", "port": 80, "targetPort": "http"}]


def template(app: str, version: str, errors: float = 0.0) -> Document:
    arguments = ["--host", "$(POD_IP)", "--port", "8080", "--version", version, "--errors", str(errors)]
    container = {
        "name": "web",
        "image": f"example.com/web:{version}",
        "command": [sys.executable, "-m", "trimtab.lab.web"],
        "args": arguments,
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1},
    }
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [container]},
    }


def deployment(app: str, version: str, replicas: int, errors: float = 0.0, **more: object) -> Document:
    selector = {"matchLabels": {"app": app}}
    return {"replicas": replicas, "selector": selector, "template": template(app, version, errors), **more}


async def plain(home: Home, app: str, version: str, replicas: int, **more: object) -> None:
    """A Deployment and its Service, as they are without a canary."""
    await home.create(DEPLOYMENT, NAMESPACE, app, deployment(app, version, replicas, **more))
    await home.create(SERVICE, NAMESPACE, app, {"selector": {"app": app}, "ports": PORTS})


async def rolled_out(home: Home, app: str) -> None:
    """Until the Deployment is as its spec says, without old pods."""

    def complete(found: Document) -> bool:
        status, wanted = found.get("status") or {}, found["spec"]["replicas"]
        counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        return status.get("observedGeneration") == found["metadata"]["generation"] and counts == [wanted] * 3

    await home.until(DEPLOYMENT, NAMESPACE, app, complete)


async def reached(home: Home, service: str) -> str:
    """Its URL, once a pod answers there."""
    found = await home.until(
        SERVICE, NAMESPACE, service, lambda each: ADDRESS in (each["metadata"].get("annotations") or {})
    )
    url = f"http://{found['metadata']['annotations'][ADDRESS]}/"
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return url
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)
