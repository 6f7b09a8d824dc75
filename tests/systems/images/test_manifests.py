"""What manifests, indexes and configs say, also the odd ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.lab import registry_images as made
from trimtab.systems.images.registry.configs import layers_of, parse_config
from trimtab.systems.images.registry.manifests import (
    DEEPEST,
    MOST_ENTRIES,
    BadManifest,
    Descriptor,
    Document,
    ImageManifest,
    Index,
    NoImage,
    Platform,
    Unfolded,
    Why,
    parse,
    unfold,
)

AMD, ARM = Platform("linux", "amd64"), Platform("linux", "arm", "v7")
BASE = made.layer({"etc/os-release": b"ID=debian\n"})
APP = made.image([BASE, made.layer({"app": b"amd64"})])
APP_ARM = made.image([BASE, made.layer({"app": b"arm"})], "linux/arm/v7")


def documents(*all_made: made.Made) -> dict[str, Document]:
    found: dict[str, Document] = {}
    for each in all_made:
        found[each.digest] = parse(each.manifest.content, each.manifest.media_type)
        found |= documents(*each.children)
    return found


def unfolded(root: made.Made, *wanted: Platform) -> Unfolded:
    return unfold(root.digest, documents(root), wanted)


@pytest.mark.parametrize("family", ["oci", "docker"])
def test_an_image_manifest_names_its_config_and_layers(family: made.Family) -> None:
    layer = made.layer({"a": b"1"}, family=family)
    document = parse(made.image([layer], family=family).manifest.content)
    assert isinstance(document, ImageManifest)
    assert [(each.digest, each.size) for each in document.layers] == [(layer.blob.digest, len(layer.blob.content))]


@pytest.mark.parametrize("family", ["oci", "docker"])
def test_an_index_gives_each_platform(family: made.Family) -> None:
    root = made.index([made.entry(APP, "linux/amd64"), made.entry(APP_ARM, "linux/arm/v7")], family)
    assert [(each.digest, each.platform) for each in unfolded(root).images] == [
        (APP.digest, AMD),
        (APP_ARM.digest, ARM),
    ]


def test_a_manifest_without_a_media_type_is_read_by_its_shape() -> None:
    bare = json.loads(APP.manifest.content)
    del bare["mediaType"]
    assert isinstance(parse(json.dumps(bare).encode(), "application/json"), ImageManifest)
    assert isinstance(parse(b'{"schemaVersion": 2, "manifests": []}', "application/octet-stream"), Index)


def test_platforms_select_and_a_variant_only_when_it_is_named() -> None:
    root = made.index([made.entry(APP, "linux/amd64"), made.entry(APP_ARM, "linux/arm/v7")])
    assert [each.digest for each in unfolded(root, Platform("linux", "arm")).images] == [APP_ARM.digest]
    assert [each.digest for each in unfolded(root, Platform("linux", "arm", "v6")).images] == []
    assert unfolded(root, AMD).left[0].why is Why.PLATFORM


def test_an_entry_without_a_platform_is_an_image_whose_config_must_tell() -> None:
    (image,) = unfolded(made.index([APP]), AMD).images
    assert image.platform is None


def test_the_same_digest_twice_is_one_image() -> None:
    result = unfolded(made.index([made.entry(APP_ARM, "linux/arm"), made.entry(APP_ARM, "linux/arm/v7")]))
    assert [each.digest for each in result.images] == [APP_ARM.digest]
    assert [each.why for each in result.left] == [Why.REPEATED]


def test_an_image_that_is_only_called_an_attestation_is_an_image() -> None:
    called = made.entry(APP, "linux/amd64", {"vnd.docker.reference.type": "attestation-manifest"})
    result = unfolded(made.index([called, made.attestation(APP)]), AMD)
    assert [each.digest for each in result.images] == [APP.digest]
    assert [each.why for each in result.left] == [Why.ATTESTATION]


def test_an_image_of_an_unknown_platform_is_one_whose_config_must_tell() -> None:
    result = unfolded(made.index([made.entry(APP, "unknown/unknown")]), AMD)
    assert [(each.digest, each.platform) for each in result.images] == [(APP.digest, None)]


def test_attestations_are_left_out_by_an_annotation_on_what_has_no_platform() -> None:
    marked = made.entry(made.image([BASE], "linux/s390x"), "", {"vnd.docker.reference.type": "attestation-manifest"})
    result = unfolded(made.index([made.entry(APP, "linux/amd64"), made.attestation(APP), marked]))
    assert [each.digest for each in result.images] == [APP.digest]
    assert [each.why for each in result.left] == [Why.ATTESTATION, Why.ATTESTATION]


def test_a_nested_index_is_asked_for_and_then_gives_its_images() -> None:
    inner = made.index([made.entry(APP, "linux/amd64")])
    outer = made.index([made.entry(inner), made.entry(APP_ARM, "linux/arm/v7")])
    first = unfold(outer.digest, {outer.digest: parse(outer.manifest.content)})
    assert first.missing == (inner.digest,)
    assert {each.digest for each in unfolded(outer).images} == {APP.digest, APP_ARM.digest}


def test_indexes_are_read_only_so_deep() -> None:
    root = made.index([made.entry(APP, "linux/amd64")])
    for _ in range(DEEPEST):
        root = made.index([root])
    result = unfolded(root)
    assert not result.images
    assert not result.missing
    assert [each.why for each in result.left] == [Why.TOO_DEEP]


def test_an_index_within_itself_is_not_entered_again() -> None:
    one, two = "sha256:" + "1" * 64, "sha256:" + "2" * 64

    def pointing(digest: str) -> Index:
        return Index((Descriptor(media_type=made.OCI_INDEX, digest=digest, size=1),))

    result = unfold(one, {one: pointing(two), two: pointing(one)})
    assert [(each.digest, each.why) for each in result.left] == [(one, Why.CYCLE)]


def test_an_index_with_too_many_entries_is_cut_and_says_so() -> None:
    entry = Descriptor(media_type=made.OCI_MANIFEST, digest=APP.digest, size=1)
    result = unfold("root", {"root": Index((entry,) * (MOST_ENTRIES + 1))})
    assert result.left[-1].why is Why.TOO_MANY


@pytest.mark.parametrize(
    "thing", [made.helm_chart(), made.artifact("application/vnd.oci.empty.v1+json", b"x", "text/x")]
)
def test_artifacts_are_no_images(thing: made.Made) -> None:
    assert isinstance(parse(thing.manifest.content), NoImage)
    assert [each.why for each in unfolded(made.index([thing])).left] == [Why.NOT_AN_IMAGE]


def test_a_signature_that_is_kept_like_an_image_is_none() -> None:
    signature = made.MadeLayer(
        made.Blob("application/vnd.dev.cosign.simplesigning.v1+json", b"{}"), "sha256:" + "0" * 64
    )
    assert isinstance(parse(made.image([signature]).manifest.content), NoImage)


def test_an_image_without_layers_is_one() -> None:
    assert isinstance(parse(made.image([]).manifest.content), ImageManifest)


def test_a_manifest_of_schema_1_is_no_image() -> None:
    assert isinstance(parse(b'{"schemaVersion": 1, "fsLayers": []}'), NoImage)


def test_foreign_layers_are_told_apart() -> None:
    document = json.loads(APP.manifest.content)
    document["layers"][0]["urls"] = ["https://elsewhere.example/layer"]
    parsed = parse(json.dumps(document).encode())
    assert isinstance(parsed, ImageManifest)
    assert [each.foreign for each in parsed.layers] == [True, False]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"nonsense",
        b"[" * 100_000,
        b'{"config": 1}',
        b'{"config": {"digest": "sha256:x"}}',
        b'{"mediaType": "application/vnd.oci.image.index.v1+json", "manifests": {}}',
        b'{"mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [1]}',
        b'{"mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [{"digest": "../../x"}]}',
    ],
)
def test_what_is_no_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(BadManifest):
        parse(content)


@pytest.mark.parametrize("size", [-1, 1 << 60, True, "1", 1.5])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    document = json.loads(APP.manifest.content)
    document["layers"][0]["size"] = size
    with pytest.raises(BadManifest, match="size"):
        parse(json.dumps(document).encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["mediaType", "manifests", "layers", "config", "digest", "size", "platform", "schemaVersion"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=200)
def test_any_json_is_a_document_or_refused(value: Any) -> None:
    try:
        parse(json.dumps(value).encode())
        parse_config(json.dumps(value).encode())
    except BadManifest:
        pass


def pairs(history: Any) -> list[tuple[str, str]]:
    image = made.image([BASE, made.layer({"app": b"amd64"})], history=history)
    manifest = parse(image.manifest.content)
    assert isinstance(manifest, ImageManifest)
    layers = layers_of(manifest, parse_config(image.blobs[0].content))
    assert [each.digest for each in layers] == [each.digest for each in image.blobs[1:]]
    return [(each.diff_id[:7], each.command) for each in layers]


def test_layers_are_paired_with_the_steps_that_made_them() -> None:
    assert pairs(True) == [("sha256:", "COPY 0"), ("sha256:", "COPY 1")]


@pytest.mark.parametrize("history", [False, [{"created_by": "x"}] * 3, [{"created_by": "x", "empty_layer": True}]])
def test_layers_survive_history_that_is_missing_or_too_long(history: Any) -> None:
    assert pairs(history) == [("sha256:", ""), ("sha256:", "")]


def test_short_history_is_used_as_far_as_it_goes() -> None:
    assert pairs([{"created_by": "FROM"}]) == [("sha256:", "FROM"), ("sha256:", "")]


def test_a_config_tells_platform_labels_and_age() -> None:
    config = parse_config(made.image([BASE], "linux/arm/v7", labels={"a": "b"}).blobs[0].content)
    assert (config.platform, config.labels, config.created) == (ARM, {"a": "b"}, "2026-01-01T00:00:00Z")
