"""rpm databases of all three forms give what rpm itself lists; damage is told, never more."""

from __future__ import annotations

import contextlib
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.images import rpm_kit
from tests.systems.images.layer_kit import read, tar
from trimtab.systems.images.packages import rpm, rpm_sqlite
from trimtab.systems.images.packages.package import Package
from trimtab.systems.images.packages.problems import Unreadable

EXPECTED = {("alpha", "2:1.2-3"), ("alpha-libs", "1.2-3"), ("beta", "2:0.9~rc1-3")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rpm_kit.database(tmp_path_factory.mktemp("rpm"))


def named(packages: tuple[Package, ...]) -> set[tuple[str, str]]:
    return {(each.name, each.version) for each in packages}


def test_a_database_in_sqlite_gives_what_rpm_lists(place):
    found = rpm.read("var/lib/rpm/rpmdb.sqlite", (place / "rpmdb.sqlite").read_bytes())
    assert named(found) == rpm_kit.listed(place, "sqlite") == EXPECTED


def test_the_headers_read_from_sqlite_are_those_that_sqlite_reads(place):
    blobs = sorted(rpm_sqlite.blobs((place / "rpmdb.sqlite").read_bytes()))
    assert blobs == sorted(rpm_kit.headers(place))
    assert max(map(len, blobs)) > 4096  # at least one lies in overflow pages


def test_source_licence_and_architecture_come_from_the_header(place):
    alpha = next(each for each in rpm.read("p", (place / "rpmdb.sqlite").read_bytes()) if each.name == "alpha")
    assert (alpha.source, alpha.source_version, alpha.arch) == ("alpha", "1.2-3", "noarch")
    assert alpha.licenses == ("MIT and GPLv2+",)
    assert alpha.purl == "pkg:rpm/alpha@1.2-3?arch=noarch&epoch=2&upstream=alpha-1.2-3.src.rpm"


def test_many_packages_in_a_tree_of_pages_are_all_read(place, tmp_path):
    blobs = rpm_kit.headers(place)
    path = tmp_path / "rpmdb.sqlite"
    connection = apsw.Connection(str(path))
    connection.execute("create table Packages (hnum integer primary key autoincrement, blob blob not null)")
    with connection:
        connection.executemany("insert into Packages(blob) values (?)", [(blobs[n % 3],) for n in range(600)])
    connection.close()
    assert sorted(rpm_sqlite.blobs(path.read_bytes())) == sorted(blobs[n % 3] for n in range(600))


def test_packages_that_are_only_in_the_write_ahead_log_are_found_in_a_layer(place, tmp_path):
    first, *others = rpm_kit.headers(place)
    path = tmp_path / "rpmdb.sqlite"
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode=wal; pragma wal_autocheckpoint=0")
    connection.execute("create table Packages (hnum integer primary key autoincrement, blob blob not null)")
    connection.execute("insert into Packages(blob) values (?)", (first,))
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.executemany("insert into Packages(blob) values (?)", [(each,) for each in others])
    files = {name: (tmp_path / name).read_bytes() for name in ("rpmdb.sqlite", "rpmdb.sqlite-wal")}
    connection.close()
    (finding,) = read(tar({f"var/lib/rpm/{name}": body for name, body in files.items()})).findings
    assert named(finding.packages) == EXPECTED
    assert len(rpm.read("p", files["rpmdb.sqlite"])) == 1


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_a_database_in_berkeley_db_gives_what_rpm_lists(place, tmp_path, page):
    folder = rpm_kit.berkeley(tmp_path / "bdb", rpm_kit.headers(place), page)
    found = rpm.read("var/lib/rpm/Packages", (folder / "Packages").read_bytes())
    assert named(found) == rpm_kit.listed(folder, "bdb_ro") == EXPECTED


def test_a_database_in_ndb_is_read(place):
    found = rpm.read("usr/lib/sysimage/rpm/Packages.db", rpm_kit.ndb(rpm_kit.headers(place)))
    assert named(found) == EXPECTED


def test_a_key_that_signs_packages_is_no_package():
    key = rpm_kit.header({1000: "gpg-pubkey", 1001: "5a6b", 1002: "1f"})
    other = rpm_kit.header({1000: "bash", 1001: "5.2", 1002: "1"})
    assert named(rpm.read("p", rpm_kit.ndb([key, other]))) == {("bash", "5.2-1")}


def test_what_was_read_before_the_damage_is_kept():
    good, bad = rpm_kit.header({1000: "bash", 1001: "5.2", 1002: "1"}), b"\xff" * 40
    with pytest.raises(Unreadable) as caught:
        rpm.read("p", rpm_kit.ndb([good, bad]))
    assert named(caught.value.packages) == {("bash", "5.2-1")}


def test_a_header_that_is_named_again_and_again_is_damage():
    body = bytearray(rpm_kit.ndb([rpm_kit.header({1000: "a" * 30_000, 1001: "1"})]))
    body[48 : 48 + 16 * 200] = body[32:48] * 200
    with pytest.raises(Unreadable, match="more bytes"):
        rpm.read("p", bytes(body))


@pytest.mark.parametrize(
    "body", [b"x", b"nothing of rpm" * 100, rpm_sqlite.MAGIC, rpm_sqlite.MAGIC + bytes(4096), b"RpmP"]
)
def test_what_is_no_database_is_told_as_unreadable(body):
    with pytest.raises(Unreadable):
        rpm.read("var/lib/rpm/Packages", body)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), form=st.sampled_from(["sqlite", "ndb", "bdb"]))
def test_a_mutated_database_is_read_or_unreadable(data, form, forms):
    mutant = bytearray(forms[form])
    del mutant[data.draw(st.integers(len(mutant) // 2, len(mutant))) :]
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.one_of(st.integers(0, 300), st.integers(0, len(mutant) - 1)))
        mutant[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Unreadable):
        rpm.read("var/lib/rpm/Packages", bytes(mutant))


@pytest.fixture(scope="module")
def forms(place, tmp_path_factory) -> dict[str, bytes]:
    headers = rpm_kit.headers(place)
    folder = rpm_kit.berkeley(tmp_path_factory.mktemp("mutated") / "bdb", headers)
    return {
        "sqlite": (place / "rpmdb.sqlite").read_bytes(),
        "ndb": rpm_kit.ndb(headers),
        "bdb": (folder / "Packages").read_bytes(),
    }
