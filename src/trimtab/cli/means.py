"""What processes that do a system's work need besides its server: blobs, scratch, a queue, workers; and who they are."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from trimtab.client.config import SERVICE_ACCOUNT, Config
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.logs import log
from trimtab.runtime.queue import Queue
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.rights import account
from trimtab.runtime.system import System
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import Blobs
from trimtab.storage.connect import blobs as connect_blobs
from trimtab.storage.scratch import Scratch

SCRATCH = 20 * 1024**3  # bytes
MOST_WORKERS = 4  # each may take half a gigabyte
TIDY_EVERY = 3600.0  # seconds
UNNAMED_FOR = 86400.0  # before a blob goes


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where they are, as options say."""

    data_dir: Path = Path(".trimtab")
    blobs: str = ""
    blobs_token_file: Path | None = None
    blobs_ca_file: Path | None = None
    nats: str = ""
    nats_credentials_file: Path | None = None
    nats_token_file: Path | None = None
    nats_ca_file: Path | None = None


class Means(msgspec.Struct, frozen=True):
    """What all systems of this process share."""

    blobs: Blobs | None
    scratch: Scratch
    queue: Queue
    workers: Workers


@contextlib.asynccontextmanager
async def means(places: Places) -> AsyncIterator[Means]:
    """Ready to use, and tidied now and then. BlobsConfigError, BlobError, QueueUnavailable, ValueError."""
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        files = _files(token_file=places.blobs_token_file, ca_file=places.blobs_ca_file)
        blobs = connect_blobs(places.blobs, **files) if places.blobs else None
        if blobs is not None:
            stack.push_async_callback(blobs.close)
            await blobs.ready()
        queue = connect_queue(
            places.nats or None,
            clock=clock,
            **_files(
                credentials_file=places.nats_credentials_file,
                token_file=places.nats_token_file,
                ca_file=places.nats_ca_file,
            ),
        )
        stack.push_async_callback(queue.close)
        await queue.ready()
        workers = await stack.enter_async_context(Workers(min(MOST_WORKERS, os.cpu_count() or 1)))
        scratch = Scratch(places.data_dir.absolute() / "scratch", SCRATCH)  # programs run in other folders
        tidying = asyncio.create_task(_tidy(blobs, scratch, clock), name="tidying")
        stack.callback(tidying.cancel)
        yield Means(blobs, scratch, queue, workers)


def as_system(config: Config, system: System) -> Config:
    """As the system's account: a pod already is, everyone else says so."""
    if config.source == str(SERVICE_ACCOUNT):
        return config
    return msgspec.structs.replace(config, headers=(*config.headers, ("Impersonate-User", account(system))))


def _files(**given: Path | None) -> dict[str, Any]:
    return {name: path for name, path in given.items() if path is not None}


async def _tidy(blobs: Blobs | None, scratch: Scratch, clock: Clock) -> None:
    """Remove what nobody names any more, and of the scratch what is over its bound. Several processes may do so."""
    while True:
        await clock.sleep(TIDY_EVERY)
        try:
            await scratch.trim()
            if blobs is not None:
                collected = await blobs.collect(grace=UNNAMED_FOR)
                log.info("blobs were collected", count=collected.count, bytes=collected.bytes)
        except Exception:  # whatever it was, the next time is near
            log.exception("nothing was tidied")
