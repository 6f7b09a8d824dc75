"""A layer's result, and what an image of several layers holds in the end."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import random
import tracemalloc
from collections.abc import AsyncIterator

import msgspec
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.images.layer_kit import DEBIAN, digest, dpkg_stanza, inventory, named, packed, read, tar
from trimtab.runtime.workers import Workers
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.layers.cache import LayerCache
from trimtab.systems.images.layers.decompress import Decompressor
from trimtab.systems.images.layers.image import merge
from trimtab.systems.images.layers.layer import read_layer, read_layer_async
from trimtab.systems.images.layers.problems import (
    LayerDamaged,
    LayerError,
    LayerMismatch,
    LayerTooLarge,
    LayerUnsupported,
    Limits,
)
from trimtab.systems.images.layers.result import LayerResult

STATUS = "var/lib/dpkg/status"
BASH, LIBC = dpkg_stanza("bash", "5.2-1"), dpkg_stanza("libc6", "2.36-9")
LEFT_PAD = b'{"name": "left-pad", "version": "1.3.0"}'
RAW = tar({STATUS: BASH + LIBC, "usr/lib/os-release": DEBIAN}, symlinks={"etc/os-release": "../usr/lib/os-release"})


def test_a_layer_names_its_packages_and_its_digests():
    layer = packed(RAW)
    result = read_layer([layer], digest=digest(layer), diff_id=digest(RAW))
    assert (result.digest, result.diff_id, result.size) == (digest(layer), digest(RAW), len(RAW))
    assert [each.name for each in result.findings[0].packages] == ["bash", "libc6"]


@pytest.mark.parametrize(
    "layer",
    [
        RAW,
        gzip.compress(RAW),
        zstd.compress(RAW),
        gzip.compress(RAW[:700]) + gzip.compress(RAW[700:]),
        zstd.compress(RAW[:700]) + zstd.compress(RAW[700:]),
        gzip.compress(RAW) + bytes(1000),
        zstd.compress(RAW) + b"\x5e\x2a\x4d\x18\x05\0\0\0notes",
    ],
    ids=["raw", "gzip", "zstd", "members", "frames", "zeros", "notes"],
)
@pytest.mark.parametrize("step", [1, 3, 1000, 1 << 20])
def test_any_compression_in_any_pieces_gives_the_same(layer, step):
    result = read_layer(layer[at : at + step] for at in range(0, len(layer), step))
    assert result.diff_id == digest(RAW)
    assert result.findings == read(RAW).findings


def test_a_diff_id_by_sha512_is_verified_too():
    long = f"sha512:{hashlib.sha512(RAW).hexdigest()}"
    assert read_layer([packed(RAW)], diff_id=long).diff_id == long
    with pytest.raises(LayerMismatch):
        read_layer([packed(RAW + bytes(1))], diff_id=long)


def test_a_diff_id_of_an_unknown_kind_is_refused():
    with pytest.raises(LayerUnsupported, match="md5"):
        read_layer([packed(RAW)], diff_id="md5:00")


async def test_a_connection_that_refuses_its_bytes_at_their_end_gives_no_result():
    async def chunks() -> AsyncIterator[bytes]:
        yield packed(RAW)
        raise LayerMismatch("not these bytes")

    with pytest.raises(LayerMismatch, match="not these bytes"):
        await read_layer_async(chunks(), digest=digest(packed(RAW)))


def test_an_archive_of_another_diff_id_is_refused():
    with pytest.raises(LayerMismatch, match="archive"):
        read_layer([packed(RAW)], diff_id="sha256:" + "0" * 64)


def test_a_media_type_that_is_no_layer_is_refused():
    with pytest.raises(LayerUnsupported, match="helm"):
        read_layer([RAW], media_type="application/vnd.cncf.helm.chart.content.v1.tar+gzip")


def test_a_compression_that_is_not_known_is_named():
    with pytest.raises(LayerUnsupported, match="bzip2"):
        read_layer([b"BZh91AY&SY"])


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_bomb_ends_at_the_ratio(pack):
    bomb = pack(bytes(8 << 20))
    decompressor = Decompressor(Limits(ratio=100, ratio_floor=1 << 20))
    with pytest.raises(LayerTooLarge, match="grows"):
        list(decompressor.feed(bomb))
    assert decompressor.given < 3 << 20


def test_a_layer_over_its_bound_is_refused():
    with pytest.raises(LayerTooLarge, match="more than"):
        read_layer([packed(tar({"a": random.Random(1).randbytes(100_000)}))], limits=Limits(layer_bytes=50_000))


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_cut_off_stream_is_damage(pack):
    layer = pack(RAW)
    with pytest.raises(LayerDamaged, match="early"):
        read_layer([layer[:-20]])


def test_bytes_after_the_stream_are_damage():
    with pytest.raises(LayerDamaged, match="after the end"):
        read_layer([gzip.compress(RAW) + bytes(10) + b"more"])


@settings(max_examples=150, deadline=None)
@given(data=st.data(), layer=st.sampled_from([RAW, gzip.compress(RAW), zstd.compress(RAW)]))
def test_a_mutated_layer_ends_well_or_in_a_typed_error(data, layer):
    mutant = bytearray(layer)
    for _ in range(data.draw(st.integers(1, 6))):
        mutant[data.draw(st.integers(0, len(mutant) - 1))] = data.draw(st.integers(0, 255))
    try:
        merge([read_layer([bytes(mutant)], limits=Limits(layer_bytes=1 << 20))])
    except LayerError:
        return


async def test_a_layer_is_read_from_a_connection():
    layer = packed(RAW)

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(layer), 100):
            yield layer[at : at + 100]

    assert await read_layer_async(chunks(), digest=digest(layer)) == read(RAW)


async def test_a_layer_is_read_in_a_worker_process():
    layer = packed(RAW)
    workers = Workers(count=1)
    try:
        assert await workers.run(read_layer, [layer], digest=digest(layer)) == read(RAW)
    finally:
        await workers.close()


def test_a_result_survives_its_encoding():
    result = read(RAW)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=LayerResult) == result


def test_a_later_status_file_replaces_the_earlier_one():
    found = inventory(RAW, tar({STATUS: BASH}))
    assert named(found) == {("deb", "bash", "5.2-1")}


def test_a_package_keeps_the_layer_that_brought_it():
    second = tar({STATUS: BASH + LIBC + dpkg_stanza("curl", "7.88")})
    layers = {each.name: each.layer for each in inventory(RAW, second).packages}
    assert layers == {"bash": digest(RAW), "libc6": digest(RAW), "curl": digest(second)}


def test_an_upgraded_package_names_the_layer_of_the_upgrade():
    second = tar({STATUS: dpkg_stanza("bash", "5.2-2") + LIBC})
    layers = {each.name: each.layer for each in inventory(RAW, second).packages}
    assert layers == {"bash": digest(second), "libc6": digest(RAW)}


@pytest.mark.parametrize(
    "above",
    [
        tar({"app/node_modules/left-pad/.wh.package.json": b""}),
        tar({"app/node_modules/.wh.left-pad": b""}),
        tar({".wh.app": b""}),
        tar({"app/node_modules/.wh..wh..opq": b""}),
        tar({".wh..wh..opq": b""}),
        tar({"app/node_modules/left-pad/package.json": b"{}"}),
        tar({"app/node_modules": b"now a file"}),
        tar({}, symlinks={"app": "elsewhere"}),
    ],
    ids=["file", "folder", "parent", "opaque", "opaque root", "replaced", "folder by file", "folder by link"],
)
def test_what_a_later_layer_covers_is_gone(above):
    assert named(inventory(tar({"app/node_modules/left-pad/package.json": LEFT_PAD}), above)) == set()


@pytest.mark.parametrize(
    "above",
    [
        tar({"app/node_modules/.wh.left": b""}),
        tar({"app/node_modules/left-pad/.wh..wh.plnk": b""}),
        tar({}, folders=("app/node_modules/left-pad",)),
        tar({"app/node_modules/left-pad/readme": b""}),
        tar({"app/node_modules/left-pad/lib/.wh..wh..opq": b""}),
    ],
    ids=["other name", "aufs", "folder again", "neighbour", "opaque below"],
)
def test_what_a_later_layer_does_not_cover_stays(above):
    found = inventory(tar({"app/node_modules/left-pad/package.json": LEFT_PAD}), above)
    assert named(found) == {("npm", "left-pad", "1.3.0")}


FOLDERS = ["a", "b", "a/b", "b/a", "a/b/node_modules", "a/node_modules", "a/node_modules/x", "a/b/node_modules/y"]
MANIFESTS = [f"{folder}/node_modules/{name}/package.json" for folder in ("a", "b", "a/b") for name in ("x", "y")]


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, bytes], list[str], list[str]]:
    """What one layer writes, removes, and makes opaque."""
    written = {
        path: b'{"name": "n", "version": "%d"}' % draw(st.integers(1, 3))
        for path in draw(st.lists(st.sampled_from(MANIFESTS), max_size=3))
    }
    for folder in draw(st.lists(st.sampled_from(FOLDERS), max_size=1)):
        if not any(path.startswith(folder + "/") for path in written):
            written[folder] = b"a file where a folder was"
    removed = draw(st.lists(st.sampled_from(FOLDERS + MANIFESTS), max_size=2))
    return written, removed, draw(st.lists(st.sampled_from(FOLDERS), max_size=1))


@settings(max_examples=100, deadline=None)
@given(st.lists(changes(), min_size=1, max_size=4))
def test_merged_layers_hold_what_a_stack_of_folders_would_hold(layers):
    state: dict[str, bytes] = {}
    archives = []
    for written, removed, opaque in layers:
        gone = [
            path for path in state if any(path == each or path.startswith(each + "/") for each in [*removed, *written])
        ]
        gone += [path for path in state if any(path.startswith(folder + "/") for folder in opaque)]
        state = {path: body for path, body in state.items() if path not in gone} | written
        whiteouts = {f"{path.rpartition('/')[0]}/.wh.{path.rpartition('/')[2]}": b"" for path in removed}
        archives.append(tar({**{f"{folder}/.wh..wh..opq": b"" for folder in opaque}, **written, **whiteouts}))
    expected = {(path, body) for path, body in state.items() if path.endswith("package.json")}
    found = {
        (each.path, b'{"name": "n", "version": "%s"}' % each.version.encode()) for each in inventory(*archives).packages
    }
    assert found == expected


def test_an_opaque_folder_keeps_what_its_own_layer_has_in_it():
    above = tar({"app/node_modules/left-pad/package.json": LEFT_PAD, "app/node_modules/.wh..wh..opq": b""})
    below = tar({"app/node_modules/right-pad/package.json": LEFT_PAD.replace(b"left", b"right")})
    assert named(inventory(below, above)) == {("npm", "left-pad", "1.3.0")}


def test_a_file_that_comes_back_after_a_whiteout_counts():
    raw = tar({"app/node_modules/left-pad/package.json": LEFT_PAD})
    assert named(inventory(raw, tar({".wh.app": b""}), raw)) == {("npm", "left-pad", "1.3.0")}


def test_os_packages_carry_the_distribution():
    found = inventory(RAW)
    assert (found.distro.id, found.distro.version) == ("debian", "12")
    assert found.packages[0].purl == "pkg:deb/debian/bash@5.2-1?arch=amd64"


def test_the_distribution_of_a_later_layer_counts():
    above = tar({"etc/os-release": b"ID=alpine\nVERSION_ID=3.20.1\n"})
    assert inventory(RAW, above).distro.id == "alpine"


def test_the_link_to_the_distribution_may_be_absolute():
    raw = tar({"usr/share/os-release": DEBIAN}, symlinks={"etc/os-release": "/usr/share/os-release"})
    assert inventory(raw).distro.id == "debian"


def test_links_in_a_circle_name_no_distribution():
    raw = tar({}, symlinks={"etc/os-release": "/usr/lib/os-release", "usr/lib/os-release": "/etc/os-release"})
    assert inventory(raw).distro.id == ""


def test_a_hard_link_names_the_packages_of_its_target():
    raw = tar(
        {"a/node_modules/x/package.json": LEFT_PAD},
        hardlinks={"b/node_modules/x/package.json": "a/node_modules/x/package.json"},
    )
    assert {each.path for each in inventory(raw).packages} == {
        "a/node_modules/x/package.json",
        "b/node_modules/x/package.json",
    }


def test_of_two_entries_with_one_path_the_later_counts():
    first = tar({STATUS: BASH})[:1024]  # without the end of the archive
    assert named(inventory(first + tar({STATUS: LIBC}))) == {("deb", "libc6", "2.36-9")}


def test_a_file_of_any_size_takes_no_more_memory_than_is_held():
    raw = tar({"usr/bin/large": b"\x7fELF" + bytes(40 << 20), "usr/share/data": bytes(20 << 20), STATUS: BASH})
    pieces = [raw[at : at + (1 << 20)] for at in range(0, len(raw), 1 << 20)]
    tracemalloc.start()
    try:
        result = read_layer(pieces, limits=Limits(executable_bytes=2 << 20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.findings
    assert peak < 8 << 20


def test_a_broken_file_is_a_warning_and_the_rest_is_read():
    raw = tar({"app/node_modules/x/package.json": b"{", STATUS: BASH})
    found = inventory(raw)
    assert named(found) == {("deb", "bash", "5.2-1")}
    assert found.warnings == tuple(
        each for each in found.warnings if each.startswith("app/node_modules/x/package.json: ")
    )
    assert len(found.warnings) == 1


def test_a_file_over_its_size_is_a_warning():
    found = inventory(tar({"app/node_modules/x/package.json": b" " * (2 << 20)}))
    assert "are read at most" in found.warnings[0]


def test_a_name_without_end_is_left_out_with_a_warning():
    found = inventory(tar({"app/node_modules/x/package.json": b'{"name": "%s", "version": "1"}' % (b"x" * 5000)}))
    assert found.packages == ()
    assert "left out" in found.warnings[0]


def test_warnings_are_bounded():
    raw = tar({f"{n}/node_modules/x/package.json": b"{" for n in range(20)})
    assert len(read_layer([raw], limits=Limits(warnings=5)).warnings) == 5


def test_too_many_packages_are_refused():
    with pytest.raises(LayerTooLarge, match="packages"):
        read_layer([RAW], limits=Limits(packages=1))


@pytest.mark.parametrize(
    "raw",
    [
        tar({f"{'long' * 20}{number}/.wh.x": b"" for number in range(30)}),
        tar(
            {"0/node_modules/x/package.json": LEFT_PAD},
            hardlinks={
                f"{number}/node_modules/x/package.json": "0/node_modules/x/package.json" for number in range(1, 60)
            },
        ),
    ],
    ids=["whiteouts", "hard links"],
)
def test_what_a_result_keeps_is_bounded(raw):
    with pytest.raises(LayerTooLarge, match="take more than 2000 bytes"):
        read_layer([raw], limits=Limits(kept_bytes=2000))


def test_an_os_release_without_end_is_not_held():
    assert inventory(tar({"etc/os-release": b"ID=x\n" + b" " * (2 << 20)})).distro.id == ""


async def test_a_layer_is_read_once_for_all_who_want_it(tmp_path):
    cache = LayerCache(Scratch(tmp_path, 1 << 30).dir("layers", 1 << 20))
    reads = []

    async def reading() -> LayerResult:
        reads.append(1)
        return read(RAW)

    assert cache.get(digest(RAW)) is None
    results = await asyncio.gather(*(cache.fill(digest(RAW), reading) for _ in range(5)))
    assert results == [read(RAW)] * 5
    assert len(reads) == 1
    assert cache.get(digest(RAW)) == read(RAW)


async def test_a_new_extractor_reads_again(tmp_path):
    folder = Scratch(tmp_path, 1 << 30).dir("layers", 1 << 20)

    async def reading() -> LayerResult:
        return read(RAW)

    await LayerCache(folder, extractor=1).fill(digest(RAW), reading)
    assert LayerCache(folder, extractor=2).get(digest(RAW)) is None


async def test_a_damaged_entry_of_the_cache_is_made_again(tmp_path):
    folder = Scratch(tmp_path, 1 << 30).dir("layers", 1 << 20)
    cache = LayerCache(folder)

    async def reading() -> LayerResult:
        return read(RAW)

    await cache.fill(digest(RAW), reading)
    (entry,) = (folder.path / "entries").iterdir()
    entry.write_bytes(b"\xc1" * entry.stat().st_size)
    assert cache.get(digest(RAW)) is None
    assert await cache.fill(digest(RAW), reading) == read(RAW)


async def test_a_result_is_not_kept_under_another_name(tmp_path):
    cache = LayerCache(Scratch(tmp_path, 1 << 30).dir("layers", 1 << 20))

    async def reading() -> LayerResult:
        return read(RAW)

    with pytest.raises(ValueError, match="cannot be kept"):
        await cache.fill("sha256:" + "0" * 64, reading)


@pytest.mark.parametrize("path", ["var/lib/dpkg", "var/lib/dpkg/status", "lib/apk/db/installed"])
def test_a_package_database_behind_a_link_is_not_passed_over_in_silence(path: str):
    (warning,) = read(tar({}, symlinks={path: "/opt/elsewhere"})).warnings
    assert path in warning
    assert "symbolic link" in warning


def test_the_link_that_distributions_have_for_rpm_is_no_reason_to_warn():
    assert not read(tar({}, symlinks={"var/lib/rpm": "../../usr/lib/sysimage/rpm"})).warnings
