"""The walker sees what Python's tarfile sees, however the bytes are split, and never ends but in its own errors."""

from __future__ import annotations

import contextlib
import io
import itertools
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.images.layer_kit import tar
from trimtab.systems.images.layers.problems import LayerDamaged, LayerError, LayerTooLarge, Limits
from trimtab.systems.images.layers.tar import Entry, Kind, Walker
from trimtab.systems.images.layers.tar_header import clean

LONG = "folder/" * 30 + "x" * 120


class Collected:
    """A sink that keeps a body."""

    def __init__(self, bodies: dict[str, bytes], path: str) -> None:
        self._bodies = bodies
        self._path = path
        self._body = b""

    def write(self, data: memoryview) -> bool:
        self._body += data
        return True

    def close(self) -> None:
        self._bodies[self._path] = self._body


def walk(
    raw: bytes, cuts: list[int] | None = None, limits: Limits | None = None
) -> tuple[list[Entry], dict[str, bytes]]:
    entries: list[Entry] = []
    bodies: dict[str, bytes] = {}

    def visit(entry: Entry) -> Collected | None:
        entries.append(entry)
        return Collected(bodies, entry.path) if entry.kind is Kind.FILE else None

    walker = Walker(visit, limits or Limits())
    places = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts or [])})
    for start, end in itertools.pairwise(places):
        walker.feed(raw[start:end])
    walker.finish()
    return entries, bodies


def by_tarfile(raw: bytes) -> list[tuple[str, Kind, int, str, bytes]]:
    kinds = {tarfile.DIRTYPE: Kind.DIRECTORY, tarfile.SYMTYPE: Kind.SYMLINK, tarfile.LNKTYPE: Kind.HARDLINK}
    found = []
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        for member in archive:
            body = archive.extractfile(member) if member.isreg() else None
            found.append(
                (
                    clean(member.name),
                    kinds.get(member.type, Kind.FILE),
                    member.size,
                    clean(member.linkname) if member.islnk() else member.linkname,
                    body.read() if body else b"",
                )
            )
    return found


names = st.text(
    st.characters(codec="utf-8", exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=60
)
paths = st.lists(names, min_size=1, max_size=6).map("/".join).filter(lambda path: clean(path) != "")


@settings(max_examples=80, deadline=None)
@given(
    files=st.dictionaries(paths, st.binary(max_size=1500), max_size=5),
    symlinks=st.dictionaries(paths, paths, max_size=2),
    hardlinks=st.dictionaries(paths, paths, max_size=2),
    form=st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    cuts=st.lists(st.integers(min_value=0), max_size=6),
)
def test_any_split_of_an_archive_gives_what_tarfile_reads(files, symlinks, hardlinks, form, cuts):
    raw = tar(files, symlinks=symlinks, hardlinks=hardlinks, form=form)
    entries, bodies = walk(raw, cuts)
    expected = by_tarfile(raw)
    assert [(e.path, e.kind, e.size, e.target) for e in entries] == [each[:4] for each in expected]
    assert bodies == {path: body for path, kind, _, _, body in expected if kind is Kind.FILE}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_each_form_of_tar_is_read_byte_by_byte(form):
    raw = tar({"a/b": b"one", "x" * 99: b"", "y" * 90 + "/" + "z" * 60: b"two" * 400}, symlinks={"l": "a/b"}, form=form)
    assert walk(raw, list(range(len(raw)))) == walk(raw)
    assert walk(raw)[1]["y" * 90 + "/" + "z" * 60] == b"two" * 400


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_long_links_are_read_whole(form):
    entries, bodies = walk(tar({LONG: b"body"}, symlinks={LONG + "l": LONG}, form=form))
    assert bodies == {LONG: b"body"}
    assert entries[1].target == LONG


def test_a_size_in_base_256_is_read():
    block = bytearray(tar({"big": b""}, form=tarfile.GNU_FORMAT)[:512])
    block[124:136] = b"\x80" + (5).to_bytes(11, "big")
    assert walk(checked(block) + b"hello".ljust(512, b"\0"))[1] == {"big": b"hello"}


def test_a_negative_size_in_base_256_is_damage():
    block = bytearray(tar({"big": b""}, form=tarfile.GNU_FORMAT)[:512])
    block[124:136] = b"\xff" * 12
    with pytest.raises(LayerDamaged):
        walk(checked(block))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("./etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("../../etc/passwd", "etc/passwd"),
        ("a/../../b", "b"),
        ("a//b/./c/", "a/b/c"),
        ("a/..b/c.", "a/..b/c."),
        ("./", ""),
        ("..", ""),
        ("a/b/..", "a"),
    ],
)
def test_paths_stay_inside_the_image(name, path):
    assert clean(name) == path


