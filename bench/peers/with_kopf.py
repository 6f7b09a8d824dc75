"""The operator of the benchmark, written with kopf: a ConfigMap for each Gadget, and a status.

    python bench/peers/with_kopf.py --kubeconfig FILE --ledger FILE [--workers 8] [--in-status]

It is set up as someone would who knows kopf and wants speed: uvloop (as `kopf run` has it), asynchronous handlers on a
kept aiohttp session with orjson, no Events, no logs below warnings. kopf starts a worker for each object at once; a
semaphore in the handlers holds them to the asked concurrency. (`queueing.worker_limit` would not do: a worker keeps its
place for seconds after its work.) It follows the ConfigMaps as the others do. kopf notes what it has handled in an
annotation, which is a write of its own; `--in-status` puts the note into the status, where it goes with what we write
there.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import orjson
import uvloop
from ledger import Ledger
from memory import collect_when_asked

from trimtab.testing.peer import Access, read_access

GROUP, VERSION, PLURAL = "bench.trimtab.dev", "v1", "gadgets"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--in-status", action="store_true")
    options = parser.parse_args()
    logging.getLogger().setLevel(logging.WARNING)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(operate(options))


async def operate(options: argparse.Namespace) -> None:
    ledger = Ledger(options.ledger)
    collect_when_asked(ledger)
    configure(in_status=options.in_status)
    access = read_access(options.kubeconfig)
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    async with aiohttp.ClientSession(
        access.url,
        connector=aiohttp.TCPConnector(ssl=access.tls(), limit=options.workers),
        headers=headers,
        json_serialize=lambda value: orjson.dumps(value).decode(),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        register(access, session, ledger, asyncio.Semaphore(options.workers))
        await kopf.operator(namespaces=["bench"], standalone=True)


def configure(*, in_status: bool) -> None:
    @kopf.on.startup()
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage()
        if in_status:
            settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage(field="status.kopf.last")
            settings.persistence.progress_storage = kopf.StatusProgressStorage(field="status.kopf.progress")


def register(access: Access, session: aiohttp.ClientSession, ledger: Ledger, places: asyncio.Semaphore) -> None:
    @kopf.on.startup()
    async def start(**_: Any) -> None:
        ledger.set_ready()

    @kopf.on.login()
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=access.url,
            ca_path=str(access.ca),
            certificate_path=str(access.certificate) if access.certificate else None,
            private_key_path=str(access.key) if access.key else None,
            token=access.token,
        )

    def enabled(spec: kopf.Spec, **_: Any) -> bool:
        ledger.called()
        return bool(spec.get("enabled"))

    @kopf.on.create(GROUP, VERSION, PLURAL, when=enabled)
    async def created(body: kopf.Body, spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
        started = time.time_ns()
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": body["metadata"]["name"]},
            "data": {"sequence": spec["sequence"]},
        }
        kopf.append_owner_reference(document, owner=body)
        await create(document)
        finish(spec, patch, started)

    async def create(document: dict[str, Any]) -> None:
        async with places, session.post("/api/v1/namespaces/bench/configmaps", json=document) as answer:
            await answer.read()
            answer.raise_for_status()

    def owned(meta: kopf.Meta, **_: Any) -> bool:
        return any(owner["kind"] == "Gadget" for owner in meta.get("ownerReferences", ()))

    @kopf.on.event("v1", "configmaps", when=owned)
    async def child(event: kopf.RawEvent, body: kopf.Body, **_: Any) -> None:
        """The others follow what they own, so this one does: what someone deletes is made again."""
        if event["type"] == "DELETED":
            kept = {key: body["metadata"][key] for key in ("name", "ownerReferences")}
            await create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept, "data": dict(body["data"])})

    @kopf.on.update(GROUP, VERSION, PLURAL, field="spec", when=enabled)
    async def changed(name: str, spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
        started = time.time_ns()
        async with (
            places,
            session.patch(
                f"/api/v1/namespaces/bench/configmaps/{name}",
                data=orjson.dumps({"data": {"sequence": spec["sequence"]}}),
                headers={"Content-Type": "application/merge-patch+json"},
            ) as answer,
        ):
            await answer.read()
            answer.raise_for_status()
        finish(spec, patch, started)

    def finish(spec: kopf.Spec, patch: kopf.Patch, started: int) -> None:
        patch.status["observed"] = spec["sequence"]  # sent by kopf when the handler has returned
        ledger.done(int(spec["sequence"]), started)


if __name__ == "__main__":
    main()
