"""Which paths may name an artifact."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.hub.artifacts.paths import checked_path, problem
from trimtab.model.errors import StatusError


@pytest.mark.row(27)
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../secret",
        "a/../../secret",
        "a/..",
        "..",
        ".",
        "./a",
        "a//b",
        "a/",
        "a\\b",
        "..\\a",
        "C:/a",
        "c:a",
        "%2e%2e/a",
        "a%2Fb",
        ".git/config",
        ".github/workflows/ci.yml",
        "a/.trimtabignore",
        "...",
        "..a/b",
        "a\x00b",
        "a\nb",
        "a\u202eb",
        "x" * 256,
        "/".join(["x" * 100] * 11),
    ],
)
def test_what_could_lead_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(StatusError, match="names no artifact") as raised:
        checked_path(path)
    assert raised.value.code == 400


@pytest.mark.parametrize("path", ["a", "a/b/c.yaml", "a../b.", "a b/ü.txt", "100%", "ab:c"])
def test_plain_paths_are_taken_as_they_are(path: str) -> None:
    assert checked_path(path) == path


@given(st.text(alphabet="ab./\\%2eEfF:\x00 ", max_size=20))
def test_a_path_that_is_taken_stays_below_its_folder(path: str) -> None:
    if not problem(path):
        joined = posixpath.normpath(posixpath.join("/some/folder", path))
        assert joined == f"/some/folder/{path}"