def test_an_entry_that_claims_ten_gigabytes_more_than_allowed_is_refused_at_its_header():
    block = bytearray(tar({"big": b""}, form=tarfile.GNU_FORMAT)[:512])
    block[124:136] = b"%011o\0" % (10 << 30 >> 2)
    with pytest.raises(LayerTooLarge, match="claims"):
        walk(checked(block), limits=Limits(layer_bytes=1 << 30))


def test_an_entry_that_claims_more_than_there_is_ends_as_damage():
    raw = tar({"a": b"x" * 5000})
    with pytest.raises(LayerDamaged, match="midst"):
        walk(raw[:2000])


def test_too_many_entries_are_refused():
    with pytest.raises(LayerTooLarge, match="entries"):
        walk(tar({str(n): b"" for n in range(11)}), limits=Limits(entries=10))


def test_too_deep_a_path_is_refused():
    with pytest.raises(LayerTooLarge, match="deeper"):
        walk(tar({"a/" * 300 + "b": b""}))


def test_a_pax_header_beyond_its_bound_is_refused():
    with pytest.raises(LayerTooLarge, match="header"):
        walk(tar({"x" * 3000: b""}), limits=Limits(record_bytes=1000))


def test_the_size_in_the_header_of_a_hard_link_is_no_body():
    raw = tar({"a": b"body"}, hardlinks={"b": "a"}, form=tarfile.GNU_FORMAT)
    block = bytearray(raw[1024:1536])
    block[124:136] = b"%011o\0" % 4
    entries, _ = walk(raw[:1024] + checked(block) + tar({"c": b"after"}))
    assert [entry.path for entry in entries] == ["a", "b", "c"]


def test_what_comes_after_a_sparse_file_is_read():
    block = bytearray(tar({"holes": b""}, form=tarfile.GNU_FORMAT)[:512])
    block[156:157] = b"S"
    block[124:136] = b"%011o\0" % 5
    block[482] = 1  # one more block of the map
    raw = checked(block) + bytes(512) + b"12345".ljust(512, b"\0") + tar({"after": b"x"})
    entries, _ = walk(raw)
    assert [(entry.path, entry.sparse) for entry in entries] == [("holes", True), ("after", False)]


@settings(max_examples=300, deadline=None)
@given(
    data=st.data(),
    raw=st.sampled_from(
        [
            tar({"a": b"x" * 700, LONG: b"y"}, symlinks={"s": LONG}, form=form)
            for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
        ]
    ),
)
def test_a_mutated_archive_ends_well_or_in_a_typed_error(data, raw):
    mutant = bytearray(raw[: data.draw(st.integers(0, len(raw)))])
    for _ in range(data.draw(st.integers(0, 8))):
        if mutant:
            mutant[data.draw(st.integers(0, len(mutant) - 1))] = data.draw(st.integers(0, 255))
    whole = bytes(mutant)
    if data.draw(st.booleans()):  # past the checksum, into what it protects
        whole = b"".join(
            checked(bytearray(whole[at : at + 512])) if whole[at + 257 : at + 262] == b"ustar" else whole[at : at + 512]
            for at in range(0, len(whole), 512)
        )
    with contextlib.suppress(LayerError):
        walk(whole)


def checked(block: bytearray) -> bytes:
    """A header with the checksum that it should have."""
    if len(block) == 512:
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)
