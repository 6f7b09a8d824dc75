"""Editing and listing trees: a commit is exactly its changes, whatever they are; what is odd is listed and not followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.needs import needs
from tests.runtime.git.conftest import ME
from trimtab.lab.git import GitServer, run
from trimtab.runtime.git import Limits, Malformed, Mirror, NoSuchRef, Person, Remote, TooLarge, trees
from trimtab.runtime.git.objects import FileKind


@pytest.fixture
def server(tmp_path: Path) -> GitServer:
    needs("git")
    server = GitServer(tmp_path / "server")
    server.create("team", {"a.yaml": "a: 1\n", "apps/b.yaml": "b\n", "apps/deep/er/c.yaml": "c\n"})
    return server


@pytest.fixture
def mirror(server: GitServer, tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirror", Remote(url=f"file://{server.path()}", allow_file=True))


async def _commit(mirror: Mirror, parent: str | None, changes: dict[str, bytes | None]) -> str:
    return await mirror.commit(parent, changes, message="Change", author=ME, committer=ME)


async def _content(mirror: Mirror, commit: str) -> dict[str, bytes]:
    files = await mirror.files(commit)
    found = await mirror.read((file.oid for file in files.values()), max_bytes=1 << 30)
    return {path: found[file.oid] for path, file in files.items()}


NAMES = st.sampled_from(["a", "b", "c.yaml", "ü", "with space", "a.b", "a-b", "A", "-x"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CHANGES = st.lists(st.dictionaries(PATHS, st.none() | st.binary(max_size=20), max_size=8), max_size=5)


@given(rounds=CHANGES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_commit_is_exactly_its_changes(mirror: Mirror, rounds: list[dict[str, bytes | None]]) -> None:
    """Against a plain dict. Changes that would need a file and a folder of one name are refused and change nothing."""
    commit, model = await _commit(mirror, None, {"begin": b""}), {"begin": b""}
    for changes in rounds:
        after = {path: content for path, content in model.items() if changes.get(path, b"") is not None}
        after |= {path: content for path, content in changes.items() if content is not None}
        folders = {"/".join(path.split("/")[:depth]) for path in after for depth in range(1, path.count("/") + 1)}
        gone_folders = {
            path
            for path, content in changes.items()
            if content is None and any(other.startswith(f"{path}/") for other in model)
        }
        if folders & after.keys() or gone_folders:
            with pytest.raises(ValueError, match=r"^path '"):
                await _commit(mirror, commit, changes)
            continue
        made = await _commit(mirror, commit, changes)
        assert await _content(mirror, made) == after
        differing = {path for path in {*model, *after} if model.get(path) != after.get(path)}
        assert await mirror.changed(commit, made) == differing
        assert (made == commit) == (not differing)
        for folder in {path.split("/")[0] for path in differing}:
            inside = {path for path in differing if path == folder or path.startswith(f"{folder}/")}
            assert await mirror.changed(commit, made, folder) == inside
        commit, model = made, after


async def test_git_agrees_on_the_tree_that_was_made(server: GitServer, mirror: Mirror) -> None:
    head = (await mirror.fetch("main"))["main"]
    commit = await _commit(mirror, head, {"a.yaml": None, "a.yaml2": b"2", "apps/deep/er/c.yaml": None, "z/y/x": b"x"})
    await mirror.push(commit, "main", expected=head)
    run("-C", str(server.path()), "fsck", "--strict", "--full")
    assert server.read() == {"a.yaml2": b"2", "apps/b.yaml": b"b\n", "z/y/x": b"x"}


async def test_nothing_changed_is_no_commit(mirror: Mirror) -> None:
    head = (await mirror.fetch("main"))["main"]
    assert await _commit(mirror, head, {"a.yaml": b"a: 1\n", "absent": None}) == head
    assert await _commit(mirror, head, {}) == head


async def test_an_executable_stays_one_and_odd_entries_are_listed_as_what_they_are(
    server: GitServer, mirror: Mirror
) -> None:
    modes = {"run.sh": "100755", "link": "120000", "module": "160000"}
    server.commit("team", {"run.sh": "#!", "link": "/etc/passwd", "module": "1" * 40}, modes=modes)
    head = (await mirror.fetch("main"))["main"]
    files = await mirror.files(head)
    assert {path: file.kind for path, file in files.items() if path in modes} == {
        "run.sh": FileKind.EXECUTABLE,
        "link": FileKind.SYMLINK,
        "module": FileKind.SUBMODULE,
    }
    assert (await mirror.read([files["link"].oid], max_bytes=100))[files["link"].oid] == b"/etc/passwd"
    commit = await _commit(mirror, head, {"run.sh": b"#!/bin/sh"})
    assert (await mirror.files(commit))["run.sh"].kind is FileKind.EXECUTABLE
    for path in ("link", "module", "link/passwd", "a.yaml/x", "apps"):
        with pytest.raises(ValueError, match=r"^path '"):
            await _commit(mirror, head, {path: b"x"})
    gone = await _commit(mirror, head, {"link": None, "module": None, "a.yaml": None, "a.yaml/x": b"now a folder"})
    assert {"link", "module", "a.yaml"}.isdisjoint(await mirror.files(gone))


@pytest.mark.parametrize(
    "path", ["", "/a", "a//b", "../a", "a/../b", "./a", "a/", ".git/config", "a/.GIT/x", "a\0b", "x" * 5000, "d/" * 70]
)
async def test_paths_that_would_leave_or_be_git_s_own_are_refused(mirror: Mirror, path: str) -> None:
    with pytest.raises(ValueError, match=r"^path"):
        await _commit(mirror, None, {path: b"x"})


async def test_a_tree_with_names_that_no_honest_one_has_is_malformed(server: GitServer, mirror: Mirror) -> None:
    blob = run("-C", str(server.path()), "hash-object", "-w", "--stdin", said=b"evil").strip()
    for name in (b"..", b".git"):
        raw = b"100644 " + name + b"\0" + bytes.fromhex(blob.decode())
        words = ["hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
        tree = run("-C", str(server.path()), *words, said=raw).decode().strip()
        commit = run("-C", str(server.path()), "commit-tree", "-m", "evil", tree).decode().strip()
        run("-C", str(server.path()), "update-ref", "refs/heads/evil", commit)
        await mirror.fetch("evil")
        with pytest.raises(Malformed, match="entry named"):
            await mirror.files(commit)


async def test_a_part_of_the_tree_is_listed_by_its_path(mirror: Mirror) -> None:
    head = (await mirror.fetch("main"))["main"]
    assert list(await mirror.files(head, "apps")) == ["apps/b.yaml", "apps/deep/er/c.yaml"]
    assert list(await mirror.files(head, "apps/deep/er")) == ["apps/deep/er/c.yaml"]
    assert list(await mirror.files(head, "a.yaml")) == ["a.yaml"]
    assert list(await mirror.files(head, "absent")) == []


async def test_what_is_not_in_the_mirror_is_told(mirror: Mirror) -> None:
    for call in (mirror.files("1" * 40), mirror.about("main"), mirror.read(["2" * 40], max_bytes=1)):
        with pytest.raises(NoSuchRef, match="not in the mirror"):
            await call


async def test_names_that_are_no_utf8_are_listed_by_their_bytes(server: GitServer, mirror: Mirror) -> None:
    blob = run("-C", str(server.path()), "hash-object", "-w", "--stdin", said=b"x").strip()
    tree = run("-C", str(server.path()), "mktree", said=b"100644 blob " + blob + b"\tcaf\xe9\n").decode().strip()
    commit = run("-C", str(server.path()), "commit-tree", "-m", "x", tree).decode().strip()
    run("-C", str(server.path()), "update-ref", "refs/heads/latin", commit)
    await mirror.fetch("latin")
    assert list(await mirror.files(commit)) == ["caf\udce9"]


@pytest.mark.parametrize("wrong", [{"name": "A <b>"}, {"email": "a\nb"}, {"name": " "}])
def test_people_whose_names_would_break_a_commit_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="must"):
        Person(**{"name": "Ann", "email": "ann@example.com", **wrong})


def _object(server: GitServer, kind: str, content: bytes) -> str:
    words = ["hash-object", "-t", kind, "-w", "--literally", "--stdin"]
    return run("-C", str(server.path()), *words, said=content).decode().strip()


@pytest.mark.parametrize("leaf", [b"", b"100644 file\0"], ids=["of folders only", "of files"])
async def test_a_small_tree_that_unfolds_without_end_is_too_large(
    server: GitServer, mirror: Mirror, leaf: bytes
) -> None:
    """Twelve levels, each naming the one below ten times: 10^12 paths in some kilobytes."""
    below = _object(server, "tree", leaf and leaf + bytes.fromhex(_object(server, "blob", b"x")))
    other = below
    for level in range(12):
        entry = b"".join(b"40000 %d\0" % number + bytes.fromhex(below) for number in range(10))
        below = _object(server, "tree", entry)
        entry = b"".join(b"40000 %d\0" % number + bytes.fromhex(other) for number in range(2 if level == 0 else 10))
        other = _object(server, "tree", entry)
    commits = []
    for number, tree in enumerate((below, other)):
        commits.append(run("-C", str(server.path()), "commit-tree", "-m", "bomb", tree).decode().strip())
        run("-C", str(server.path()), "update-ref", f"refs/heads/bomb-{number}", commits[-1])
    mirror = Mirror(mirror.folder, mirror.remote, limits=Limits(files=5_000))
    await mirror.fetch("bomb-0", "bomb-1")
    with pytest.raises(TooLarge, match="more than the 5000 files and folders"):
        await mirror.files(commits[0])
    with pytest.raises(TooLarge):
        await mirror.changed(*commits)


async def test_a_commit_that_unfolds_to_more_than_memory_should_hold_is_refused(
    server: GitServer, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "LARGEST", 1 << 20)
    tree = run("-C", str(server.path()), "rev-parse", "main^{tree}").strip()
    who = b" Ann <ann@example.com> 1 +0000\n"
    content = b"tree " + tree + b"\nauthor" + who + b"committer" + who + b"\n" + b"x" * (2 << 20)
    commit = _object(server, "commit", content)
    run("-C", str(server.path()), "update-ref", "refs/heads/large", commit)
    for call in (mirror.fetch("large"), mirror.about(commit), mirror.resolve("large")):
        with pytest.raises(Malformed, match="is no file"):
            await call
