"""SBOMs made by a worker, from a real registry, on both servers; and all that can go wrong on the way."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tests.systems.images.layer_kit import DEBIAN, dpkg_stanza
from tests.systems.images.worker_kit import RUN, Bench, Crash, Steps, bench, condition, layers_of
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.lab.registry_faults import Answered, Corrupted, Dropped, Truncated
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted, basic
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.owners import controller_of, owned_by
from trimtab.storage.blobs import BlobMissing, Digest, read
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.kinds import SBOM, Attempt, Image, ImageLayer, ImageStatus, Registry
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.pins import FINALIZER
from trimtab.systems.images.registry.references import digest_of
from trimtab.systems.images.worker import documents
from trimtab.systems.images.worker.handling import Later
from trimtab.systems.images.worker.layers import SMALL, Layers
from trimtab.systems.images.worker.sboms import SbomHandler
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

BASE = made.layer({"usr/lib/os-release": DEBIAN, "var/lib/dpkg/status": dpkg_stanza("bash", "5.2.15-2")})
LEFT_PAD = made.layer({"app/node_modules/left-pad/package.json": b'{"name": "left-pad", "version": "1.3.0"}'})
RIGHT_PAD = made.layer({"app/node_modules/right-pad/package.json": b'{"name": "right-pad", "version": "2.0.0"}'})
APP = made.image([BASE, LEFT_PAD])
OTHER = made.image([BASE, RIGHT_PAD])
BLOBS = r"/blobs/sha256"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabRegistry]:
    (port,) = free_ports(1)
    with LabRegistry(tmp_path_factory.mktemp("registry"), port) as running:
        yield running


@pytest.fixture
async def at(defined: ApiClient, namespace: str, tmp_path: Path, lab: LabRegistry) -> AsyncIterator[Bench]:
    async with bench(defined, namespace, tmp_path, lab) as made_ready:
        await made_ready.ready()
        yield made_ready


@pytest.fixture
def handler(at: Bench) -> SbomHandler:
    return SbomHandler(at.tools)


async def packages(at: Bench, sbom: SBOM) -> list[str]:
    content = await read(at.tools.blobs, Digest(sbom.spec.documents.inventory), max_bytes=1 << 20)
    return [package.name for package in documents.decode(content).packages]


def is_ready(image: Image) -> bool:
    told = condition(image, "Ready")
    return told is not None and told.status == "True"


async def failure(at: Bench, image: Image) -> tuple[str, Attempt]:
    """The reason of Ready=False, and the attempt; there is no SBOM."""
    now = await at.image(image)
    told = condition(now, "Ready")
    assert told is not None
    assert told.status == "False"
    assert now.status
    assert now.status.attempt
    with pytest.raises(StatusError, match="not found"):
        await at.sbom(image)
    return told.reason, now.status.attempt


async def kept(at: Bench, sbom: SBOM) -> bool:
    """Whether its documents outlive a collection."""
    await at.tools.blobs.collect(grace=-1)
    try:
        for digest in (sbom.spec.documents.spdx, sbom.spec.documents.cyclonedx, sbom.spec.documents.inventory):
            await at.tools.blobs.stat(Digest(digest))
    except BlobMissing:
        return False
    return True


async def test_an_image_gets_its_sbom_with_documents_and_is_ready(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(image))
    sbom = await at.sbom(image)
    assert (sbom.spec.registry, sbom.spec.repository, sbom.spec.tag) == ("main", "team/app", "1.0")
    assert (sbom.spec.digest, sbom.spec.platform) == (APP.digest, "linux/amd64")
    assert (sbom.spec.distro, sbom.spec.packages) == ("debian 12", {"deb": 1, "npm": 1})
    assert sbom.spec.package_count == 2
    assert sbom.metadata.finalizers == (FINALIZER,)
    assert sbom.metadata.labels == {REGISTRY_LABEL: at.registry.metadata.uid}
    owner = controller_of(sbom)
    assert owner is not None
    assert (owner.kind, owner.name, owner.uid) == ("Image", image.name, image.metadata.uid)
    assert await packages(at, sbom) == ["bash", "left-pad"]
    spdx = json.loads(await read(at.tools.blobs, Digest(sbom.spec.documents.spdx), max_bytes=1 << 20))
    assert spdx["name"] == f"{at.proxy.host}/team/app:1.0"
    assert spdx["creationInfo"]["created"] == "2026-01-01T00:00:00Z"
    cyclonedx = json.loads(await read(at.tools.blobs, Digest(sbom.spec.documents.cyclonedx), max_bytes=1 << 20))
    assert cyclonedx["specVersion"] == "1.6"
    now = await at.image(image)
    ready = condition(now, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason, ready.observed_generation) == ("True", "SBOMGenerated", 1)
    assert now.status
    assert now.status.attempt == Attempt(run=RUN)
    assert await kept(at, sbom)


async def test_a_message_that_comes_again_changes_nothing_and_asks_the_registry_nothing(
    at: Bench, handler: SbomHandler
) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(image))
    sbom, told = await at.sbom(image), await at.image(image)
    at.proxy.clear()
    await handler.handle(at.message(image))
    assert (await at.sbom(image)).metadata.resource_version == sbom.metadata.resource_version
    assert (await at.image(image)).metadata.resource_version == told.metadata.resource_version
    assert at.proxy.requests == []


async def test_a_base_that_two_images_share_is_pulled_once(at: Bench, handler: SbomHandler) -> None:
    first, second = await at.pushed("team/app", "1.0", APP), await at.pushed("team/other", "1.0", OTHER)
    await handler.handle(at.message(first))
    await handler.handle(at.message(second))
    assert at.proxy.count("GET", BASE.blob.digest) == 1
    assert at.proxy.count("GET", BLOBS) == 3
    assert await packages(at, await at.sbom(second)) == ["bash", "right-pad"]


async def test_the_same_image_in_another_place_costs_no_request(at: Bench, handler: SbomHandler) -> None:
    first = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(first))
    at.proxy.clear()
    second, third = await at.known("team/app", "latest", APP), await at.known("mirror/app", "1.0", APP)
    await handler.handle(at.message(second))
    await SbomHandler(at.tools).handle(at.message(third))
    assert at.proxy.requests == []
    assert await packages(at, await at.sbom(third)) == ["bash", "left-pad"]


async def test_two_workers_for_one_image_pull_once_and_make_one_sbom(at: Bench) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    some, other = SbomHandler(at.tools), SbomHandler(at.tools)
    await asyncio.gather(some.handle(at.message(image)), other.handle(at.message(image, "run-2")))
    assert at.proxy.count("GET", BLOBS) == 2
    sbom = await at.sbom(image)
    assert sbom.metadata.generation == 1
    assert await kept(at, sbom)


async def test_documents_are_the_same_bytes_whoever_makes_them(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(image))
    sbom = await at.sbom(image)
    content = await read(at.tools.blobs, Digest(sbom.spec.documents.inventory), max_bytes=1 << 20)
    again = documents.write(content, documents.subject_of(image.spec), documents.created_of(image))
    assert digest_of(again.spdx) == sbom.spec.documents.spdx
    assert digest_of(again.cyclonedx) == sbom.spec.documents.cyclonedx


async def test_an_image_that_does_not_say_when_it_was_made_is_dated_by_its_object(at: Bench) -> None:
    image = await at.known("team/app", "1.0", APP, created="yesterday")
    assert documents.created_of(image) == image.metadata.creation_timestamp
    assert documents.created_of(Image(spec=image.spec)) == datetime(1970, 1, 1, tzinfo=UTC)


async def test_killed_between_create_and_pin_the_next_delivery_pins(at: Bench, handler: SbomHandler) -> None:
    class Killed(FolderBlobs):
        async def pin(self, digest: Digest, owner: str) -> None:
            raise Crash

    image = await at.pushed("team/app", "1.0", APP)
    killed = msgspec.structs.replace(at.tools, blobs=Killed(at.folder / "blobs"))
    with pytest.raises(Crash):
        await SbomHandler(killed).handle(at.message(image))
    sbom = await at.sbom(image)
    assert not (await at.image(image)).status
    await handler.handle(at.message(image))
    assert await kept(at, sbom)
    assert is_ready(await at.image(image))


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
async def test_killed_at_any_step_the_next_delivery_completes_it(at: Bench, handler: SbomHandler, done: bool) -> None:
    await at.pusher.push("team/app", "1.0", APP)
    for step in itertools.count(1):
        image = await at.known("team/app", f"{step}", APP)
        steps = Steps(step, done=done)
        tools = msgspec.structs.replace(
            at.tools, client=steps.through(at.tools.client), blobs=steps.through(at.tools.blobs)
        )
        try:
            await SbomHandler(tools).handle(at.message(image))
        except Crash:
            await handler.handle(at.message(image))
        assert is_ready(await at.image(image))
        assert await kept(at, await at.sbom(image))
        if steps.count < step:
            break
    assert step > 10


async def test_documents_that_were_lost_are_made_again(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(image))
    sbom = await at.sbom(image)
    await at.tools.blobs.unpin(f"images/SBOM/{at.namespace}/{sbom.name}/{sbom.metadata.uid}/documents")
    assert not await kept(at, sbom)
    await handler.handle(at.message(image))
    assert await kept(at, await at.sbom(image))


async def test_an_image_that_is_gone_or_another_one_is_left_alone(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    message = at.message(image)
    await handler.handle(msgspec.structs.replace(message, image_uid="another"))
    await handler.handle(msgspec.structs.replace(message, image="nobody"))
    await handler.give_up(msgspec.structs.replace(message, image_uid="another"), "why")
    assert not (await at.image(image)).status
    assert at.proxy.requests == []


async def test_a_registry_that_was_made_again_gets_nothing_from_its_former_life(
    at: Bench, handler: SbomHandler
) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(msgspec.structs.replace(at.message(image), registry_uid="former"))
    assert not (await at.image(image)).status
    assert at.proxy.requests == []


async def test_a_layer_that_breaks_off_is_gone_on_with(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    at.proxy.fault("GET", BASE.blob.digest, Truncated(after=40), times=2)
    await handler.handle(at.message(image))
    assert await packages(at, await at.sbom(image)) == ["bash", "left-pad"]
    ranges = [asked.headers.get("range") for asked in at.proxy.requests if BASE.blob.digest in asked.path]
    assert ranges[0] is None
    assert ranges[1] == "bytes=40-"


async def test_a_layer_that_never_comes_whole_is_tried_later_and_then_given_up(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    at.proxy.fault("GET", BASE.blob.digest, Truncated(after=40))
    message = at.message(image)
    with pytest.raises(Later, match="broke off"):
        await handler.handle(message)
    assert not (await at.image(image)).status
    await handler.give_up(message, "5 deliveries did not end well")
    reason, attempt = await failure(at, image)
    assert reason == attempt.reason == "RegistryUnavailable"
    assert attempt.run == RUN
    assert "5 deliveries" in (attempt.message or "")


async def test_bytes_that_are_not_the_layers_fail_the_image_as_a_wrong_digest(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    at.proxy.fault("GET", BASE.blob.digest, Corrupted())
    await handler.handle(at.message(image))
    reason, attempt = await failure(at, image)
    assert reason == attempt.reason == "DigestMismatch"
    assert attempt.run == RUN


async def test_other_content_of_the_same_size_fails_too(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    at.proxy.fault("GET", BASE.blob.digest, Corrupted(bytes(len(BASE.blob.content))))
    await handler.handle(at.message(image))
    assert (await failure(at, image))[0] == "DigestMismatch"


async def test_a_config_that_claims_another_layers_diff_id_does_not_get_its_packages(
    at: Bench, handler: SbomHandler
) -> None:
    honest = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(honest))
    liar = made.image([made.MadeLayer(RIGHT_PAD.blob, BASE.diff_id)])
    image = await at.pushed("team/liar", "1.0", liar)
    await handler.handle(at.message(image))
    assert (await failure(at, image))[0] == "LayerMismatch"


async def test_a_layer_that_is_known_is_not_taken_for_another_because_a_config_says_so(
    at: Bench, handler: SbomHandler
) -> None:
    for tag, image in {"1.0": APP, "2.0": OTHER}.items():
        await handler.handle(at.message(await at.pushed("team/app", tag, image)))
    liar = await at.pushed("team/liar", "1.0", made.image([made.MadeLayer(BASE.blob, RIGHT_PAD.diff_id)]))
    at.proxy.clear()
    await handler.handle(at.message(liar))
    assert (await failure(at, liar))[0] == "LayerMismatch"
    assert at.proxy.requests == []  # it was known without a look


async def test_a_layer_without_a_diff_id_is_read_and_cached_by_its_digest(at: Bench, handler: SbomHandler) -> None:
    bare = tuple(layer.replace(diff_id=UNSET) for layer in layers_of(APP))
    first = await at.pushed("team/app", "1.0", APP, layers=bare)
    await handler.handle(at.message(first))
    assert await packages(at, await at.sbom(first)) == ["bash", "left-pad"]
    second = await at.known("team/app", "2.0", APP, layers=bare)
    at.proxy.clear()
    await handler.handle(at.message(second))
    assert at.proxy.requests == []
    assert await packages(at, await at.sbom(second)) == ["bash", "left-pad"]


async def test_a_foreign_layer_is_left_out_with_a_warning(at: Bench, handler: SbomHandler) -> None:
    base, above = layers_of(APP)
    image = await at.pushed("team/app", "1.0", APP, layers=(base.replace(foreign=True), above))
    await handler.handle(at.message(image))
    sbom = await at.sbom(image)
    assert await packages(at, sbom) == ["left-pad"]
    assert sbom.spec.warnings == (f"layer {BASE.blob.digest}: it is kept elsewhere, and was not read",)
    assert at.proxy.count("GET", BASE.blob.digest) == 0


async def test_an_image_without_layers_has_an_empty_sbom(at: Bench, handler: SbomHandler) -> None:
    image = await at.known("team/empty", "1.0", made.image([]))
    await handler.handle(at.message(image))
    assert (await at.sbom(image)).spec.package_count == 0


async def test_a_gzip_bomb_fails_the_image(at: Bench, handler: SbomHandler) -> None:
    many = gzip.compress(bytes(1 << 20)) * 300  # members of one stream
    bomb = made.MadeLayer(made.Blob(BASE.blob.media_type, many), BASE.diff_id)
    image = await at.pushed("team/bomb", "1.0", made.image([bomb]))
    await handler.handle(at.message(image))
    assert (await failure(at, image))[0] == "LayerTooLarge"


async def test_what_is_no_layer_is_refused_before_it_is_pulled(at: Bench, handler: SbomHandler) -> None:
    chart = tuple(layer.replace(media_type="application/vnd.cncf.helm.chart") for layer in layers_of(APP))
    image = await at.pushed("team/chart", "1.0", APP, layers=chart)
    await handler.handle(at.message(image))
    assert (await failure(at, image))[0] == "LayerUnsupported"
    assert at.proxy.requests == []


async def test_a_layer_that_claims_ten_gigabytes_more_than_it_may_have_is_not_pulled(
    at: Bench, handler: SbomHandler
) -> None:
    large = tuple(layer.replace(size=17 << 30) for layer in layers_of(APP))
    image = await at.pushed("team/app", "1.0", APP, layers=large)
    await handler.handle(at.message(image))
    assert (await failure(at, image))[0] == "TooLarge"


@pytest.mark.parametrize(
    ("status", "reason"), [(401, "AuthenticationFailed"), (403, "Forbidden"), (404, "NotFound"), (400, "InvalidAnswer")]
)
async def test_what_the_registry_refuses_for_good_fails_the_image(
    at: Bench, handler: SbomHandler, status: int, reason: str
) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    at.proxy.fault("GET", BLOBS, Answered(status))
    await handler.handle(at.message(image))
    told, attempt = await failure(at, image)
    assert told == attempt.reason == reason


async def test_a_secret_that_is_missing_fails_the_image(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    registry = await at.client.get(Registry, "main", at.namespace)
    await at.client.patch(registry, registry.replace(spec=registry.spec.replace(auth_secret="nowhere")))
    await handler.handle(at.message(image))
    assert (await failure(at, image))[0] == "SecretNotFound"


async def secret(at: Bench, name: str, password: str) -> None:
    data = {"username": "alice", "password": password}
    metadata = ObjectMeta(name=name, namespace=at.namespace)
    await at.client.create(Secret(metadata=metadata, string_data=data))


async def test_a_registry_with_a_login_is_read_by_the_secret_and_no_word_of_it_is_told(
    at: Bench, handler: SbomHandler, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    trusted = ssl.create_default_context(cafile=str(authority.certificate))
    login = {"Authorization": basic("alice", Redacted("s3cret")).reveal()}
    (port,) = free_ports(1)
    with LabRegistry(tmp_path / "closed", port, tls=authority.server("closed"), logins={"alice": "s3cret"}) as closed:
        async with made.Pusher(closed.url, headers=lambda _: login, tls=trusted) as pusher:
            await pusher.push("team/app", "1.0", APP)
        await secret(at, "wrong", "wr0ng")
        await secret(at, "right", "s3cret")
        spec = at.registry.spec.replace(uri=closed.url, plain_http=False, ca_bundle=authority.certificate.read_text())
        held = await at.client.patch(at.registry, at.registry.replace(spec=spec.replace(auth_secret="wrong")))
        image = await at.known("team/app", "1.0", APP)
        await handler.handle(at.message(image))
        assert (await failure(at, image))[0] == "AuthenticationFailed"
        assert "wr0ng" not in str((await at.image(image)).raw)
        await at.client.patch(held, held.replace(spec=spec.replace(auth_secret="right")))
        await handler.handle(at.message(image))
    assert is_ready(await at.image(image))
    assert await packages(at, await at.sbom(image)) == ["bash", "left-pad"]


async def test_a_busy_registry_is_waited_for_as_long_as_it_wishes(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    at.proxy.fault("GET", BLOBS, Answered(429, {"Retry-After": "301"}))
    with pytest.raises(Later) as later:
        await handler.handle(at.message(image))
    assert later.value.seconds == 301


async def test_a_registry_that_was_down_and_is_up_again_gives_the_sbom(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    at.proxy.fault("GET", BLOBS, Dropped())
    pauses = []
    for _ in range(3):
        with pytest.raises(Later) as later:
            await handler.handle(at.message(image))
        pauses.append(later.value.seconds)
    assert pauses[0] <= 30 < pauses[2]
    at.proxy.clear()
    await handler.handle(at.message(image))
    assert await packages(at, await at.sbom(image)) == ["bash", "left-pad"]


async def test_a_success_after_a_failure_clears_what_was_wrong(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    at.proxy.fault("GET", BLOBS, Answered(404))
    await handler.handle(at.message(image))
    assert (await failure(at, image))[0] == "NotFound"
    at.proxy.clear()
    await handler.handle(at.message(image, "run-2"))
    now = await at.image(image)
    assert now.status
    assert now.status.attempt == Attempt(run="run-2")
    assert is_ready(now)


async def test_what_others_write_to_the_status_meanwhile_stays(at: Bench) -> None:
    image = await at.pushed("team/app", "1.0", APP)

    class Meanwhile:
        """Somebody marks the Image as missing just before its status is patched."""

        marked = False

        def __getattr__(self, name: str) -> Any:
            return getattr(at.client, name)

        async def patch(self, old: Any, new: Any, **more: Any) -> Any:
            if not self.marked:
                self.marked = True
                now = await at.image(image)
                gone = ImageStatus(missing_since="2026-01-01T00:00:00Z")
                await at.client.patch(now, now.replace(status=gone), subresource="status")
            return await at.client.patch(old, new, **more)

    await SbomHandler(msgspec.structs.replace(at.tools, client=Meanwhile())).handle(at.message(image))
    now = await at.image(image)
    assert is_ready(now)
    assert now.status
    assert now.status.missing_since == "2026-01-01T00:00:00Z"


async def test_giving_up_on_an_sbom_that_is_there_only_says_the_last_word(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(image))
    await handler.give_up(at.message(image, "run-2"), "5 deliveries did not end well")
    assert is_ready(await at.image(image))


async def test_the_sbom_of_an_image_before_is_waited_for(at: Bench, handler: SbomHandler) -> None:
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(image))
    await at.client.delete(Ref(SBOM, image.name, at.namespace))
    with pytest.raises(Later, match="on its way out"):
        await handler.handle(at.message(image))
    going = await at.sbom(image)
    await at.client.patch(going, with_metadata(going, finalizers=()))
    await handler.handle(at.message(image))
    fresh = await at.sbom(image)
    assert fresh.metadata.uid != going.metadata.uid
    assert owned_by(fresh, image)
    assert await kept(at, fresh)


@pytest.mark.parametrize("gone", [False, True], ids=["deleting", "gone"])
async def test_an_sbom_that_goes_while_it_is_pinned_leaves_no_pin(at: Bench, handler: SbomHandler, gone: bool) -> None:
    class Going(FolderBlobs):
        """The SBOM is deleted, and its controller has let go of all, before the first pin."""

        is_first = True

        async def pin(self, digest: Digest, owner: str) -> None:
            if self.is_first:
                self.is_first = False
                await at.client.delete(Ref(SBOM, image.name, at.namespace))
                going = await at.sbom(image)
                if gone:
                    await at.client.patch(going, with_metadata(going, finalizers=()))
            await super().pin(digest, owner)

    image = await at.pushed("team/app", "1.0", APP)
    tools = msgspec.structs.replace(at.tools, blobs=Going(at.folder / "blobs"))
    with pytest.raises(Later, match="went while it was made"):
        await SbomHandler(tools).handle(at.message(image))
    assert not list((at.folder / "blobs").glob("sha256/*/*.pins/*"))
    assert not is_ready(await at.image(image))


async def test_an_sbom_that_is_nobodys_is_not_taken(at: Bench, handler: SbomHandler) -> None:
    image, model = await at.pushed("team/app", "1.0", APP), await at.pushed("team/model", "1.0", APP)
    await handler.handle(at.message(model))
    strange = SBOM(metadata=ObjectMeta(name=image.name, namespace=at.namespace), spec=(await at.sbom(model)).spec)
    await at.client.create(strange)
    await handler.handle(at.message(image))
    told = condition(await at.image(image), "Ready")
    assert told is not None
    assert (told.status, told.reason) == ("False", "NameTaken")


async def test_many_packages_are_written_by_a_process_of_their_own(
    at: Bench, handler: SbomHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.systems.images.worker.sboms.MANY", 1)
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(image))
    sbom = await at.sbom(image)
    content = await read(at.tools.blobs, Digest(sbom.spec.documents.inventory), max_bytes=1 << 20)
    here = documents.write(content, documents.subject_of(image.spec), documents.created_of(image))
    assert digest_of(here.spdx) == sbom.spec.documents.spdx


async def test_an_image_with_more_packages_than_are_held_is_refused(
    at: Bench, handler: SbomHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.systems.images.worker.layers.Gathered.MOST_PACKAGES", 1)
    image = await at.pushed("team/app", "1.0", APP)
    await handler.handle(at.message(image))
    assert (await failure(at, image))[0] == "LayerTooLarge"


class _Pulls:
    """Pulls that wait for each other, and how many ran at once."""

    def __init__(self, layers: dict[str, bytes]) -> None:
        self._layers, self._running, self.most = layers, 0, 0

    async def pieces(self, layer: ImageLayer) -> AsyncGenerator[bytes, None]:
        self._running += 1
        self.most = max(self.most, self._running)
        for _ in range(20):
            await asyncio.sleep(0)  # others get as far as they may
        yield self._layers[layer.digest]
        self._running -= 1


@pytest.mark.parametrize(("size", "most"), [(SMALL + 1, 1), (SMALL, 3)])
async def test_large_layers_are_read_one_at_a_time_whatever_images_they_are_of(
    tmp_path: Path, size: int, most: int
) -> None:
    some = [made.layer({"file": str(number).encode()}) for number in range(8)]
    pulls = _Pulls({each.blob.digest: each.blob.content for each in some})
    layers = Layers(Scratch(tmp_path, 1 << 20))
    wanted = [ImageLayer(digest=each.blob.digest, diff_id=each.diff_id, size=size) for each in some]
    results = await asyncio.gather(*(layers.result(layer, pulls.pieces) for layer in wanted))
    assert [result.diff_id for result in results] == [each.diff_id for each in some]
    assert pulls.most == most


async def test_a_small_layer_that_unpacks_to_much_is_read_as_a_large_one(at: Bench, handler: SbomHandler) -> None:
    wide = made.layer({"zeros": bytes(9 << 20), "app/node_modules/a/package.json": b'{"name": "a", "version": "1.0"}'})
    assert len(wide.blob.content) < 1 << 20
    image = await at.pushed("team/wide", "1.0", made.image([wide]))
    await handler.handle(at.message(image))
    assert await packages(at, await at.sbom(image)) == ["a"]
