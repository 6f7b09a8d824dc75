"""What happens when something dies in the midst, and when two do the same at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
import pytest

from tests.systems.gitops.desk import Desk, config, message, reason
from tests.systems.gitops.test_both_ways import edit, started
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.client.transport import Call, Reply, Unreachable
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.yaml import load
from trimtab.systems.gitops import exporting
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.sending import Sender
from trimtab.testing.ports import free_ports

OTHER = """\
#!/bin/sh
[ -e FOLDER/done ] && exit 0
touch FOLDER/done
unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
export GIT_INDEX_FILE=FOLDER/other-index
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x
git read-tree main
git update-index --cacheinfo 100644,$(git hash-object -w FOLDER/changed.yaml),b.yaml
git update-ref refs/heads/main $(git commit-tree -p main -m other $(git write-tree))
"""
"""Commits a change of b.yaml, once."""


class Cut:
    """A transport that is cut off after so many applies of ConfigMaps: as a process that is killed."""

    def __init__(self, client: ApiClient, after: int) -> None:
        self._transport, self.left, self._unanswered = client.transport, after, after
        self.cut = asyncio.Event()
        self._answered = asyncio.Event()
        if not after:
            self._answered.set()
        self.client = ApiClient(self, client.scheme, namespace=client.namespace)

    async def call(self, call: Call) -> Reply:
        if self.cut.is_set():
            raise Unreachable("it is cut off")
        if call.method in ("PATCH", "DELETE") and "/configmaps/" in call.path:
            self.left -= 1
            if self.left < 0:
                await self._answered.wait()  # those before it are done, on a slow server too
                self.cut.set()
                raise Unreachable("it is cut off")
            try:
                return await self._transport.call(call)
            finally:
                self._unanswered -= 1
                if not self._unanswered:
                    self._answered.set()
        return await self._transport.call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(call, inactivity)

    async def close(self) -> None:
        """The transport is everybody's."""


class Odd:
    """A transport on which something happens `before` a call, or in place of its answer, `after` it."""

    def __init__(self, client: ApiClient, before: Any = None, after: Any = None) -> None:
        self._transport, self._before, self._after = client.transport, before, after
        self.client = ApiClient(self, client.scheme, namespace=client.namespace)

    async def call(self, call: Call) -> Reply:
        if self._before is not None:
            await self._before(call)
        reply = await self._transport.call(call)
        if self._after is not None:
            self._after(call)
        return reply

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(call, inactivity)

    async def close(self) -> None:
        """The transport is everybody's."""


@contextlib.asynccontextmanager
async def killed(desk: Desk, after: int) -> Any:
    cut = Cut(desk.client, after)
    async with desk.working("killed", cut.client):
        yield cut
        async with asyncio.timeout(30):
            await cut.cut.wait()


@pytest.mark.parametrize("after", [7, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 11))])
async def test_a_run_that_was_cut_off_goes_on_and_knows_what_it_made(desk: Desk, after: int) -> None:
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(12)})
    await desk.repository()
    await desk.sync(deletionGuard={"maxCount": 100})
    async with killed(desk, after):
        pass
    assert len(await desk.names()) < 12
    async with desk.working("next"):
        sync = await desk.ready()
        assert len(await desk.names()) == 12
        assert sync.status.inventory.count == 12
        desk.git.commit("team", {f"{n}.yaml": None for n in range(11)})
        await desk.again()
        assert await desk.names() == ["c11"]  # nothing that the first one made is orphaned


async def test_what_was_made_before_a_cut_and_git_has_no_more_stays_and_is_told(desk: Desk) -> None:
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(12)})
    await desk.repository()
    await desk.sync(deletionGuard={"maxCount": 100})
    async with killed(desk, 7):
        pass
    made = await desk.names()
    assert 0 < len(made) < 12
    desk.git.commit("team", {f"{n}.yaml": None for n in range(11)})
    async with desk.working("next"):
        await desk.ready()
        assert set(await desk.names()) == {*made, "c11"}
    assert "LeftAlone" in await desk.events()


