"""`trimtab images worker`: it takes messages from a real NATS server, and acts as the system's account."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path

from tests.cli.conftest import Program
from tests.runtime.widgets import until_found
from tests.systems.images.station import debian
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.lab.registry_images import Pusher
from trimtab.model.clock import SystemClock
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.queue import connect
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.images.kinds import SBOM, Image, ImageLayer, ImageSpec, Registry, RegistrySpec
from trimtab.systems.images.messages import SBOMS, GenerateSBOM, encode
from trimtab.systems.images.registry.references import image_name
from trimtab.systems.images.system import SYSTEM
from trimtab.testing.nats import NatsServer
from trimtab.testing.ports import free_ports


async def image_in(client: ApiClient, namespace: str, lab: LabRegistry) -> Image:
    """As the controller makes it after a listing."""
    async with Pusher(lab.url) as pusher:
        made = debian("openssl=1.0-1")
        await pusher.push("team/app", "1.0", made)
    spec = RegistrySpec(uri=lab.url, plain_http=True)
    registry = await client.create(Registry(metadata=ObjectMeta(name="lab", namespace=namespace), spec=spec))
    layers = tuple(
        ImageLayer(digest=blob.digest, size=len(blob.content), media_type=blob.media_type) for blob in made.blobs[1:]
    )
    image = ImageSpec(
        registry=registry.name,
        registry_uri=lab.host,
        repository="team/app",
        tag="1.0",
        digest=made.digest,
        platform="linux/amd64",
        layers=layers,
    )
    name = image_name("lab", "team/app", "1.0", made.digest)
    return await client.create(Image(metadata=ObjectMeta(name=name, namespace=namespace), spec=image))


async def test_a_worker_makes_an_sbom_that_it_is_asked_for(
    images: Program, images_client: ApiClient, tmp_path: Path
) -> None:
    await prepare(images_client, (SYSTEM,), rights=True)
    (port,) = free_ports(1)
    with LabRegistry(tmp_path / "registry", port) as lab, NatsServer(tmp_path) as nats:
        image = await image_in(images_client, images.namespace, lab)
        words = ("--nats", nats.url, "--blobs", "blobs", "--name", "w1", "--data-dir", "data", "--log-format", "text")
        process = images.installed("images", "worker", *words, stderr=subprocess.STDOUT)
        queue = connect(nats.url, clock=SystemClock())
        try:
            message = GenerateSBOM(
                namespace=images.namespace,
                registry="lab",
                image=image.name,
                image_uid=image.metadata.uid or "",
                run="r1",
            )
            await queue.publish(SBOMS, encode(message))
            found = await until_found(images_client, SBOM, image.name, images.namespace, lambda sbom: True)
            assert found.spec.package_count == 1
            await FolderBlobs(images.folder / "blobs").stat(found.spec.documents.spdx)
        finally:
            await queue.close()
            process.send_signal(signal.SIGTERM)
            out, _ = await asyncio.to_thread(process.communicate, timeout=30)
        assert process.returncode == 0
        assert "the worker starts" in out
        assert "the worker has ended" in out
        assert "Traceback" not in out


def test_a_worker_whose_server_is_away_says_so(bare: Program) -> None:
    (port,) = free_ports(1)
    kubeconfig = {
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "clusters": [{"name": "lab", "cluster": {"server": f"https://127.0.0.1:{port}"}}],
        "users": [{"name": "lab", "user": {"token": "secret-token"}}],
    }
    place = ("--nats", "nats://127.0.0.1:1", "--blobs", "blobs")
    server = ("--kubeconfig", bare.write("away", json.dumps(kubeconfig)))
    process = bare.installed("images", "worker", *place, *server, stderr=subprocess.PIPE)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.startswith(f"error: https://127.0.0.1:{port} does not answer")
    assert "secret-token" not in err


async def test_a_worker_that_may_not_act_as_the_system_says_what_helps(
    images: Program, images_client: ApiClient
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "w", "namespace": images.namespace}}
    await images_client.create(Untyped(account))
    path = f"/api/v1/namespaces/{images.namespace}/serviceaccounts/w/token"
    asked = Call(method="POST", path=path, body=b'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}')
    token = json.loads((await images_client.transport.call(asked)).body)["status"]["token"]
    document = json.loads((images.folder / "kubeconfig").read_text())
    document["users"][0]["user"] = {"token": token}
    words = ("--nats", "nats://127.0.0.1:1", "--blobs", "blobs", "--kubeconfig")
    ran = images("images", "worker", *words, images.write("of-w", json.dumps(document)))
    assert ran.code == 4
    assert "cannot impersonate" in ran.err
    assert "may impersonate system:serviceaccount:trimtab-system:images, or --no-impersonate" in ran.err
    assert token not in ran.err
