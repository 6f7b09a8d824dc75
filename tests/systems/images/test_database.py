"""The vulnerability database: what an import keeps, when it says that something changed, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.images.packages.package import Distro, Package
from trimtab.systems.images.vulnerabilities.advisory import DETAILS, DocumentError, read
from trimtab.systems.images.vulnerabilities.database import DatabaseError, changed_packages, open_database
from trimtab.systems.images.vulnerabilities.ecosystems import places
from trimtab.systems.images.vulnerabilities.importing import import_osv
from trimtab.systems.images.vulnerabilities.sources import Limits, SourceError

Document = dict[str, Any]


def osv(name: str, package: str = "left", ecosystem: str = "PyPI", fixed: str = "2.0", **more: Any) -> Document:
    return {
        "schema_version": "1.6.0",
        "id": name,
        "modified": "2024-01-01T00:00:00Z",
        "summary": f"something about {package}",
        "affected": [
            {
                "package": {"ecosystem": ecosystem, "name": package},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": fixed}]}],
            }
        ],
    } | more


def folder_of(folder: Path, *documents: Document) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for document in documents:
        (folder / f"{document['id']}.json").write_text(json.dumps(document))
    return folder


def ids(path: Path, ecosystem: str, name: str) -> list[str]:
    with open_database(path) as database:
        return sorted(database.advisory(hit.advisory).id for hit in database.lookup(ecosystem, name))


def test_a_folder_of_folders_is_imported_and_found_by_package(tmp_path: Path) -> None:
    folder_of(tmp_path / "osv" / "a", osv("PYSEC-1", "Left_Pad"))
    folder_of(tmp_path / "osv" / "b" / "c", osv("GHSA-1", "express", "npm"))
    report = import_osv(tmp_path / "osv", tmp_path / "db")
    assert (report.count, report.read, report.ecosystems) == (2, 2, {"PyPI": 1, "npm": 1})
    assert ids(tmp_path / "db", "PyPI", "left-pad") == ["PYSEC-1"]
    assert ids(tmp_path / "db", "npm", "left-pad") == []


def test_a_zip_file_gives_the_same_database_as_its_folder(tmp_path: Path) -> None:
    documents = [osv(f"GHSA-{n}", f"p{n}", "npm") for n in range(20)]
    folder = folder_of(tmp_path / "osv", *documents)
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for document in reversed(documents):
            archive.writestr(f"deep/{document['id']}.json", json.dumps(document))
    one = import_osv(folder, tmp_path / "one")
    other = import_osv(tmp_path / "all.zip", tmp_path / "other")
    assert one.digest == other.digest


def test_a_mirror_of_zip_files_by_ecosystem_is_imported_at_once(tmp_path: Path) -> None:
    for ecosystem in ("npm", "PyPI"):
        (tmp_path / "mirror" / ecosystem).mkdir(parents=True)
        with zipfile.ZipFile(tmp_path / "mirror" / ecosystem / "all.zip", "w") as archive:
            archive.writestr("X-1.json", json.dumps(osv(f"{ecosystem}-1", "p", ecosystem)))
    assert import_osv(tmp_path / "mirror", tmp_path / "db").ecosystems == {"PyPI": 1, "npm": 1}


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1 << 30))
def test_the_digest_does_not_depend_on_the_order_of_documents_or_imports(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("order")
    rnd = random.Random(seed)
    documents = [
        osv(
            f"X-{rnd.randrange(4)}",
            f"p{rnd.randrange(3)}",
            fixed=str(rnd.randrange(9)),
            modified=f"2024-01-0{rnd.randrange(1, 4)}T00:00:00Z",
            **({"withdrawn": "2024-01-03T00:00:00Z"} if rnd.random() < 0.2 else {}),
        )
        for _ in range(8)
    ]
    digests = set()
    for turn in range(2):
        rnd.shuffle(documents)
        for number, document in enumerate(documents):
            single = folder_of(folder / f"{turn}-{number}", document)
            digest = import_osv(single, folder / f"db{turn}").digest
        digests.add(digest)
    assert len(digests) == 1


def test_a_second_import_adds_and_replaces_by_the_newer_time_of_modification(tmp_path: Path) -> None:
    import_osv(folder_of(tmp_path / "1", osv("A", "one"), osv("B", "one")), tmp_path / "db")
    newer = osv("B", "two", modified="2024-01-01T00:00:00.5Z")
    older = osv("A", "two", modified="2023-12-31T23:59:59Z")
    report = import_osv(folder_of(tmp_path / "2", newer, older, osv("C", "one")), tmp_path / "db")
    assert (report.count, report.read, report.unchanged) == (3, 2, 1)
    assert ids(tmp_path / "db", "PyPI", "one") == ["A", "C"]
    assert ids(tmp_path / "db", "PyPI", "two") == ["B"]


def test_the_same_import_twice_changes_nothing(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "1", osv("A"), osv("B"))
    first = import_osv(folder, tmp_path / "db")
    second = import_osv(folder, tmp_path / "db")
    assert (first.changed, second.changed, second.unchanged) == (True, False, 2)
    assert first.digest == second.digest


def test_replacing_forgets_what_was_there(tmp_path: Path) -> None:
    import_osv(folder_of(tmp_path / "1", osv("A")), tmp_path / "db")
    assert import_osv(folder_of(tmp_path / "2", osv("B")), tmp_path / "db", replace=True).count == 1


def test_replacing_with_the_same_says_that_nothing_changed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "1", osv("A"))
    import_osv(folder, tmp_path / "db")
    assert not import_osv(folder, tmp_path / "db", replace=True).changed


def test_a_database_is_not_replaced_by_nothing(tmp_path: Path) -> None:
    import_osv(folder_of(tmp_path / "1", osv("A")), tmp_path / "db")
    with pytest.raises(SourceError, match="stays as it is"):
        import_osv(folder_of(tmp_path / "2", osv("N", "x", "NuGet")), tmp_path / "db", replace=True)
    assert ids(tmp_path / "db", "PyPI", "left") == ["A"]


def test_a_damaged_database_is_replaced_but_not_added_to(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "1", osv("A"))
    (tmp_path / "db").write_bytes(b"no database")
    with pytest.raises(DatabaseError):
        import_osv(folder, tmp_path / "db")
    assert import_osv(folder, tmp_path / "db", replace=True).count == 1


def test_a_withdrawn_advisory_is_dropped_and_does_not_come_back(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "1", osv("A"), osv("B"))
    import_osv(folder, tmp_path / "db")
    gone = osv("A", modified="2024-02-01T00:00:00Z", withdrawn="2024-02-01T00:00:00Z")
    report = import_osv(folder_of(tmp_path / "2", gone), tmp_path / "db")
    assert (report.count, report.skipped) == (1, {"withdrawn": 1})
    assert import_osv(folder, tmp_path / "db").count == 1


def test_only_packages_of_which_something_else_is_said_have_changed(tmp_path: Path) -> None:
    same = [osv("A", "same"), osv("B", "same")]
    import_osv(folder_of(tmp_path / "1", *same, osv("C", "moved"), osv("D", "gone")), tmp_path / "old")
    touched = [document | {"modified": "2025-01-01T00:00:00Z"} for document in same]
    new = folder_of(tmp_path / "2", *touched, osv("C", "moved", fixed="2.1"), osv("E", "come", "npm"))
    import_osv(new, tmp_path / "new")
    changed = changed_packages(tmp_path / "old", tmp_path / "new")
    assert changed == {("PyPI", "moved"), ("PyPI", "gone"), ("npm", "come"), ("npm", "")}
    assert changed_packages(tmp_path / "old", tmp_path / "old") == set()


def test_a_report_is_asked_again_only_when_one_of_its_packages_changed(tmp_path: Path) -> None:
    import_osv(folder_of(tmp_path / "1", osv("A", "Left.Pad"), osv("B", "right")), tmp_path / "old")
    import_osv(folder_of(tmp_path / "2", osv("A", "Left.Pad", fixed="3"), osv("B", "right")), tmp_path / "new")
    changed = changed_packages(tmp_path / "old", tmp_path / "new")
    for name, asked in [("left_pad", True), ("right", False), ("unknown", False)]:
        assert places([Package(type="pypi", name=name, version="1")], Distro()).isdisjoint(changed) is not asked


def test_of_two_imports_at_the_same_time_the_second_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "1", *(osv(f"A-{n}") for n in range(500)))

    def begin_another(done: int, name: str) -> None:
        with pytest.raises(DatabaseError, match="another import"):
            import_osv(folder, tmp_path / "db")

    assert import_osv(folder, tmp_path / "db", progress=begin_another).count == 500


def test_what_a_killed_import_left_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / ".db.making").write_bytes(b"half of a database")
    assert import_osv(folder_of(tmp_path / "1", osv("A")), tmp_path / "db").count == 1
    assert not (tmp_path / ".db.making").exists()


def test_a_new_severity_changes_every_package_of_the_advisory(tmp_path: Path) -> None:
    import_osv(folder_of(tmp_path / "1", osv("A")), tmp_path / "old")
    import_osv(folder_of(tmp_path / "2", osv("A", database_specific={"severity": "HIGH"})), tmp_path / "new")
    assert changed_packages(tmp_path / "old", tmp_path / "new") == {("PyPI", "left")}


def test_what_is_skipped_is_counted_by_reason(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "1", osv("A"), osv("N", "x", "NuGet"))
    (folder / "broken.json").write_text("{")
    (folder / "list.json").write_text("[]")
    (folder / "deep.json").write_text('{"database_specific":' * 50_000)
    (folder / "time.json").write_text(json.dumps(osv("T", modified="yesterday")))
    (folder / "id.json").write_text(json.dumps(osv("../../etc")))
    (folder / "large.json").write_text(" " * 5_000_001)
    (folder / "notes.yaml").write_text("id: A")
    os.mkfifo(folder / "pipe.json")
    (folder / "link.json").symlink_to("/etc/hostname")
    report = import_osv(folder, tmp_path / "db", limits=Limits(file_bytes=5_000_000))
    assert report.count == 1
    assert report.skipped == {
        "no OSV document": 2,
        "nested too deeply": 1,
        "without a proper time of modification": 1,
        "without a proper id": 1,
        "over 5,000,000 bytes": 1,
        "not JSON": 1,
        "not a regular file": 2,
        "no package of an ecosystem that is matched here": 1,
    }
    assert len(report.examples) == 8


def test_a_source_without_documents_is_refused_and_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    before = import_osv(folder_of(tmp_path / "1", osv("A")), tmp_path / "db").digest
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="no OSV documents"):
        import_osv(tmp_path / "empty", tmp_path / "db", replace=True)
    with open_database(tmp_path / "db") as database:
        assert database.digest == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".db.lock", "1", "db", "empty"]


@pytest.mark.parametrize("limits", [Limits(files=3), Limits(total_bytes=100), Limits(directory_bytes=10)])
def test_a_source_over_a_limit_is_refused_whole(tmp_path: Path, limits: Limits) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for number in range(4):
            archive.writestr(f"{number}.json", json.dumps(osv(f"A-{number}")))
    with pytest.raises(SourceError):
        import_osv(tmp_path / "all.zip", tmp_path / "db", limits=limits)
    assert not (tmp_path / "db").exists()


def test_a_zip_bomb_costs_no_more_than_the_limit_of_a_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", b" " * (32 << 20))
        archive.writestr("../../good.json", json.dumps(osv("A")))
    report = import_osv(tmp_path / "all.zip", tmp_path / "db", limits=Limits(file_bytes=1 << 20))
    assert (report.count, report.skipped) == (1, {"over 1,048,576 bytes": 1})


def test_versions_that_ranges_cover_already_are_not_kept() -> None:
    document = osv("A", fixed="2.0")
    document["affected"][0]["versions"] = ["1.0", "1.1", "3.0", "not a version"]
    (affected,) = read(json.dumps(document).encode()).affected["PyPI", "left"]
    assert affected.versions == ("3.0", "not a version")


def test_texts_and_links_of_an_advisory_are_bounded() -> None:
    links = [{"type": "WEB", "url": f"https://example.org/{n}"} for n in range(50)]
    links.append({"type": "ADVISORY", "url": "https://example.org/first"})
    links.append({"type": "WEB", "url": "javascript:alert(1)"})
    advisory = read(json.dumps(osv("A", details="x" * 100_000, references=links)).encode()).advisory
    assert advisory is not None
    assert len(advisory.details) == DETAILS
    assert (len(advisory.references), advisory.references[0]) == (10, "https://example.org/first")


def test_progress_is_told_up_to_the_last_document(tmp_path: Path) -> None:
    told: list[int] = []
    folder = folder_of(tmp_path / "1", *(osv(f"A-{n}") for n in range(600)))
    import_osv(folder, tmp_path / "db", progress=lambda done, name: told.append(done))
    assert told == [500, 600]


def test_what_is_no_database_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"hello " * 1000)
    for name in ("missing", "text"):
        with pytest.raises(DatabaseError, match="import"):
            open_database(tmp_path / name)


def test_a_database_can_travel_as_bytes(tmp_path: Path) -> None:
    report = import_osv(folder_of(tmp_path / "1", osv("A")), tmp_path / "db")
    (tmp_path / "copy ?#.db").write_bytes((tmp_path / "db").read_bytes())
    with open_database(tmp_path / "copy ?#.db") as database:
        assert database.digest == report.digest


def test_a_reader_keeps_the_database_that_it_opened(tmp_path: Path) -> None:
    import_osv(folder_of(tmp_path / "1", osv("A")), tmp_path / "db")
    with open_database(tmp_path / "db") as database:
        import_osv(folder_of(tmp_path / "2", osv("B")), tmp_path / "db")
        assert len(database.lookup("PyPI", "left")) == 1


def test_a_damaged_database_is_said_and_never_anything_else(tmp_path: Path) -> None:
    import_osv(folder_of(tmp_path / "1", *(osv(f"A-{n}", f"p{n % 7}") for n in range(60))), tmp_path / "db")
    content = (tmp_path / "db").read_bytes()
    rnd = random.Random(3)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(rnd.randrange(1, 30)):
            damaged[rnd.randrange(len(damaged))] = rnd.randrange(256)
        (tmp_path / "bad").write_bytes(damaged)
        with contextlib.suppress(DatabaseError), open_database(tmp_path / "bad") as database:
            for package in range(7):
                for hit in database.lookup("PyPI", f"p{package}"):
                    database.advisory(hit.advisory)
            changed_packages(tmp_path / "db", tmp_path / "bad")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(osv("A") | {"severity": [], "aliases": [], "references": []})), _JSON, st.data())
def test_no_document_breaks_the_reader(field: str, value: Any, data: st.DataObject) -> None:
    document = osv("A") | {field: value}
    if data.draw(st.booleans()):
        document["affected"] = [{"package": {"ecosystem": "Debian:12", "name": "x"}, field: value, "ranges": value}]
    content = json.dumps(document).encode()
    cut = data.draw(st.integers(0, len(content)))
    for each in (content, content[:cut]):
        with contextlib.suppress(DocumentError):
            read(each)


def _damaged(content: bytes, rnd: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rnd.randrange(1, 6)):
        changed[rnd.randrange(len(changed))] = rnd.randrange(256)
    return bytes(changed[: rnd.randrange(len(changed))] if rnd.random() < 0.3 else changed)


@pytest.mark.parametrize("damage", [_damaged])
def test_a_damaged_zip_file_is_refused_or_its_entries_are_skipped(
    tmp_path: Path, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    with zipfile.ZipFile(tmp_path / "good.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.json", json.dumps(osv(f"A-{number}")))
    content = (tmp_path / "good.zip").read_bytes()
    rnd = random.Random(7)
    for _ in range(60):
        (tmp_path / "bad.zip").write_bytes(damage(content, rnd))
        with contextlib.suppress(SourceError):
            import_osv(tmp_path / "bad.zip", tmp_path / "db", replace=True)


def test_a_source_that_is_nothing_but_a_bomb_is_called_too_large(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", b" " * (8 << 20))
        archive.writestr("README", b"")
    with pytest.raises(SourceError, match=r"no OSV documents.*1 over 1,048,576 bytes, 1 not JSON"):
        import_osv(tmp_path / "all.zip", tmp_path / "db", limits=Limits(file_bytes=1 << 20))


def test_bombs_count_towards_the_limit_of_the_whole(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            archive.writestr(f"{number}.json", b" " * (1 << 20))
    with pytest.raises(SourceError, match="bytes of documents"):
        import_osv(tmp_path / "all.zip", tmp_path / "db", limits=Limits(file_bytes=1 << 18, total_bytes=1 << 19))
