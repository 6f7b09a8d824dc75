"""Names are accepted and refused as apimachinery does."""

from __future__ import annotations

import pytest

from trimtab.model.names import dns_subdomain_problems, label_key_problems, label_value_problems

QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        ("app", []),
        ("app.kubernetes.io/name", []),
        ("A_b.c-9", []),
        ("a" * 63, []),
        ("a" * 64, ["name part must be no more than 63 characters"]),
        ("", ["name part must be non-empty", "name part " + QUALIFIED]),
        ("-a", ["name part " + QUALIFIED]),
        ("a\n", ["name part " + QUALIFIED]),
        ("ä", ["name part " + QUALIFIED]),
        ("/a", ["prefix part must be non-empty"]),
        ("A.b/c", ["prefix part " + SUBDOMAIN]),
        ("a" * 254 + "/c", ["prefix part must be no more than 253 characters"]),
        (
            "a/b/c",
            [f"a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
        ),
    ],
)
def test_a_label_key(key: str, problems: list[str]) -> None:
    assert label_key_problems(key) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("", []),
        ("a.b_c-D", []),
        ("a" * 63, []),
        ("a" * 64, ["must be no more than 63 characters"]),
        ("a/b", [VALUE]),
        ("-", [VALUE]),
    ],
)
def test_a_label_value(value: str, problems: list[str]) -> None:
    assert label_value_problems(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("a.b-c.d9", []),
        ("a..b", [SUBDOMAIN]),
        ("A", [SUBDOMAIN]),
        ("a" * 254, ["must be no more than 253 characters"]),
    ],
)
def test_a_dns_subdomain(value: str, problems: list[str]) -> None:
    assert dns_subdomain_problems(value) == problems
