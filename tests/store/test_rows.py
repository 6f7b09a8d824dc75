"""Labels and fields as an entry read from disk has them."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.store.rows import JsonMapping, packed

VALUES = {"app": "web", "tier": "é"}


def stored() -> JsonMapping:
    raw = packed(VALUES)
    assert raw is not None
    return JsonMapping(raw)


def test_a_stored_mapping_reads_as_the_dictionary_it_was() -> None:
    assert isinstance(stored(), Mapping)
    assert dict(stored()) == VALUES
    assert (list(stored()), len(stored())) == (list(VALUES), 2)
    assert (stored().keys(), stored().items()) == (VALUES.keys(), VALUES.items())
    assert list(stored().values()) == list(VALUES.values())
    assert (stored()["app"], stored().get("app"), stored().get("none", "-")) == ("web", "web", "-")
    assert "app" in stored()
    assert "none" not in stored()


def test_it_equals_any_mapping_of_the_same_values() -> None:
    assert stored() == VALUES
    assert stored() == stored()
    assert VALUES == stored()  # noqa: SIM300 (from the other side)
    assert stored() != {"app": "web"}


def test_it_is_not_decoded_before_it_is_looked_at() -> None:
    assert len(JsonMapping(b"not json").raw) == 8


def test_nothing_is_stored_for_an_empty_mapping() -> None:
    assert packed({}) is None


def test_a_mapping_that_was_read_can_be_stored_again() -> None:
    assert packed(stored()) == packed(VALUES)  # type: ignore[arg-type]
