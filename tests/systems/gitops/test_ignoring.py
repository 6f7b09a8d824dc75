"""A .trimtabignore means what a .gitignore of these lines means: Git itself is asked."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from trimtab.lab.git import run
from trimtab.systems.gitops.parsing import Ignore
from trimtab.systems.gitops.parsing.ignoring import MOST_LINES, TooLong

SEED = 20261118
ALWAYS = "it fails when nothing is left out"
WORDS = ["a", "b", "ab", "c.yaml", "a.yaml", "é", "!x", "#x", "a b", "[a]", "a]", "-", "\\x"]
SIGNS = [
    *("a", "b", ".yaml", "é", "x", "-", " ", "*", "**", "***", "?", "/", "/", "**/", "/**", "\\", "\\*", "\\/", "!", "#"),
    *("[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[!]]", "[a\\]]", "[[:alpha:]]", "[[:nope:]]", "[[:a]", "["),
    *("[b-a]", "[-a]", "[a-]"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run("init", "--quiet", str(tmp_path))
    (tmp_path / ".git/info/exclude").write_text(f"{ALWAYS}\n")
    return tmp_path


def ignored(folder: Path, text: str, paths: list[str]) -> set[str]:
    (folder / ".gitignore").write_bytes(text.encode())
    said = "".join(f"{path}\0" for path in (*paths, ALWAYS)).encode()
    words = ("check-ignore", "--no-index", "--verbose", "--non-matching", "--stdin", "-z")
    found = run("-C", str(folder), *words, said=said).decode().split("\0")[:-1]
    answers = zip(found[2::4], found[3::4], strict=True)
    return {path for pattern, path in answers if pattern and not pattern.startswith("!")} - {ALWAYS}


@pytest.mark.row(49)
def test_random_lists_leave_out_what_git_leaves_out(folder: Path) -> None:
    chance = random.Random(SEED)
    for _ in range(150):
        lines = ["".join(chance.choices(SIGNS, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 4))]
        text = "".join(f"{chance.choice(['', '', '', '!', '/'])}{line}\n" for line in lines)
        paths = sorted({"/".join(chance.choices(WORDS, k=chance.randint(1, 4))) for _ in range(60)})
        ignore = Ignore.of(text)
        assert {path for path in paths if ignore.ignores(path)} == ignored(folder, text, paths), repr(text)


@pytest.mark.row(49)
@pytest.mark.parametrize(
    "text",
    [
        "[c]0.yaml\n",
        "sub/\n!sub/c0.yaml\n",
        "sub/*\n!sub/c0.yaml\n",
        "\\!c0.yaml\n",
        "\\#c0.yaml\n",
        "c0.yaml   #x\n",
        "c0.yaml  \n",
        "c0.yaml\\ \n",
        "c0.yaml\t\n",
        "c0.yaml\r\n",
        "\ufeffc0.yaml\n",
        "c0.yaml",
        "//c0.yaml\n",
        "su**/c0.yaml\n",
        "su**\n",
        "sub/?0.yaml\n",
        "/\n!\n\\\n",
    ],
)
def test_a_line_leaves_out_what_git_leaves_out(folder: Path, text: str) -> None:
    names = ["c0.yaml", "!c0.yaml", "#c0.yaml", "c0.yaml ", "c0.yaml\t", "é0.yaml"]
    paths = [*names, *(f"sub/{name}" for name in names), "sub/deep/c0.yaml"]
    ignore = Ignore.of(text)
    assert {path for path in paths if ignore.ignores(path)} == ignored(folder, text, paths)


def test_a_list_that_is_too_long_is_not_cut() -> None:
    assert Ignore.of("# why\n\n" * 5000 + "off.yaml\n").ignores("off.yaml")
    with pytest.raises(TooLong, match="has more than 1000 patterns"):
        Ignore.of("".join(f"a{number}\n" for number in range(MOST_LINES + 1)))
