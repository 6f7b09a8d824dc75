"""What a Mirror does, whatever the transport: git daemon, HTTP and HTTPS with a login, SSH with a key."""

from __future__ import annotations

import pytest

from tests.runtime.git.conftest import ME, Place
from trimtab.lab.git import run
from trimtab.runtime.git import Limits, Mirror, Moved, NoSuchRef, Remote, TooLarge

pytestmark = pytest.mark.row(52)


async def test_a_branch_is_fetched_listed_and_read(place: Place) -> None:
    mirror = place.mirror()
    commits = await mirror.fetch("main")
    assert commits == {"main": place.head()}
    files = await mirror.files(commits["main"])
    assert list(files) == ["a.yaml", "apps/b.yaml"]
    assert files["a.yaml"].size == 5
    assert files["a.yaml"].mode == 0o100644
    contents = await mirror.read((file.oid for file in files.values()), max_bytes=1000)
    assert {path: contents[file.oid] for path, file in files.items()} == place.content()


async def test_a_commit_is_pushed_and_a_second_mirror_sees_it(place: Place) -> None:
    mirror, other = place.mirror(), place.mirror("other")
    before = (await mirror.fetch("main"))["main"]
    commit = await mirror.commit(
        before, {"a.yaml": None, "new/c.yaml": b"c: 3\n"}, message="Move a", author=ME, committer=ME
    )
    await mirror.push(commit, "main", expected=before)
    assert place.head() == commit
    assert place.content() == {"apps/b.yaml": b"b: 2\n", "new/c.yaml": b"c: 3\n"}
    assert (await other.fetch("main"))["main"] == commit
    assert await other.changed(before, commit) == {"a.yaml", "new/c.yaml"}
    assert await other.is_ancestor(before, commit)
    assert not await other.is_ancestor(commit, before)
    about = await other.about(commit)
    assert (about.message, about.author.email, about.parents) == ("Move a", ME.email, (before,))


async def test_a_push_does_not_go_over_what_somebody_else_pushed(place: Place) -> None:
    mirror = place.mirror()
    before = (await mirror.fetch("main"))["main"]
    theirs = place.commit({"a.yaml": "a: theirs\n"})
    commit = await mirror.commit(before, {"a.yaml": b"a: ours\n"}, message="Ours", author=ME, committer=ME)
    with pytest.raises(Moved):
        await mirror.push(commit, "main", expected=before)
    assert place.head() == theirs


async def test_a_new_branch_is_made_only_where_there_is_none(bumpy_place: Place) -> None:
    place = bumpy_place
    mirror = place.mirror()
    before = (await mirror.fetch("main"))["main"]
    commit = await mirror.commit(before, {"x": b"x"}, message="X", author=ME, committer=ME)
    await mirror.push(commit, "proposals/x", expected=None)
    assert await mirror.heads() == {"main": before, "proposals/x": commit}
    another = await mirror.commit(before, {"x": b"y"}, message="Y", author=ME, committer=ME)
    with pytest.raises(Moved):
        await mirror.push(another, "proposals/x", expected=None)


async def test_the_first_commit_of_an_empty_repository_is_pushed(bumpy_place: Place) -> None:
    place = bumpy_place
    place.repositories.create(f"{place.name}-empty")
    remote = Remote(url=place.remote.url.replace(place.name, f"{place.name}-empty"), access=place.remote.access)
    mirror = Mirror(place.folder / "empty", remote)
    assert await mirror.heads() == {}
    commit = await mirror.commit(None, {"x": b"x"}, message="Begin", author=ME, committer=ME)
    await mirror.push(commit, "main", expected=None)
    assert place.repositories.read(f"{place.name}-empty") == {"x": b"x"}


async def test_a_rewritten_branch_is_followed(bumpy_place: Place) -> None:
    place = bumpy_place
    mirror = place.mirror()
    before = (await mirror.fetch("main"))["main"]
    place.commit({"only": "this"}, force_from="")
    after = (await mirror.fetch("main"))["main"]
    assert after == place.head()
    assert not await mirror.is_ancestor(before, after)
    assert await mirror.changed(before, after) == {"a.yaml", "apps/b.yaml", "only"}


async def test_what_the_server_does_not_have_is_no_such_ref(bumpy_place: Place) -> None:
    place = bumpy_place
    mirror = place.mirror()
    with pytest.raises(NoSuchRef, match="no branch or tag 'absent'"):
        await mirror.fetch("absent")
    with pytest.raises(NoSuchRef):
        await mirror.fetch("0123456789" * 4)


async def test_tags_commits_and_short_ids_are_resolved(bumpy_place: Place) -> None:
    place = bumpy_place
    first = place.head()
    place.repositories.tag(place.name, "v1", annotated=True)
    place.repositories.tag(place.name, "light")
    second = place.commit({"a.yaml": "a: 2\n"})
    mirror = place.mirror()
    fetched = await mirror.fetch("v1", "light", "main", "HEAD", second)
    assert fetched == {"v1": first, "light": first, "main": second, "HEAD": second, second: second}
    assert await mirror.fetch("v1") == {"v1": first}
    assert [await mirror.resolve(each) for each in ("v1", "main", "HEAD", second[:10])] == [
        first,
        second,
        second,
        second,
    ]
    with pytest.raises(NoSuchRef):
        await mirror.resolve("v2")


async def test_a_branch_may_take_the_place_of_a_folder_of_branches_and_back(daemon_place: Place) -> None:
    place, mirror = daemon_place, daemon_place.mirror()
    place.commit({"x": "1"}, branch="release")
    await mirror.fetch("release")
    run("-C", str(place.repositories.path(place.name)), "update-ref", "-d", "refs/heads/release")
    place.commit({"x": "2"}, branch="release/v1")
    assert await mirror.fetch("release/v1") == {"release/v1": place.head("release/v1")}
    assert await mirror.fetch() == {"main": place.head(), "release/v1": place.head("release/v1")}


async def test_many_branches_are_fetched_together_up_to_a_limit(daemon_place: Place) -> None:
    place, head = daemon_place, daemon_place.head()
    many = "".join(f"create refs/heads/feature/{'x' * 60}/{number} {head}\n" for number in range(300))
    run("-C", str(place.repositories.path(place.name)), "update-ref", "--stdin", said=many.encode())
    fetched = await place.mirror().fetch()
    assert len(fetched) == 301
    assert set(fetched.values()) == {head}
    with pytest.raises(TooLarge, match="name at most 300"):
        await place.mirror(limits=Limits(fetched=300)).fetch()
