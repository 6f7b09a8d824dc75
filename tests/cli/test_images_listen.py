"""`trimtab images listen`: a real registry tells it of a push, and the Registry says so."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cli.conftest import Program
from trimtab.client.api import ApiClient
from trimtab.client.follow import follow
from trimtab.client.protocol import Listing, Query
from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.images.kinds import Notifications, Registry, RegistrySpec
from trimtab.systems.images.runs.claim import pushed
from trimtab.testing.ports import free_ports


@contextlib.contextmanager
def listening(images: Program, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = images.installed("images", "listen", "--listen", "127.0.0.1:0", *words, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        said = re.fullmatch(r"listening at (https?://127\.0\.0\.1:\d+)/NAMESPACE/REGISTRY\n", process.stdout.readline())
        assert said is not None
        yield process, said[1]
    finally:
        process.kill()
        process.communicate()


async def told(client: ApiClient, namespace: str) -> dict[str, tuple[str, ...]]:
    following = follow(client, Registry, Query(namespace=namespace))
    try:
        async for seen in following:
            for registry in seen.items if isinstance(seen, Listing) else (seen.object,):
                assert isinstance(registry, Registry)
                if found := pushed(registry.metadata.annotations or {}):
                    return dict(found)
    finally:
        await following.aclose()
    raise AssertionError("the watch never ends")


async def test_a_push_that_a_registry_tells_of_is_kept(
    images: Program, images_client: ApiClient, tmp_path: Path
) -> None:
    told_by = ObjectMeta(name="told", namespace=images.namespace)
    await images_client.create(Secret(metadata=told_by, type="Opaque", string_data={"token": "lab-token"}))
    spec = RegistrySpec(uri="https://registry.example.com", notifications=Notifications(token_secret="told"))
    await images_client.create(Registry(metadata=ObjectMeta(name="lab", namespace=images.namespace), spec=spec))
    (port,) = free_ports(1)
    with listening(images) as (process, url):
        notify = f"{url}/{images.namespace}/lab"
        with LabRegistry(tmp_path / "registry", port, notify=notify, notify_token="lab-token") as lab:
            async with made.Pusher(lab.url) as pusher:
                await pusher.push("team/app", "1.0", made.image([made.layer({"a": b"b"})]))
            assert await told(images_client, images.namespace) == {"team/app": ("1.0",)}
        process.send_signal(signal.SIGTERM)
        out, err = await asyncio.to_thread(process.communicate, timeout=30)
        assert process.returncode == 0
        assert "lab-token" not in out + err


def test_an_address_that_is_taken_or_wrong_is_one_line(images: Program) -> None:
    with listening(images) as (_, url):
        ran = images("images", "listen", "--listen", url.removeprefix("http://"))
        assert ran.code == 1
        assert "nobody can listen at 127.0.0.1:" in ran.err
    for wrong in ("nowhere", "127.0.0.1:٧٤٨٠"):
        ran = images("images", "listen", "--listen", wrong)
        assert ran.code == 2
        assert "is not HOST:PORT" in ran.err


def test_a_certificate_needs_its_key(images: Program) -> None:
    ran = images("images", "listen", "--tls-certificate", "tls.crt")
    assert ran.code == 2
    ran = images("images", "listen", "--tls-certificate", "tls.crt", "--tls-key", "tls.key")
    assert ran.code == 1
    assert "cannot be read" in ran.err
