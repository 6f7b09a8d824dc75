"""The catalogue: what a listing learned, over what was known; and what changed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.images.registry.configs import Layer
from trimtab.systems.images.registry.errors import Unavailable
from trimtab.systems.images.registry.manifests import Platform
from trimtab.systems.images.registry.outcomes import (
    Coverage,
    Failed,
    Found,
    FoundImage,
    KnownTag,
    Outcome,
    Skipped,
    SkipReason,
)
from trimtab.systems.images.registry.references import image_name
from trimtab.systems.images.runs.catalogue import (
    Catalogue,
    Pictured,
    Tag,
    Unreadable,
    decode,
    diff,
    encode,
    image_refs,
    known,
    known_digests,
    member_refs,
    members,
)
from trimtab.systems.images.runs.cataloguing import Builder

AMD = Platform("linux", "amd64")
LAYER = Layer("application/gzip", "sha256:layer", 7, "sha256:diff", "RUN it")


def picture(platform: str = "linux/amd64") -> Pictured:
    return Pictured(platform, (LAYER,), 7, "then")


def image(digest: str, index: str = "", layers: tuple[Layer, ...] | None = (LAYER,)) -> FoundImage:
    return FoundImage(digest=digest, platform=AMD, index_digest=index, layers=layers, size=7, created="then")


def found(tag: str, digest: str, *images: FoundImage, repository: str = "app") -> Found:
    return Found(repository=repository, tag=tag, digest=digest, etag=f'"{digest}"', images=images or None)


def single(tag: str, digest: str, repository: str = "app") -> Found:
    return found(tag, digest, image(digest), repository=repository)


def skipped(tag: str, reason: SkipReason, repository: str = "app") -> Skipped:
    return Skipped(repository=repository, tag=tag, reason=reason, digest=f"chart-{tag}")


def failed(tag: str = "", repository: str = "app") -> Failed:
    return Failed(error=Unavailable("x", "y"), repository=repository, tag=tag)


def whole(*repositories: str, **more: object) -> Coverage:
    options = {"named": True, "ended": True, "whole": set(repositories), "repositories": len(repositories), **more}
    return Coverage(**options)  # type: ignore[arg-type]


def built(
    outcomes: Iterable[Outcome],
    coverage: Coverage,
    previous: Catalogue | None = None,
    *,
    selected: list[str] | None = None,
    only: bool = False,
) -> Catalogue:
    builder = Builder(previous, only=only)
    for outcome in outcomes:
        builder.add(outcome)
    return builder.finish(coverage, selected)


def before(tags: Mapping[str, str], repository: str = "app") -> Catalogue:
    """A catalogue of one repository, by tag and digest of its image."""
    return built([single(tag, digest, repository) for tag, digest in tags.items()], whole(repository))


def digests(catalogue: Catalogue, repository: str = "app") -> dict[str, str]:
    return {name: tag.digest for name, tag in catalogue.tags.get(repository, {}).items()}


def test_what_was_found_is_in_the_catalogue_with_its_images() -> None:
    made = built([found("1", "i", image("a", "i"), image("b", "i"))], whole("app"))
    assert made == Catalogue(
        tags={"app": {"1": Tag("i", '"i"', ("a", "b"))}},
        images={"a": picture(), "b": picture()},
        members={"app": ["1"]},
    )
    assert decode(encode(made)) == made


def test_layers_that_images_share_are_written_once() -> None:
    one, many = before({"1": "a"}), before({f"{n}": f"d{n}" for n in range(50)})
    assert encode(one).count(b"sha256:layer") == encode(many).count(b"sha256:layer") == 1
    assert decode(encode(many)) == many


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x80", encode(Catalogue())[:-1], b"{}"])
def test_what_is_no_catalogue_is_refused(content: bytes) -> None:
    with pytest.raises(Unreadable):
        decode(content)


def test_a_catalogue_that_refers_to_no_layer_is_refused() -> None:
    written = msgspec.msgpack.decode(encode(before({"1": "a"})))
    written["layers"] = []
    with pytest.raises(Unreadable):
        decode(msgspec.msgpack.encode(written))


def test_a_known_digest_takes_its_images_over_from_before() -> None:
    previous = built([found("1", "i", image("a", "i"), image("b", "i"))], whole("app"))
    made = built([found("1", "i"), found("same", "i", repository="copy")], whole("app", "copy"), previous)
    assert made.tags["app"] == previous.tags["app"]
    assert made.tags["copy"]["same"].images == ("a", "b")
    assert made.images == previous.images


def test_a_tag_on_an_image_that_was_behind_an_index_is_that_image() -> None:
    previous = built([found("1", "i", image("a", "i"), image("b", "i"))], whole("app"))
    made = built([found("1", "i"), found("a-only", "a")], whole("app"), previous)
    assert made.tags["app"]["a-only"].images == ("a",)


def test_details_of_a_known_image_in_a_new_index_are_those_from_before() -> None:
    made = built([found("2", "j", image("a", "j", None), image("c", "j"))], whole("app"), before({"1": "a"}))
    assert made.images == {"a": picture(), "c": picture()}
    assert made.gone == {"app": ["1"]}


def test_what_failed_is_as_it_was_and_no_member() -> None:
    previous = before({"1": "a", "2": "b"})
    made = built([single("1", "a2"), failed("2")], whole("app"), previous)
    assert digests(made) == {"1": "a2", "2": "b"}
    assert made.members == {"app": ["1"]}
    assert not made.gone


def test_a_tag_on_which_a_filter_failed_is_as_it_was_and_no_member() -> None:
    made = built([skipped("1", SkipReason.FILTER_FAILED)], whole("app"), before({"1": "a"}))
    assert (digests(made), made.members, made.gone) == ({"1": "a"}, {}, {})


def test_what_is_filtered_or_gone_is_out() -> None:
    outcomes = [skipped("1", SkipReason.FILTERED), skipped("2", SkipReason.GONE), single("3", "c")]
    made = built(outcomes, whole("app"), before({"1": "a", "2": "b", "3": "c"}))
    assert (digests(made), made.gone) == ({"3": "c"}, {"app": ["1", "2"]})
    assert set(made.images) == {"c"}


def test_what_was_filtered_and_never_known_is_nowhere() -> None:
    assert built([skipped("1", SkipReason.FILTERED)], whole("app")) == Catalogue()


def test_a_tag_that_was_not_met_is_gone_only_from_a_whole_repository() -> None:
    previous = before({"1": "a", "2": "b"})
    met = [single("1", "a")]
    assert built(met, whole("app"), previous).gone == {"app": ["2"]}
    partly = built(met, Coverage(named=True, partly={"app"}, repositories=1), previous)
    assert (digests(partly), partly.gone) == ({"1": "a", "2": "b"}, {})


def test_a_repository_is_gone_only_when_the_registry_says_so() -> None:
    previous = before({"1": "a"})
    assert built([], whole("other", catalogue=True), previous).gone == {"app": ["1"]}
    assert built([], whole("other", absent={"app"}), previous, selected=["app", "other"]).gone == {"app": ["1"]}
    assert not built([], Coverage(repositories=1, whole={"other"}), previous).gone  # the catalogue was not read whole
    assert not built([], whole("other", catalogue=True, ended=False), previous).gone  # given up
    assert not built([failed()], whole("other", partly={"app"}), previous, selected=["app", "other"]).gone


def test_a_repository_that_is_not_selected_any_more_is_gone() -> None:
    assert built([], whole("other"), before({"1": "a"}), selected=["other"]).gone == {"app": ["1"]}


def test_what_is_no_image_is_kept_so_that_it_is_not_fetched_again() -> None:
    made = built([skipped("chart", SkipReason.NOT_AN_IMAGE)], whole("app"))
    assert made.tags == {"app": {"chart": Tag("chart-chart")}}
    assert known(made) == {("app", "chart"): KnownTag("chart-chart")}
    assert "chart-chart" in known_digests(made)
    builder = Builder(made)
    builder.add(found("chart", "chart-chart"))
    again = builder.finish(whole("app"), None)
    assert again.tags["app"]["chart"].images == ()
    assert (again.members, builder.found, builder.skipped) == ({}, 0, 1)


def test_pushes_touch_only_what_they_name() -> None:
    previous = before({"1": "a", "2": "b", "3": "c"})
    outcomes = [single("1", "new"), skipped("2", SkipReason.GONE), skipped("3", SkipReason.FILTERED)]
    made = built(outcomes, Coverage(partly={"app"}, repositories=1, ended=True), previous, only=True)
    assert digests(made) == {"1": "new", "2": "b", "3": "c"}
    assert (made.members, made.gone) == ({"app": ["1"]}, {})


def test_what_is_known_needs_its_pictures() -> None:
    damaged = Catalogue(tags={"app": {"1": Tag("i", "", ("a", "b"))}}, images={"a": picture()})
    assert known(damaged) == {}
    assert known_digests(damaged) == {"a"}
    assert (known(None), known_digests(None)) == ({}, frozenset())


def test_references_name_the_index_only_where_there_is_one() -> None:
    made = built([found("m", "i", image("a", "i")), single("s", "a")], whole("app"))
    assert [(ref.tag, ref.digest, ref.index_digest) for ref in image_refs(made)] == [("m", "a", "i"), ("s", "a", "")]


def test_members_are_of_this_run_only() -> None:
    made = built([single("1", "a"), failed("2")], whole("app"), before({"2": "b"}))
    assert [(ref.tag, ref.digest) for ref in member_refs(made)] == [("1", "a")]
    assert members(made, "main") == (image_name("main", "app", "1", "a"),)
    assert {ref.digest for ref in image_refs(made)} == {"a", "b"}


def test_the_diff_tells_what_was_added_moved_and_removed() -> None:
    new = built([single("1", "a"), single("2", "b2"), single("4", "d")], whole("app"), before({"1": "a"}))
    told = diff(before({"1": "a", "2": "b", "3": "c"}), new)
    assert (told.added, told.moved, told.removed) == (1, 1, 1)
    assert [(each.change, each.tag, each.before or "", each.digest or "") for each in told.changes] == [
        ("moved", "2", "b", "b2"), ("removed", "3", "c", ""), ("added", "4", "", "d"),
    ]  # fmt: skip


def test_a_tag_that_stops_being_an_image_is_removed() -> None:
    new = built([skipped("1", SkipReason.NOT_AN_IMAGE)], whole("app"), before({"1": "a"}))
    assert diff(before({"1": "a"}), new).removed == 1
    assert diff(new, new).changes == ()


def test_the_diff_names_only_the_first_changes() -> None:
    told = diff(Catalogue(), before({f"{n:03}": f"d{n}" for n in range(150)}))
    assert (told.added, len(told.changes), told.changes[0].tag) == (150, 100, "000")


_tags = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["x", "y", "z"]))


@settings(max_examples=100, deadline=None)
@given(_tags, _tags, st.sets(st.sampled_from("abcdef")))
def test_whatever_is_listed_every_tag_is_there_or_gone_or_was_never_there(
    old: dict[str, str], new: dict[str, str], fail: set[str]
) -> None:
    outcomes = [failed(tag) if tag in fail else single(tag, digest) for tag, digest in new.items()]
    made = built(outcomes, whole("app"), before(old))
    expected = {tag: digest for tag, digest in new.items() if tag not in fail}
    expected |= {tag: old[tag] for tag in fail & new.keys() & old.keys()}
    assert digests(made) == expected
    assert set(made.gone.get("app", [])) == old.keys() - new.keys()
    assert set(made.images) == set(expected.values())
    told = diff(before(old), made)
    assert told.added - told.removed == len(expected) - len(old)


def test_twenty_thousand_tags_take_no_long_time() -> None:
    outcomes = [
        found(f"{n}", f"i{n}", image(f"a{n}", f"i{n}"), image(f"b{n}", f"i{n}"), repository=f"r{n % 50}")
        for n in range(20_000)
    ]
    repositories = [f"r{n}" for n in range(50)]
    began = time.process_time()
    first = built(outcomes, whole(*repositories, catalogue=True))
    again = built(outcomes, whole(*repositories, catalogue=True), decode(encode(first)))
    assert diff(first, again).changes == ()
    assert sum(1 for _ in image_refs(again)) == 40_000
    assert time.process_time() - began < 10.0