@pytest.mark.parametrize("after", [2, pytest.param(0, marks=pytest.mark.slow)])
async def test_deletions_that_were_cut_off_go_on(desk: Desk, after: int) -> None:
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(6)})
    await desk.repository()
    async with desk.working("first"):
        await desk.sync()
        await desk.ready()
    desk.git.commit("team", {f"{n}.yaml": None for n in range(4)})
    async with killed(desk, after):
        pass
    async with desk.working("next"):
        sync = await desk.ready()
        assert await desk.names() == ["c4", "c5"]
        assert sync.status.inventory.count == 2


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrived", "it did not"])
async def test_what_changes_again_after_a_push_that_was_cut_off_is_no_conflict(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    cut, really = asyncio.Event(), exporting.push

    async def push(*args: Any) -> None:
        if arrives:
            await really(*args)
        cut.set()
        raise Unreachable("it is cut off")

    async def refuse(call: Call) -> None:
        if cut.is_set():
            raise Unreachable("it is cut off")

    files = {f"{name}.yaml": config(name, a="1", b="1") for name in ("kept", "gone", "still")}
    async with desk.working("first"):
        await started(desk, files)
    before = desk.git.head("team")
    new = ConfigMap(metadata=ObjectMeta(name="new", namespace=desk.namespace), data={"a": "2"})
    await edit(desk, "kept", a="2")
    await desk.client.delete(Ref(ConfigMap, "gone", desk.namespace))
    await desk.client.create(new)
    with monkeypatch.context() as patched:
        patched.setattr(exporting, "push", push)
        async with desk.working("killed", Odd(desk.client, before=refuse).client):
            await asyncio.wait_for(cut.wait(), 30)
    assert (desk.git.head("team") != before) is arrives
    await edit(desk, "kept", a="3")
    await edit(desk, "new", a="3")
    await desk.client.create(ConfigMap(metadata=ObjectMeta(name="gone", namespace=desk.namespace), data={"a": "3"}))
    async with desk.working("next"):
        sync = await desk.again()
        await desk.ready()
        assert await desk.conflicts() == []
        assert sync.status.last_pushed_revision == desk.git.head("team")
        documents = [load(data.decode()) for path, data in desk.git.read("team").items() if path.endswith(".yaml")]
        found = {document["metadata"]["name"]: document["data"] for document in documents}
        assert found == {
            "kept": {"a": "3", "b": "1"},
            "gone": {"a": "3"},
            "still": {"a": "1", "b": "1"},
            "new": {"a": "3"},
        }


@pytest.mark.row(49)
async def test_two_replicas_that_push_at_once_make_each_change_once(desk: Desk) -> None:
    async with desk.working("one"), desk.working("two"):
        await started(desk, {"shop.yaml": config("shop", color="red", size="0")})
        for number in range(1, 4):
            await edit(desk, "shop", size=str(number))
            wanted = config("shop", color="red", size=str(number)).encode()
            await desk.until(lambda sync, wanted=wanted: desk.git.read()["shop.yaml"] == wanted)
            await desk.ready()
        assert len(desk.git.history()) == 4
        assert len(await desk.names()) == 1


async def test_what_others_push_in_between_is_merged_and_not_lost(desk: Desk) -> None:
    """The server takes somebody else's commit just before ours arrives."""
    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", color="red", size="small"), "b.yaml": config("b", a="1")})
        changed = desk.git.path() / "changed.yaml"
        changed.write_text(config("b", a="2"))
        other = desk.git.path() / "other.sh"
        other.write_text(OTHER.replace("FOLDER", str(desk.git.path())))
        other.chmod(0o755)
        desk.git.hook("team", "pre-receive", f"#!/bin/sh\ncat >/dev/null\n{other}\nexit 0\n")
        await edit(desk, "shop", size="large")
        await desk.until(lambda sync: b"large" in desk.git.read()["shop.yaml"])
        await desk.ready()
        assert desk.git.read()["b.yaml"].decode() == config("b", a="2")
        live = await desk.live("b")
        assert live is not None
        assert live["data"] == {"a": "2"}
        assert len(desk.git.history()) == 3


async def test_a_push_whose_answer_is_lost_is_looked_for_and_not_made_twice(desk: Desk) -> None:
    """The server took the commit, and died before it said so."""
    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", size="small")})
        desk.git.hook("team", "post-receive", "#!/bin/sh\nrm -f hooks/post-receive\nkill -9 $PPID\n")
        await edit(desk, "shop", size="large")
        await desk.until(lambda sync: b"large" in desk.git.read()["shop.yaml"])
        await desk.ready()
        await desk.again()
        assert len(desk.git.history()) == 2


async def test_a_push_that_was_cut_off_before_it_was_taken_is_made_again(desk: Desk) -> None:
    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", size="small")})
        desk.git.hook("team", "pre-receive", "#!/bin/sh\nrm -f hooks/pre-receive\nkill -9 $PPID\n")
        await edit(desk, "shop", size="large")
        await desk.until(lambda sync: b"large" in desk.git.read()["shop.yaml"])
        await desk.ready()
        assert len(desk.git.history()) == 2


async def test_a_git_server_that_is_away_is_told_and_waited_for(desk: Desk, tmp_path: Any) -> None:
    (port,) = free_ports(1)
    with GitDaemon(tmp_path / "away", port) as daemon:
        daemon.repositories.create("team", {"a.yaml": config("a", x="1")})
        await desk.repository(endpoint=daemon.url("team"))
        async with desk.working():
            await desk.sync()
            await desk.until(lambda sync: sync.status.last_applied_revision == daemon.repositories.head())
            daemon.stop()
            await desk.ask()
            sync = await desk.until(lambda sync: sync.status.conditions[0].status == "False")
            assert sync.status.last_applied_revision == daemon.repositories.head()
            assert await desk.names() == ["a"]


async def test_a_lost_inventory_applies_and_deletes_nothing(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working("first"):
        await desk.sync()
        await desk.ready()
    desk.git.commit("team", {"b.yaml": None})
    await desk.lose_blobs()
    async with desk.working("next"):
        await desk.reason("InventoryLost")
        assert await desk.names() == ["a", "b"]


async def test_what_was_meant_and_never_made_is_not_deleted_when_others_made_it(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    await desk.sync()
    async with killed(desk, 0):
        pass
    theirs = ConfigMap(metadata=ObjectMeta(name="a", namespace=desk.namespace), data={"x": "theirs"})
    await desk.client.create(theirs)
    desk.git.commit("team", {"a.yaml": None})
    async with desk.working("next"):
        await desk.ready()
        assert await desk.names() == ["a", "b"]


async def test_what_an_unsure_server_may_have_made_stays_and_is_told(desk: Desk) -> None:
    def unsure(call: Call) -> None:
        if call.method == "PATCH" and call.path.endswith("/configmaps/a"):
            raise StatusError(504, "Timeout", "nobody knows", {})

    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working("unsure", Odd(desk.client, after=unsure).client):
        await desk.sync()
        await desk.reason("ApplyFailed")
    assert "a" in await desk.names()
    desk.git.commit("team", {"a.yaml": None})
    async with desk.working("next"):
        await desk.ready()
        assert await desk.names() == ["a", "b"]
    assert "LeftAlone" in await desk.events()


async def test_an_object_that_took_the_place_of_ours_in_the_last_moment_stays(desk: Desk) -> None:
    theirs = ConfigMap(metadata=ObjectMeta(name="a", namespace=desk.namespace), data={"x": "theirs"})

    async def swap(call: Call) -> None:
        if call.method == "DELETE" and call.path.endswith("/configmaps/a"):
            await desk.client.delete(Ref(ConfigMap, "a", desk.namespace))
            await desk.client.create(theirs)

    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=swap).client):
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {"a.yaml": None})
        await desk.again()
        await desk.ready()
    found = await desk.live("a")
    assert found is not None
    assert found["data"] == {"x": "theirs"}


