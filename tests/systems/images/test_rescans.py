"""When an SBOM is to be scanned again, and what a new database means for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.images.test_database import folder_of, osv
from trimtab.systems.images.layers.image import Inventory
from trimtab.systems.images.packages.package import Distro, Package
from trimtab.systems.images.rescans import MOST_CHANGED, Due, Scan, Wishes, World, compare, due, share_of, touches
from trimtab.systems.images.vulnerabilities.importing import import_osv
from trimtab.systems.images.worker.documents import encode

NOW = datetime(2026, 1, 10, tzinfo=UTC)
DAY = 86400.0
SCAN = Scan(at=NOW - timedelta(hours=12), database="one", vex="", has_findings=True)
ONE, TWO, NONE = World(database="one"), World(database="two"), World()


@pytest.mark.parametrize(
    ("scan", "refused", "wishes", "world", "key"),
    [
        (None, "", Wishes(), ONE, "new/one"),
        (None, "", Wishes(), NONE, "new/"),
        (None, "NoDatabase", Wishes(), NONE, None),
        (None, "NoDatabase", Wishes(), ONE, "new/one"),
        (None, "ScanFailed", Wishes(), ONE, "new/one"),
        (SCAN, "", Wishes(), ONE, None),
        (SCAN, "", Wishes(), TWO, None),
        (SCAN, "", Wishes(), NONE, None),
        (SCAN, "", Wishes(on_new_database=True), ONE, None),
        (SCAN, "", Wishes(on_new_database=True), TWO, "database/two"),
        (SCAN, "", Wishes(on_new_database=True), NONE, None),
        (SCAN, "", Wishes(period=3600.0), ONE, "period/20260109t120000"),
        (SCAN, "", Wishes(period=3600.0, on_new_database=True), TWO, "period/20260109t120000"),
        (SCAN, "", Wishes(period=DAY, on_new_database=True), TWO, "database/two"),
        (SCAN, "", Wishes(), World(database="one", vex="v"), "vex/v/one"),
    ],
)  # fmt: skip
def test_what_makes_a_scan_due_now(scan: Scan | None, refused: str, wishes: Wishes, world: World, key: str) -> None:
    found = due(scan, refused, wishes, world, NOW)
    assert (found.key if found is not None and found.at <= NOW else None) == key


def test_a_new_database_is_a_reason_only_if_it_says_new_things() -> None:
    found = due(SCAN, "", Wishes(on_new_database=True), TWO, NOW)
    assert found == Due(key="database/two", at=NOW, if_changed=True)


def test_statements_cannot_change_a_report_without_findings() -> None:
    clean = Scan(at=SCAN.at, database="one", has_findings=False)
    assert due(clean, "", Wishes(), World(database="one", vex="v"), NOW) is None


def test_statements_count_when_they_have_been_quiet_for_a_while() -> None:
    world = World(database="one", vex="v", vex_since=NOW - timedelta(seconds=4))
    found = due(SCAN, "", Wishes(), world, NOW)
    assert found is not None
    assert found.at == NOW + timedelta(seconds=6)


def test_a_period_counts_from_the_last_scan_and_is_spread_by_a_tenth_at_most() -> None:
    wishes = Wishes(period=10_000.0)
    times = [due(SCAN, "", wishes, ONE, SCAN.at, share) for share in (0.0, 0.5, 0.999)]
    waits = [(found.at - SCAN.at).total_seconds() for found in times if found is not None]
    assert waits == [10_000.0, 10_500.0, 10_999.0]


def test_shares_of_sboms_are_spread() -> None:
    shares = sorted(share_of(f"uid-{number}") for number in range(1000))
    assert 0.0 <= shares[0] < shares[499] < shares[-1] < 1.0
    assert 0.4 < shares[499] < 0.6


@settings(max_examples=200, deadline=None)
@given(
    age=st.floats(0, 10 * DAY),
    period=st.none() | st.floats(60, 5 * DAY),
    on_new_database=st.booleans(),
    database=st.sampled_from(["", "one", "two"]),
    vex=st.sampled_from(["", "v"]),
    share=st.floats(0, 1, exclude_max=True),
)
def test_a_scan_with_what_is_current_now_makes_nothing_due_before_its_period(
    age: float, period: float | None, on_new_database: bool, database: str, vex: str, share: float
) -> None:
    """So a scan that was done is never asked for in a loop."""
    scan = Scan(at=NOW - timedelta(seconds=age), database=database, vex=vex)
    found = due(
        scan, "", Wishes(period=period, on_new_database=on_new_database), World(database=database, vex=vex), NOW, share
    )
    assert (found is None) == (period is None)
    assert found is None or (found.at - scan.at).total_seconds() >= (period or 0.0) - 1e-3


def made(folder: Path, name: str, *documents: dict[str, Any]) -> Path:
    target = folder / f"{name}.db"
    import_osv(folder_of(folder / name, *documents), target)
    return target


def inventory(*packages: tuple[str, str]) -> bytes:
    found = tuple(Package(type=kind, name=name, version="1.0") for kind, name in packages)
    return encode(Inventory(distro=Distro("debian", "12"), packages=found))


def test_a_new_database_touches_those_who_have_a_package_of_which_it_says_new_things(tmp_path: Path) -> None:
    old = made(tmp_path, "old", osv("A-1", "left"), osv("A-2", "right"))
    new = made(tmp_path, "new", osv("A-1", "left", fixed="3.0"), osv("A-2", "right"))
    changed = compare(old, new).changed
    assert changed is not None
    assert touches(inventory(("pypi", "left")), changed)
    assert not touches(inventory(("pypi", "right"), ("npm", "left")), changed)


def test_an_ecosystem_that_is_new_touches_all_who_have_a_package_of_it(tmp_path: Path) -> None:
    old = made(tmp_path, "old", osv("A-1", "left"))
    new = made(tmp_path, "new", osv("A-1", "left"), osv("B-1", "express", "npm"))
    changed = compare(old, new).changed
    assert changed is not None
    assert touches(inventory(("npm", "something-else")), changed)
    assert not touches(inventory(("pypi", "left")), changed)


def test_a_comparison_names_the_contents_of_the_older_database(tmp_path: Path) -> None:
    old, new = made(tmp_path, "old", osv("A-1")), made(tmp_path, "new", osv("A-2"))
    again = made(tmp_path, "again", osv("A-1"))
    assert compare(old, new).before == compare(again, new).before != compare(new, old).before


def test_a_database_that_cannot_be_read_is_compared_with_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database")
    assert compare(tmp_path / "broken.db", made(tmp_path, "new", osv("A-1"))).changed is None


def test_too_many_changes_are_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.systems.images.rescans.MOST_CHANGED", 1)
    old = made(tmp_path, "old", osv("A-1", "left"), osv("A-2", "right"))
    new = made(tmp_path, "new", osv("A-1", "left", fixed="3.0"), osv("A-2", "right", fixed="3.0"))
    assert MOST_CHANGED > 1
    assert compare(old, new).changed is None
