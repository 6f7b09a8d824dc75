"""From a catalogue to Images, on both servers."""

from __future__ import annotations

import asyncio
import contextlib
import random
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tests.systems.images.image_kit import START, cached, catalogue, claimed, digest
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.duration import Period
from trimtab.model.errors import StatusError
from trimtab.runtime.objects import with_metadata
from trimtab.systems.images.applying import Applied, InTheWay, apply
from trimtab.systems.images.kinds import Attempt, Image, ImageStatus, Registry, Removal
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.registry.configs import Layer
from trimtab.systems.images.registry.references import image_name
from trimtab.systems.images.runs.catalogue import Catalogue, Pictured, Tag
from trimtab.systems.images.runs.telling import Superseded

DAY = timedelta(days=1)


class Cut:
    """A client whose server cannot be reached any more after some writes."""

    def __init__(self, client: ApiClient, writes: int) -> None:
        self._client, self._writes = client, writes

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in ("create", "patch", "delete"):
            return call

        async def write(*args: Any, **options: Any) -> Any:
            self._writes -= 1
            if self._writes < 0:
                raise OSError("the line is cut")
            return await call(*args, **options)

        return write


class Place:
    """One namespace of one server, and runs in it, one a day."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.now = START
        self.runs = 0

    async def run(
        self,
        found: Catalogue,
        *,
        complete: bool = True,
        released: bool = False,
        writes: int | None = None,
        **spec: Any,
    ) -> Applied:
        """The next run, a day and a second after the one before."""
        self.runs += 1
        self.now += DAY + timedelta(seconds=1)
        registry = await claimed(self.client, self.namespace, run=f"run-{self.runs}", at=self.now, **spec)
        return await self.apply(registry, found, complete=complete, released=released, writes=writes)

    async def apply(
        self,
        registry: Registry,
        found: Catalogue,
        *,
        complete: bool = True,
        released: bool = False,
        later: float = 1,
        writes: int | None = None,
    ) -> Applied:
        """Of the run that goes on, so many seconds after it began. With `writes`, the server is gone after so many."""
        now = self.now + timedelta(seconds=later)
        run = f"run-{self.runs}"
        writer: Any = None if writes is None else Cut(self.client, writes)
        async with cached(self.client, Image, Registry, writer=writer) as following:
            return await apply(following, registry, found, run=run, complete=complete, now=now, released=released)

    async def images(self) -> dict[str, Image]:
        """By tag and the first letters of their digests."""
        listed = await self.client.list(Image, Query(namespace=self.namespace))
        return {f"{image.spec.tag}@{image.spec.digest[7:13]}": image for image in listed.items}

    async def tags(self) -> dict[str, bool]:
        """Which tags have Images, and whether those are missing."""
        return {
            image.spec.tag: bool(image.status and image.status.missing_since)
            for image in (await self.images()).values()
        }


@pytest.fixture
async def place(defined: ApiClient, namespace: str) -> Place:
    return Place(defined, namespace)


async def test_every_image_behind_a_tag_becomes_an_image_of_its_registry(place: Place) -> None:
    applied = await place.run(catalogue({"team/app": {"v1": "a", "v2": ["amd64", "arm64"]}}))
    images = await place.images()
    registry = await place.client.get(Registry, "main", place.namespace)
    assert applied == Applied(created=3, images=3, members=applied.members)
    assert sorted(applied.members) == sorted(image.name for image in images.values())
    image = images[f"v1@{digest('a')[7:13]}"]
    assert image.name == image_name("main", "team/app", "v1", digest("a"))
    assert (image.spec.registry, image.spec.registry_uri) == ("main", "registry.example.com")
    assert (image.spec.repository, image.spec.platform, image.spec.size) == ("team/app", "linux/amd64", 7)
    assert image.spec.index_digest is UNSET
    assert image.spec.layers[0].command == "RUN it"
    assert (image.metadata.labels or {})[REGISTRY_LABEL] == registry.metadata.uid
    (owner,) = image.metadata.owner_references or ()
    assert (owner.kind, owner.uid, owner.controller) == ("Registry", registry.metadata.uid, True)
    assert images[f"v2@{digest('arm64')[7:13]}"].spec.index_digest == digest("amd64 arm64")


async def test_what_is_as_it_should_be_is_not_written(place: Place) -> None:
    found = catalogue({"app": {f"v{n}": f"image {n}" for n in range(5)}})
    await place.run(found)
    before = {name: image.metadata.resource_version for name, image in (await place.images()).items()}
    applied = await place.run(found)
    assert {name: image.metadata.resource_version for name, image in (await place.images()).items()} == before
    assert (applied.created, applied.unchanged, applied.images) == (0, 5, 5)


async def test_an_image_that_an_index_names_twice_is_one_image_and_one_member(place: Place) -> None:
    applied = await place.run(catalogue({"app": {"v1": ["a", "a"]}}))
    assert len(applied.members) == applied.created == len(await place.images()) == 1


async def test_members_are_the_tags_of_this_run_only(place: Place) -> None:
    applied = await place.run(catalogue({"app": {"v1": "a", "v2": "b"}}, members={"app": ["v2"]}))
    assert applied.members == (image_name("main", "app", "v2", digest("b")),)
    assert applied.images == 2


async def test_a_tag_that_moves_has_a_new_image_and_the_old_one_is_missing(place: Place) -> None:
    await place.run(catalogue({"app": {"v1": "old", "v2": "b"}}))
    applied = await place.run(catalogue({"app": {"v1": "new", "v2": "b"}}))
    images = await place.images()
    old = images[f"v1@{digest('old')[7:13]}"]
    assert old.status
    assert old.status.missing_since == f"{place.now + timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
    assert (applied.created, applied.unchanged, applied.missing, applied.images) == (1, 1, 1, 3)


async def test_a_listing_that_was_not_whole_marks_nothing(place: Place) -> None:
    await place.run(catalogue({"app": {"v1": "a", "v2": "b"}}))
    applied = await place.run(catalogue({"app": {"v1": "a"}}), complete=False)
    assert await place.tags() == {"v1": False, "v2": False}
    assert (applied.missing, applied.images) == (0, 2)


async def test_a_listing_that_was_not_whole_removes_nothing_that_was_missing_for_long(place: Place) -> None:
    await place.run(catalogue({"app": {"v1": "a", "v2": "b"}}))
    await place.run(catalogue({"app": {"v1": "a"}}))
    applied = await place.run(catalogue({"app": {"v1": "a"}}), complete=False)
    assert await place.tags() == {"v1": False, "v2": True}
    assert (applied.missing, applied.removed) == (1, 0)


async def test_a_tag_that_comes_back_is_missing_no_more(place: Place) -> None:
    whole = catalogue({"app": {"v1": "a", "v2": "b"}})
    await place.run(whole)
    await place.run(catalogue({"app": {"v1": "a"}}))
    applied = await place.run(whole)
    assert await place.tags() == {"v1": False, "v2": False}
    assert (applied.missing, applied.unchanged, applied.removed) == (0, 2, 0)


async def test_what_was_missing_for_longer_than_the_grace_is_removed(place: Place) -> None:
    left = catalogue({"app": {"v1": "a"}})
    await place.run(catalogue({"app": {"v1": "a", "v2": "b"}}))
    await place.run(left)
    applied = await place.run(left)
    assert await place.tags() == {"v1": False}
    assert (applied.removed, applied.missing, applied.images, applied.held) == (1, 0, 1, 0)


async def test_what_was_missing_for_less_than_the_grace_stays(place: Place) -> None:
    left = catalogue({"app": {"v1": "a"}})
    await place.run(catalogue({"app": {"v1": "a", "v2": "b"}}), removal=Removal(grace=Period("2d")))
    await place.run(left)
    applied = await place.run(left)
    assert (applied.removed, applied.missing) == (0, 1)


async def test_without_a_grace_a_run_still_removes_nothing_that_it_marked_itself(place: Place) -> None:
    await place.run(catalogue({"app": {"v1": "a", "v2": "b"}}), removal=Removal(grace=Period("0s")))
    left = catalogue({"app": {"v1": "a"}})
    await place.run(left)
    registry = await place.client.get(Registry, "main", place.namespace)
    again = await place.apply(registry, left, later=600)
    assert (again.removed, again.missing) == (0, 1)
    assert (await place.run(left)).removed == 1


async def test_more_than_the_set_share_is_never_removed_at_once(place: Place) -> None:
    left = catalogue({"app": {"v1": "a"}})
    await place.run(catalogue({"app": {"v1": "a", "v2": "b", "v3": "c"}}))
    await place.run(left)
    applied = await place.run(left)
    assert await place.tags() == {"v1": False, "v2": True, "v3": True}
    assert (applied.held, applied.removed, applied.missing, applied.images) == (2, 0, 2, 3)


async def test_what_was_held_back_goes_when_somebody_releases_it(place: Place) -> None:
    left = catalogue({"app": {"v1": "a"}})
    await place.run(catalogue({"app": {"v1": "a", "v2": "b", "v3": "c"}}))
    await place.run(left)
    applied = await place.run(left, released=True)
    assert await place.tags() == {"v1": False}
    assert (applied.held, applied.removed) == (0, 2)


async def test_exactly_the_set_share_is_removed(place: Place) -> None:
    left = catalogue({"app": {"v1": "a", "v2": "b"}})
    await place.run(catalogue({"app": {"v1": "a", "v2": "b", "v3": "c", "v4": "d"}}))
    await place.run(left)
    assert (await place.run(left)).removed == 2


@pytest.mark.parametrize("writes", [0, 1, 25, 40, 43, 46])
async def test_an_apply_that_was_cut_off_anywhere_is_finished_by_the_next(place: Place, writes: int) -> None:
    """After four runs two are to go, two to be marked, one comes back, and forty are new."""
    await place.run(catalogue({"app": dict.fromkeys(("gone-1", "gone-2", "lost-1", "lost-2", "back"), "a")}))
    await place.run(catalogue({"app": dict.fromkeys(("lost-1", "lost-2"), "a")}))
    new = {f"v{n}": f"image {n}" for n in range(40)}
    found = catalogue({"app": {"back": "a", **new}})
    with pytest.raises(OSError, match="cut"):
        await place.run(found, writes=writes)
    registry = await place.client.get(Registry, "main", place.namespace)
    applied = await place.apply(registry, found)
    expected = {"back": False, "lost-1": True, "lost-2": True, **dict.fromkeys(new, False)}
    assert await place.tags() == expected
    assert (applied.images, applied.missing, applied.created + applied.unchanged) == (43, 2, 41)


async def test_an_image_that_somebody_changed_is_put_right(place: Place) -> None:
    found = catalogue({"app": {"v1": "a"}})
    await place.run(found)
    (image,) = (await place.images()).values()
    await place.client.patch(image, image.replace(spec=image.spec.replace(layers=(), size=1)))
    await place.run(found)
    (mended,) = (await place.images()).values()
    assert mended.spec == image.spec


async def test_an_index_that_was_pushed_again_around_the_same_image_is_told(place: Place) -> None:
    await place.run(catalogue({"app": {"v1": ["a", "b"]}}))
    applied = await place.run(catalogue({"app": {"v1": ["b", "a"]}}))
    assert {image.spec.index_digest for image in (await place.images()).values()} == {digest("b a")}
    assert (applied.created, applied.unchanged) == (0, 2)


async def test_layers_that_this_listing_did_not_learn_stay(place: Place) -> None:
    found = catalogue({"app": {"v1": "a"}}, layers=2)
    await place.run(found)
    await place.run(msgspec.structs.replace(found, images={}))
    (image,) = (await place.images()).values()
    assert len(image.spec.layers) == 2


async def test_an_image_of_many_layers_with_long_commands_fits_its_kind(place: Place) -> None:
    layer = Layer("application/gzip", digest("layer"), 1, digest("diff"), "RUN " + "é" * 5000)
    name = digest("large")
    found = Catalogue(
        tags={"app": {"v1": Tag(name, "", (name,))}},
        images={name: Pictured("linux/arm64/v8", (layer,) * 600, 600)},
        members={"app": ["v1"]},
    )
    assert (await place.run(found)).created == 1
    assert (await place.run(found)).unchanged == 1


async def test_a_mark_and_what_a_worker_writes_meanwhile_both_stay(place: Place) -> None:
    await place.run(catalogue({"app": {f"v{n}": f"image {n}" for n in range(20)}}))
    images = await place.images()

    async def attempt(image: Image) -> None:
        while True:
            held = await place.client.get(Image, image.name, place.namespace)
            status = (held.status or ImageStatus()).replace(attempt=Attempt(run="run-1"))
            try:
                await place.client.patch(held, held.replace(status=status), subresource="status")
            except StatusError as error:
                assert error.code == 409  # noqa: PT017 - else it is another mistake
            else:
                return

    await asyncio.gather(place.run(Catalogue()), *(attempt(image) for image in images.values()))
    statuses = [image.status for image in (await place.images()).values()]
    assert all(status and status.missing_since and status.attempt for status in statuses)


async def test_images_of_a_registry_that_had_the_name_before_are_not_touched(place: Place) -> None:
    found = catalogue({"app": {"v1": "a", "v2": "b"}})
    await place.run(found)
    registry = await place.client.get(Registry, "main", place.namespace)
    images = await place.images()
    other = with_metadata(registry, uid="00000000-0000-0000-0000-000000000000")  # the next one of that name
    with pytest.raises(InTheWay, match="2 Images"):
        await place.apply(other, found)
    with contextlib.suppress(InTheWay):
        await place.apply(other, Catalogue(), released=True)
    assert await place.images() == images


async def test_an_image_that_nobody_owns_is_taken_over(place: Place) -> None:
    found = catalogue({"app": {"v1": "a"}})
    await place.run(found)
    (image,) = (await place.images()).values()
    await place.client.patch(image, with_metadata(image, owner_references=(), labels={"mine": "yes"}))
    applied = await place.run(found)
    (taken,) = (await place.images()).values()
    registry = await place.client.get(Registry, "main", place.namespace)
    assert taken.metadata.labels == {"mine": "yes", REGISTRY_LABEL: registry.metadata.uid}
    assert [owner.uid for owner in taken.metadata.owner_references or ()] == [registry.metadata.uid]
    assert applied.images == 1
    assert (await place.run(found)).unchanged == 1


async def test_a_run_that_has_lost_the_registry_does_nothing(place: Place) -> None:
    registry = await claimed(place.client, place.namespace, run="another")
    with pytest.raises(Superseded):
        await place.apply(registry, catalogue({"app": {"v1": "a"}}))
    assert await place.images() == {}


async def test_a_run_that_loses_the_registry_meanwhile_removes_nothing(place: Place) -> None:
    left = catalogue({"app": {"v1": "a"}})
    await place.run(catalogue({"app": {"v1": "a", "v2": "b"}}))
    await place.run(left)
    place.now += 2 * DAY
    place.runs = 3
    old = await claimed(place.client, place.namespace, run="run-3", at=place.now)
    await claimed(place.client, place.namespace, run="run-4", at=place.now)
    with pytest.raises(Superseded):
        await place.apply(old, left)
    assert await place.tags() == {"v1": False, "v2": True}


async def test_a_member_that_was_deleted_is_made_again(place: Place) -> None:
    found = catalogue({"app": {"v1": "a", "v2": "b"}})
    await place.run(found)
    image = next(iter((await place.images()).values()))
    await place.client.delete(Ref(Image, image.name, place.namespace))
    applied = await place.run(found)
    assert (applied.created, applied.unchanged) == (1, 1)


@pytest.mark.parametrize(
    "client", ["local"], indirect=True
)  # whose garbage is collected; a bare kube-apiserver's is not
async def test_a_registry_that_is_made_again_has_images_of_its_own_when_the_old_ones_are_gone(place: Place) -> None:
    found = catalogue({"app": {"v1": "a", "v2": "b"}})
    await place.run(found)
    old = await place.images()
    await place.client.delete(Ref(Registry, "main", place.namespace))
    async with asyncio.timeout(30):
        while True:
            try:
                applied = await place.run(found)
            except InTheWay:
                continue
            break
    new = await place.images()
    assert applied.images == 2
    assert not {image.metadata.uid for image in old.values()} & {image.metadata.uid for image in new.values()}


@pytest.mark.parametrize("client", ["local"], indirect=True)
@pytest.mark.parametrize("seed", range(6))
async def test_any_history_of_listings_leaves_what_its_rules_say(place: Place, seed: int) -> None:
    """Marks and removals against a plain model: by tag and digest, the run that marked it, or None."""
    chance = random.Random(seed)
    model: dict[tuple[str, str], int | None] = {}
    for run in range(1, 13):
        tags = {f"v{n}": f"image {chance.randrange(3)}" for n in range(6) if chance.random() < 0.7}
        complete, released = chance.random() < 0.8, chance.random() < 0.3
        applied = await place.run(catalogue({"app": tags}), complete=complete, released=released)
        listed = {(tag, digest(name)) for tag, name in tags.items()}
        total = len(model.keys() | listed)
        gone = [key for key, marked in model.items() if key not in listed and marked is not None] if complete else []
        held = not released and len(gone) * 100 > 50 * total
        model = {
            key: None if key in listed else model.get(key) or (run if complete else None)
            for key in model.keys() | listed
            if held or key not in gone
        }
        images = (await place.images()).values()
        state = {
            (image.spec.tag, image.spec.digest): bool(image.status and image.status.missing_since) for image in images
        }
        assert state == {key: marked is not None for key, marked in model.items()}
        assert applied.images == len(model)
        assert applied.missing == sum(marked is not None for marked in model.values())
        assert (applied.held, applied.removed) == ((len(gone), 0) if held else (0, len(gone)))