async def test_an_object_that_somebody_deletes_in_the_last_moment_is_gone_as_well(desk: Desk) -> None:
    async def faster(call: Call) -> None:
        if call.method == "DELETE" and call.path.endswith("/configmaps/a"):
            await desk.client.delete(Ref(ConfigMap, "a", desk.namespace))

    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=faster).client):
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {"a.yaml": None})
        sync = await desk.again()
        assert message(sync).startswith("in sync")
    assert await desk.names() == ["b"]


async def test_nothing_is_deleted_when_something_could_not_be_applied(desk: Desk) -> None:
    async def refusing(call: Call) -> None:
        if call.method == "PATCH" and call.path.endswith("/configmaps/b") and b"new" in call.body:
            raise StatusError(403, "Forbidden", "not this one", {})

    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=refusing).client):
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {"a.yaml": None, "b.yaml": config("b", x="new")})
        await desk.again()
        await desk.reason("ApplyFailed")
        assert await desk.names() == ["a", "b"]


async def test_two_syncs_do_not_fight_over_one_object(desk: Desk) -> None:
    desk.git.create("team", {"one/a.yaml": config("a", x="1"), "two/a.yaml": config("a", x="2")})
    await desk.repository()
    async with desk.working():
        await desk.sync(path="one")
        await desk.ready()
        await desk.sync("second", path="two")
        sync = await desk.reason("Refused", "second")
        assert f"belongs to the sync {desk.namespace}/fleet" in message(sync)
        live = await desk.live("a")
        assert live is not None
        assert live["data"] == {"x": "1"}


