"""A kind in two versions, and a real HTTPS server that converts between them. `v1` says `spec.size`, `v2` says
`spec.box.size`."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from trimtab.server.auth.certificates import Issuer

GROUP = "shapes.example.com"
V1, V2 = f"{GROUP}/v1", f"{GROUP}/v2"
SHAPES = "/apis/shapes.example.com/{}/namespaces/default/shapes"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Document = dict[str, Any]


def flat_or_boxed(document: Document, desired: str) -> Document:
    """The honest conversion. What a shape's colour is, `v2` keeps in a label."""
    made: Document = orjson.loads(orjson.dumps(document))
    spec, labels = made.get("spec") or {}, made["metadata"].get("labels") or {}
    if desired == V2:
        box = {"size": spec["size"]} if "size" in spec else {}
        made["spec"] = {"box": box} | {k: v for k, v in spec.items() if k in ("note", "kept")}
        if "colour" in spec:
            made["metadata"]["labels"] = labels | {"colour": spec["colour"]}
    else:
        made["spec"] = {k: v for k, v in spec.items() if k in ("note", "kept")}
        if "size" in (spec.get("box") or {}):
            made["spec"]["size"] = spec["box"]["size"]
        if "colour" in labels:
            made["spec"]["colour"] = labels.pop("colour")
            made["metadata"]["labels"] = labels
    return made | {"apiVersion": desired}


class Webhook:
    """What it was asked, and how it answers: `convert` each object, then `twist` the whole answer."""

    def __init__(self, ca: bytes) -> None:
        self.port = 0
        self.ca = ca
        self.asked: list[Document] = []
        self.convert: Callable[[Document, str], Document] = flat_or_boxed
        self.twist: Callable[[Document], Any] = lambda answer: answer
        self.judge: Callable[[Document], Document] = lambda asked: {"uid": asked["uid"], "allowed": True}
        self.failure = ""
        self.held: asyncio.Event | None = None
        self.lines: set[asyncio.BaseTransport] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            self.lines.add(request.transport)
        review = await request.json()
        asked = review["request"]
        if review["kind"] == "AdmissionReview":
            return web.json_response({**review, "response": self.judge(asked)})
        self.asked.append(asked)
        if self.held is not None:
            await self.held.wait()
        if self.failure:
            result = {"status": "Failure", "message": self.failure}
            response = {"uid": asked["uid"], "result": result}
        else:
            made = [self.convert(one, asked["desiredAPIVersion"]) for one in asked["objects"]]
            response = {"uid": asked["uid"], "result": {"status": "Success"}, "convertedObjects": made}
        answer = self.twist({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response})
        return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)

    def client_config(self) -> Document:
        return {
            "url": f"https://localhost:{self.port}/convert",
            "caBundle": base64.b64encode(self.ca).decode(),
        }

    def conversion(self) -> Document:
        webhook = {"clientConfig": self.client_config(), "conversionReviewVersions": ["v1"]}
        return {"strategy": "Webhook", "webhook": webhook}


@contextlib.asynccontextmanager
async def converting(folder: Path) -> AsyncIterator[Webhook]:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    authority = Issuer.create("test", now, day)
    serving = folder / "serving.pem"
    serving.write_bytes(authority.serving(("localhost", "127.0.0.1", "hook.default.svc"), now, day))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(serving)
    webhook = Webhook(authority.certificate_pem)
    application = web.Application(client_max_size=8 * 1024 * 1024)
    application.router.add_post("/{tail:.*}", webhook.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    webhook.port = runner.addresses[0][1]
    try:
        yield webhook
    finally:
        if webhook.held is not None:
            webhook.held.set()
        await runner.cleanup()
        for line in webhook.lines:  # TLS would wait for the peer to say farewell, longer than the test's loop lives
            line.abort()  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)


def _version(name: str, spec: Document, *, stored: bool, selectable: str) -> Document:
    status = {"type": "object", "properties": {"seen": {"type": "integer"}}}
    properties = {"spec": {"type": "object", "properties": spec}, "status": status}
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": selectable}],
    }


def definition(conversion: Document | None, storage: str = "v1") -> Document:
    note = {"note": {"type": "string"}}
    flat: Document = {
        "size": {"type": "integer"},
        "colour": {"type": "string"},
        "kept": {"type": "string", "default": "by v1"},
    }
    box = {"type": "object", "properties": {"size": {"type": "integer"}}}
    boxed: Document = {"box": box, "kept": {"type": "string"}, "own": {"type": "string", "default": "by v2"}}
    versions = [
        _version("v1", flat | note, stored=storage == "v1", selectable=".spec.size"),
        _version("v2", boxed | note, stored=storage == "v2", selectable=".spec.box.size"),
    ]
    spec: Document = {
        "group": GROUP,
        "names": {"plural": "shapes", "singular": "shape", "kind": "Shape", "listKind": "ShapeList"},
        "scope": "Namespaced",
        "versions": versions,
    }
    if conversion is not None:
        spec["conversion"] = conversion
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shapes.{GROUP}"},
        "spec": spec,
    }


def flat(name: str, **spec: Any) -> Document:
    return {"apiVersion": V1, "kind": "Shape", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def boxed(name: str, **spec: Any) -> Document:
    return flat(name, **spec) | {"apiVersion": V2}
