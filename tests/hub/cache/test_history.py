"""The judge of histories itself."""

from __future__ import annotations

from tests.hub.cache.history import Event, violations


def test_a_read_after_an_acknowledged_write_must_show_it() -> None:
    write = Event("write", "a", 0.0, 1.0, 5)
    assert not list(violations([write, Event("read", "a", 1.5, 2.0, 5)]))
    assert not list(violations([write, Event("read", "a", 1.5, 2.0, 6)]))
    (line,) = violations([write, Event("read", "a", 1.5, 2.0, 4, "one")])
    assert "one began a get of a" in line
    assert "5 had been acknowledged" in line


def test_a_read_that_began_before_the_acknowledgement_may_show_either() -> None:
    write = Event("write", "a", 0.0, 1.0, 5)
    assert not list(violations([write, Event("read", "a", 0.5, 9.0, 4)]))


def test_a_write_that_was_not_acknowledged_binds_nobody() -> None:
    assert not list(violations([Event("write", "a", 0.0, None, 5), Event("read", "a", 9.0, 9.5, 4)]))


def test_resources_are_judged_one_by_one() -> None:
    assert not list(violations([Event("write", "a", 0.0, 1.0, 5), Event("read", "b", 2.0, 3.0, 1)]))
