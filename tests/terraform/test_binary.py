"""The binary that tests drive says what it is, and only what it lacks is skipped."""

from __future__ import annotations

import pytest

from tests.terraform import binary


@pytest.mark.parametrize(
    ("said", "is_what"),
    [
        ("Terraform v1.11.4\non linux_amd64\n", ("Terraform", (1, 11, 4))),
        ("OpenTofu v1.12.6\non linux_amd64\n", ("OpenTofu", (1, 12, 6))),
        ("OpenTofu v1.11.0-beta1\n", ("OpenTofu", (1, 11, 0))),
    ],
)
def test_the_version_is_read_of_what_it_says(said: str, is_what: tuple[str, tuple[int, ...]]) -> None:
    assert binary.parsed(said) == is_what


@pytest.mark.parametrize(
    ("feature", "product", "version", "is_lacking"),
    [
        ("write-only attributes", "OpenTofu", (1, 10, 10), True),
        ("write-only attributes", "OpenTofu", (1, 11, 0), False),
        ("write-only attributes", "Terraform", (1, 10, 5), True),
        ("ephemeral resources", "Terraform", (1, 10, 0), False),
        ("ephemeral resources", "OpenTofu", (1, 12, 6), False),
    ],
)
def test_a_feature_is_lacking_before_the_version_that_brought_it(
    feature: str, product: str, version: tuple[int, ...], is_lacking: bool
) -> None:
    assert binary.is_lacking(feature, product, version) == is_lacking


def test_a_skip_names_the_product_the_feature_and_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "binary", lambda: "tofu")
    monkeypatch.setattr(binary, "told", lambda program: ("OpenTofu", (1, 10, 6)))
    with pytest.raises(
        pytest.skip.Exception, match=r"OpenTofu 1\.10\.6 lacks write-only attributes: looked for from 1\.11 on"
    ):
        binary.can("write-only attributes")


def test_a_binary_that_was_named_and_is_not_there_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(binary.VARIABLE, "/nowhere/tofu")
    with pytest.raises(pytest.fail.Exception, match="names /nowhere/tofu, which is no program"):
        binary.binary()
