"""Revisions, read one after the other: what did not change is not read again, and is the same as if it were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.systems.gitops.desk import Desk, config, message, reason
from trimtab.runtime.git import Mirror, Remote
from trimtab.runtime.workers import Workers
from trimtab.systems.gitops import parsing_apart, reading
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.parsing import Limits, ParsedFile, parse_file
from trimtab.systems.gitops.parsing_apart import MANY, MUCH, PART, PART_BYTES, parted
from trimtab.systems.gitops.reading import Reader, Snapshot
from trimtab.systems.gitops.served import Served

FILES = {"a.yaml": config("a", x="1"), "b/c.yaml": config("c", x="1"), "notes.txt": "no document"}


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    async with Workers(2) as found:
        yield found


@pytest.fixture
def mirror(desk: Desk, tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirror", Remote(url=desk.url()))


def reader_of(desk: Desk, workers: Workers | None = None) -> Reader:
    return Reader(Served(desk.client.transport), Knowledge(desk.client.scheme), workers=workers)


async def next_of(desk: Desk, mirror: Mirror, reader: Reader, before: Snapshot | None) -> Snapshot:
    """The head, read upon `before`; it is as a reader has it who never saw anything."""
    head = (await mirror.fetch("main"))["main"]
    found = await reader.read(mirror, head, "", desk.namespace, before)
    anew = await reader_of(desk).read(mirror, head, "", desk.namespace)
    assert (found.files, found.parsed, found.read) == (anew.files, anew.parsed, anew.read)
    return found


def names(snapshot: Snapshot) -> list[str]:
    return [document.identity.name for document in snapshot.parsed.documents]


async def test_a_revision_upon_another_is_as_if_it_were_the_first(desk: Desk, mirror: Mirror) -> None:
    desk.git.create("team", FILES)
    reader = reader_of(desk)
    one = await next_of(desk, mirror, reader, None)
    assert names(one) == ["a", "c"]
    desk.git.commit("team", {"b/c.yaml": config("c", x="2"), "d.json": '{"apiVersion": "v1"}'})
    two = await next_of(desk, mirror, reader, one)
    assert two.read["a.yaml"] is one.read["a.yaml"]
    assert [problem.path for problem in two.problems] == ["d.json"]
    desk.git.commit("team", {"a.yaml": None, "d.json": None, "e.yaml": config("a", x="1")})
    assert names(await next_of(desk, mirror, reader, two)) == ["c", "a"]


async def test_what_is_ignored_or_read_from_now_on_is_so_though_it_did_not_change(desk: Desk, mirror: Mirror) -> None:
    desk.git.create("team", FILES)
    reader = reader_of(desk)
    before = await next_of(desk, mirror, reader, None)
    desk.git.commit("team", {".trimtabignore": "b/\n"})
    ignoring = await next_of(desk, mirror, reader, before)
    assert names(ignoring) == ["a"]
    desk.git.commit("team", {".trimtabignore": None})
    assert names(await next_of(desk, mirror, reader, ignoring)) == ["a", "c"]


async def test_many_files_that_are_not_quick_to_read_are_read_in_processes_of_their_own(
    desk: Desk, mirror: Mirror, workers: Workers
) -> None:
    desk.git.create("team", {f"{n:04}.yaml": f"# é\n{config(f'n{n}', x='1')}" for n in range(MANY)})
    head = (await mirror.fetch("main"))["main"]
    found = await reader_of(desk, workers).read(mirror, head, "", desk.namespace)
    assert len(found.parsed.documents) == MANY
    assert workers.processes == 2
    desk.git.commit("team", {f"{n:04}.yaml": config(f"n{n}", x="2") for n in range(MANY)})
    await workers.close()
    head = (await mirror.fetch("main"))["main"]
    found = await reader_of(desk, workers).read(mirror, head, "", desk.namespace)
    assert {document.document["data"]["x"] for document in found.parsed.documents} == {"2"}


@pytest.mark.parametrize("memory", [1 << 30, 64 << 20])
async def test_a_large_file_of_small_things_is_not_read_in_this_process(
    desk: Desk, mirror: Mirror, workers: Workers, monkeypatch: pytest.MonkeyPatch, memory: int
) -> None:
    read_here: list[int] = []

    def parse_here(data: bytes, *, json: bool, limits: Limits) -> ParsedFile:
        read_here.append(len(data))
        return parse_file(data, json=json, limits=limits)

    monkeypatch.setattr(reading, "parse_file", parse_here)
    monkeypatch.setattr(parsing_apart, "MEMORY", memory)
    large = "apiVersion: v1\nkind: Thing\nmetadata:\n  name: large\nx: [" + "[], " * 300_000 + "]\n"
    desk.git.create("team", {"a.yaml": config("a", x="1"), "large.yaml": large})
    head = (await mirror.fetch("main"))["main"]
    found = await reader_of(desk, workers).read(mirror, head, "", desk.namespace)
    assert max(read_here, default=0) < MUCH
    if memory < 1 << 30:
        assert any("MiB to read: split the file" in problem.message for problem in found.problems)
    else:
        assert {document.identity.name for document in found.parsed.documents} == {"a", "large"}


def test_parts_are_of_so_many_files_and_bytes() -> None:
    files = {"a": b"", "large": b"x" * (PART_BYTES + 1), **{f"{n}": b"x" for n in range(PART + 1)}}
    assert [len(part) for part in parted(files)] == [1, 1, PART, 1]
    assert [path for part in parted(files) for path in part] == list(files)


@pytest.mark.parametrize(("mode", "kind"), [("120000", "symlink"), ("160000", "submodule")])
async def test_a_file_that_becomes_something_else_is_a_problem_and_deletes_nothing(
    desk: Desk, mirror: Mirror, mode: str, kind: str
) -> None:
    desk.git.create("team", FILES)
    head = desk.git.head("team")
    desk.git.commit("team", {"a.yaml": head if kind == "submodule" else "notes.txt"}, modes={"a.yaml": mode})
    found = await next_of(desk, mirror, reader_of(desk), None)
    (problem,) = found.problems
    assert problem.path == "a.yaml"
    assert problem.message.startswith(f"is a {kind}: it is not followed; ")
    desk.git.commit("team", {".trimtabignore": "a.yaml\n"})
    assert (await next_of(desk, mirror, reader_of(desk), found)).problems == ()


async def test_links_to_what_is_no_document_are_nobodys_business(desk: Desk, mirror: Mirror) -> None:
    desk.git.create("team", FILES)
    modes = {"LINK": "120000", ".hidden.yaml": "120000"}
    desk.git.commit("team", dict.fromkeys(modes, "notes.txt"), modes=modes)
    assert (await next_of(desk, mirror, reader_of(desk), None)).problems == ()


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        ("list", "120000", "is a symlink"),
        ("# x" * (1 << 20), "100644", "is larger than 1024 KiB"),
        ("".join(f"a{number}\n" for number in range(1001)), "100644", "has more than 1000 patterns"),
    ],
)
async def test_an_ignore_list_that_cannot_be_taken_is_a_problem(
    desk: Desk, mirror: Mirror, content: str, mode: str, message: str
) -> None:
    desk.git.create("team", FILES)
    desk.git.commit("team", {".trimtabignore": content}, modes={".trimtabignore": mode})
    (problem,) = (await next_of(desk, mirror, reader_of(desk), None)).problems
    assert (problem.path, message in problem.message) == (".trimtabignore", True)


@pytest.mark.parametrize(
    ("field", "value"),
    [("finalizers", "[example.com/keep]"), ("ownerReferences", "[{apiVersion: v1, kind: X, name: x, uid: u}]")],
)
async def test_a_field_that_is_not_synced_is_told(desk: Desk, field: str, value: str) -> None:
    odd = config("odd", x="1").replace("  name: odd\n", f"  name: odd\n  {field}: {value}\n")
    desk.git.create("team", {"a.yaml": config("a", x="1"), "odd.yaml": odd})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        sync = await desk.until(lambda sync: bool(sync.status.documents))
        assert f"odd.yaml:1: metadata.{field}: is not synced" in message(sync)
        assert reason(sync) == "InvalidDocuments"
        desk.git.commit("team", {"odd.yaml": odd.replace(value, "[]")})
        assert reason(await desk.again()) == "Synced"