async def test_of_two_syncs_that_begin_at_once_one_has_the_object(desk: Desk) -> None:
    """The first has decided what to make, and written nothing of it, when the second looks."""
    names: list[str] = []
    looked = asyncio.Event()

    async def together(call: Call) -> None:
        if call.method != "PATCH" or not call.path.endswith("/status") or "/gitsyncs/" not in call.path:
            return
        names.append(call.path)
        if call.path != names[0]:
            looked.set()
        await looked.wait()

    desk.git.create("team", {"one/a.yaml": config("a", x="1"), "two/a.yaml": config("a", x="2")})
    await desk.repository()
    await desk.sync(path="one")
    await desk.sync("second", path="two")
    async with desk.working("odd", Odd(desk.client, before=together).client):
        first, second = await desk.until(reason), await desk.until(reason, "second")
        assert sorted((reason(first), reason(second))) == ["Refused", "Synced"]


async def test_a_suspended_sync_keeps_what_it_has_over_a_restart(desk: Desk) -> None:
    """Nobody has read its inventory since: it is read when another sync asks whose an object is."""
    desk.git.create("team", {"one/a.yaml": config("a", x="1"), "two/a.yaml": config("a", x="2")})
    await desk.repository()
    async with desk.working():
        await desk.sync(path="one")
        await desk.ready()
        await desk.change(suspend=True)
        await desk.reason("Suspended")
    async with desk.working("two"):
        await desk.sync("second", path="two")
        sync = await desk.reason("Refused", "second")
        assert f"belongs to the sync {desk.namespace}/fleet" in message(sync)


async def test_what_two_syncs_have_is_deleted_by_neither_while_the_other_has_it(desk: Desk) -> None:
    """As releases before this one could leave it."""
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        status = (await desk.ready()).status
        await desk.sync("second", suspend=True)
        await desk.reason("Suspended", "second")
        held = await desk.client.get(GitSync, "second", desk.namespace)
        both = msgspec.structs.replace(held.status, inventory=status.inventory)
        await desk.client.patch(held, held.replace(status=both), subresource="status")
        desk.git.commit("team", {"a.yaml": None})
        await desk.again()
        assert await desk.names() == ["a", "b"]


async def test_a_run_that_is_cut_off_by_its_timeout_goes_on_where_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    free = asyncio.Event()
    asked, asked_all = Sender._ask, Sender._ask_all

    async def ask(self: Sender, call: Call) -> dict[str, Any]:
        if len(sent) >= 100:
            await free.wait()
        sent.append(call.path)
        return await asked(self, call)

    async def ask_all(self: Sender, part: Sequence[tuple[Identity, Call]]) -> dict[Identity, dict[str, Any]]:
        if len(sent) >= 100:
            await free.wait()
        sent.extend(call.path for _, call in part)
        return await asked_all(self, part)

    monkeypatch.setattr(Sender, "_ask", ask)
    monkeypatch.setattr(Sender, "_ask_all", ask_all)
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(600)})
    await desk.repository()
    async with desk.working():
        await desk.sync(timeout="5s")
        await desk.reason("Timeout")
        before = set(sent)
        assert 100 <= len(before) < 600
        sent.clear()
        free.set()
        sync = await desk.ready()
        assert sync.status.inventory.count == len(await desk.names()) == 600
        assert before.isdisjoint(sent), "what was applied is not applied again"
        desk.git.commit("team", {f"{n}.yaml": None for n in range(5)})
        await desk.again()
        assert len(await desk.names()) == 595
