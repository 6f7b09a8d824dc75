"""Quantities are read, compared and written as Kubernetes does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.quantity import Notation, Quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1025Ki", "1025Ki"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("1.0001Ki", "1024102400u"),
        ("100000", "100k"),
        ("1e3", "1e3"),
        ("12E6", "12E6"),
        ("1000e-3", "1"),
        ("2E", "2E"),
        ("2Ei", "2Ei"),
        ("100Ei", "9223372036854775807"),
        ("0.0000000001", "1n"),
        ("-1.5", "-1500m"),
        ("+5", "+5"),
        ("1.", "1."),
        (".5", "500m"),
        ("00012", "00012"),
        ("5000Mi", "5000Mi"),
    ],
)
def test_a_quantity_prints_in_canonical_form(text: str, canonical: str) -> None:
    assert str(Quantity(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", "1x", "1 Gi", "1.2.3", ".", "Gi", "1ki", "1mi", "1e", "1e9999", "+", "9" * 100, "1GiB"]
)
def test_what_is_not_a_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantit"):
        Quantity(text)


def test_quantities_compare_by_amount() -> None:
    assert Quantity("1024Mi") == Quantity("1Gi")
    assert Quantity("1G") < Quantity("1Gi")
    assert max(Quantity("900m"), Quantity("1")) == Quantity(1)
    assert hash(Quantity("1000m")) == hash(Quantity("1"))


def test_whole_and_milli_values_round_up() -> None:
    assert (Quantity("1500m").value, Quantity("1500u").milli_value, Quantity("-1500m").value) == (2, 2, -2)


def test_a_sum_keeps_the_notation_of_its_first_part() -> None:
    assert str(Quantity("1Gi") + Quantity("1Gi")) == "2Gi"
    assert str(Quantity("0") + Quantity("1Gi")) == "1Gi"
    assert str(Quantity("250m") * 4 - Quantity("1")) == "0"


amounts = st.builds(Quantity.of, st.integers(-(10**24), 10**24), st.sampled_from([Notation.DECIMAL, Notation.EXPONENT]))


@settings(max_examples=80)
@given(amounts)
def test_a_printed_quantity_reads_back_as_the_same_amount(quantity: Quantity) -> None:
    assert Quantity(str(quantity)) == quantity


@settings(max_examples=50)
@given(amounts, amounts)
def test_what_is_added_can_be_taken_away(a: Quantity, b: Quantity) -> None:
    assert (a + b) - b == a
