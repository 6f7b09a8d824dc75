"""What cannot be written to Git: it is told of, stays whose it is, and is neither deleted nor overwritten in the system."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.systems.gitops.desk import Desk, config, message, reason
from tests.systems.gitops.test_both_ways import BOTH, edit, started
from trimtab.client.protocol import Query, Ref
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.gitops import artifacts
from trimtab.systems.gitops.kinds import Repository
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import FileEdit

Bar = Callable[..., None]


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> Bar:
    """Bar the documents of these names from Git, and no others from then on."""

    def bar(*names: str) -> None:
        def unwritable(edits: Iterable[FileEdit], *rest: Any) -> dict[Identity, str]:
            return {each.identity: f"{each.path}: is barred" for each in edits if each.identity.name in names}

        monkeypatch.setattr(artifacts, "unwritable", unwritable)

    return bar


async def repositories(desk: Desk) -> list[str]:
    listing = await desk.client.list(Repository, Query(namespace=desk.namespace))
    return sorted(item.name for item in listing.items)


@pytest.mark.row(49)
async def test_a_new_object_that_cannot_be_written_is_not_taken_over_and_not_deleted(desk: Desk, bar: Bar) -> None:
    bar("extra")
    async with desk.working():
        await started(desk, {"a.yaml": config("a", x="1")}, include=["*"], exclude=["*/Repository/team"])
        await desk.repository("extra", endpoint=desk.url())
        sync = await desk.reason("Refused")
        path = f"{desk.namespace}/repositories/extra.yaml"
        assert message(sync) == f"1 document left alone: {path}: is not written to Git: is barred"
        assert sync.status.inventory.count == 1
        assert not sync.status.history[0].counts
        for how in ("manual", "webhook"):
            assert reason(await desk.again(how=how)) == "Refused"
        assert await repositories(desk) == ["extra", "team"]
        bar()
        await desk.again()
        await desk.ready()
        assert path in desk.git.read()
        assert await repositories(desk) == ["extra", "team"]


async def test_a_new_object_whose_file_would_not_be_read_is_not_written_again_and_again(desk: Desk) -> None:
    async with desk.working():
        files = {"a.yaml": config("a", x="1"), ".trimtabignore": "**/local-*.yaml\n"}
        await started(desk, files, triggers={"internal": False})
        for name in ("local-one", "kustomization"):
            await desk.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=desk.namespace)))
        for _ in range(2):
            sync = await desk.again()
            assert reason(sync) == "Refused"
            assert "local-one.yaml: is not written to Git: no file of this name is read" in message(sync)
        assert set(desk.git.read()) == set(files)
        assert await desk.names() == ["a", "kustomization", "local-one"]


async def test_a_change_that_cannot_be_written_is_not_undone_by_one_of_git(desk: Desk, bar: Bar) -> None:
    async with desk.working():
        await started(desk, {"shop.yaml": config("shop", color="red", size="small")}, triggers={"internal": False})
        bar("shop")
        await edit(desk, "shop", color="green")
        desk.git.commit("team", {"shop.yaml": config("shop", color="red", size="large")})
        for _ in range(2):
            assert reason(await desk.again()) == "Refused"
            live = await desk.live("shop")
            assert live is not None
            assert live["data"] == {"color": "green", "size": "small"}
        bar()
        await desk.again()
        await desk.ready()
        live = await desk.live("shop")
        assert live is not None
        assert live["data"] == {"color": "green", "size": "large"}
        assert desk.git.read()["shop.yaml"].decode() == config("shop", color="green", size="large")


async def test_a_deletion_that_cannot_be_written_is_not_undone(desk: Desk, bar: Bar) -> None:
    async with desk.working():
        await started(desk, {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")}, triggers={"internal": False})
        bar("b")
        await desk.client.delete(Ref(ConfigMap, "b", desk.namespace))
        for _ in range(2):
            assert reason(await desk.again()) == "Refused"
            assert await desk.names() == ["a"]
        bar()
        await desk.again()
        await desk.ready()
        assert set(desk.git.read()) == {"a.yaml"}


@pytest.mark.parametrize(
    ("path", "mode", "why"),
    [
        ("{ns}", "100644", "{ns} is no folder"),
        ("{ns}", "120000", "{ns} is no folder"),
        ("{ns}/configmaps", "100644", "{ns}/configmaps is no folder"),
        ("{ns}/configmaps/new.yaml/README", "100644", "{ns}/configmaps/new.yaml is a folder"),
    ],
)
async def test_a_new_object_whose_place_is_taken_keeps_nothing_else_from_being_synced(
    desk: Desk, path: str, mode: str, why: str
) -> None:
    path, why = path.format(ns=desk.namespace), why.format(ns=desk.namespace)
    desk.git.create("team")
    desk.git.commit("team", {"a.yaml": config("a", x="1"), path: "elsewhere"}, modes={path: mode})
    await desk.repository()
    async with desk.working():
        await desk.sync(**BOTH)
        await desk.ready()
        await desk.client.create(ConfigMap(metadata=ObjectMeta(name="new", namespace=desk.namespace), data={"x": "1"}))
        assert message(await desk.reason("Refused")).endswith(why)
        desk.git.commit("team", {"b.yaml": config("b", x="1")})
        await desk.again()
        assert await desk.names() == ["a", "b", "new"]
        desk.git.commit("team", {path: None})
        await desk.again()
        await desk.ready()
        assert f"{desk.namespace}/configmaps/new.yaml" in desk.git.read()


async def test_a_folder_that_is_a_file_in_git_is_told(desk: Desk) -> None:
    desk.git.create("team", {"deploy": "a file"})
    await desk.repository()
    await desk.client.create(ConfigMap(metadata=ObjectMeta(name="new", namespace=desk.namespace), data={"x": "1"}))
    async with desk.working():
        await desk.sync(**BOTH, path="deploy/shop")
        assert message(await desk.reason("Refused")).endswith("deploy is no folder")


async def test_an_object_that_no_file_may_hold_keeps_nothing_else_from_being_synced(desk: Desk) -> None:
    """As YAML it is four times as long, and longer than what is read."""
    async with desk.working():
        await started(desk, {"a.yaml": config("a", x="1")})
        metadata = ObjectMeta(name="new", namespace=desk.namespace)
        await desk.client.create(ConfigMap(metadata=metadata, data={"x": "\x7f" * ((1 << 20) - 1)}))
        assert message(await desk.reason("Refused")).endswith("cannot be read again: is larger than 4096 KiB")
        desk.git.commit("team", {"b.yaml": config("b", x="1")})
        await desk.again()
        assert await desk.names() == ["a", "b", "new"]
