"""A plan that is asked for says what the sync would do, also where that is nothing."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.systems.gitops.desk import Desk, config, message
from tests.systems.gitops.test_both_ways import BOTH, started
from trimtab.model.clock import SystemClock
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.credentials import CredentialError, Credentials
from trimtab.storage.scratch import Scratch
from trimtab.systems.gitops.previewing import Previewer
from trimtab.systems.gitops.run.verdicts import Stop

IGNORED = {"a.yaml": config("a", x="1"), ".trimtabignore": "**/local-*.yaml\n"}


@pytest.fixture
async def previewer(desk: Desk, tmp_path: Path) -> AsyncIterator[Previewer]:
    async with Credentials(desk.client) as credentials:
        yield Previewer(desk.client, SystemClock(), desk.blobs, Scratch(tmp_path / "preview", 1 << 30), credentials)


async def make(desk: Desk, name: str) -> None:
    await desk.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=desk.namespace)))


def public_key(folder: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    return (folder / "key.pub").read_text()


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(IGNORED, id="where no file is read"),
        pytest.param(
            {"a.yaml": config("a", x="1"), "{namespace}/configmaps": "no folder"}, id="where a file is in the way"
        ),
    ],
)
async def test_what_cannot_be_written_is_refused_by_the_plan_as_by_the_sync(
    desk: Desk, previewer: Previewer, files: dict[str, str]
) -> None:
    async with desk.working():
        files = {path.format(namespace=desk.namespace): text for path, text in files.items()}
        await started(desk, files, triggers={"internal": False})
        await make(desk, "local-one")
        sync = await desk.again()
        _, plan = await previewer.revision(sync)
        assert [each.reason for each in plan.refused] == [each.message for each in sync.status.documents]
        assert plan.write_back == ()


async def test_a_plan_of_a_folder_refuses_what_could_not_be_written_there(
    desk: Desk, previewer: Previewer, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for path, text in IGNORED.items():
        (folder / path).write_text(text)
    async with desk.working():
        await started(desk, IGNORED, triggers={"internal": False})
        await make(desk, "local-one")
        await make(desk, "other")
        _, plan = await previewer.folder(await desk.ready(), folder)
        assert [each.identity.name for each in plan.refused] == ["local-one"]
        assert [each.identity.name for each in plan.write_back] == ["other"]


async def test_a_plan_of_a_folder_tells_of_links_as_a_sync_would(
    desk: Desk, previewer: Previewer, tmp_path: Path
) -> None:
    (tmp_path / "a.real").write_text(config("a", x="1"))
    (tmp_path / "a.yaml").symlink_to("a.real")
    async with desk.working():
        await started(desk, {"a.yaml": config("a", x="1")})
        with pytest.raises(Stop, match=r"a\.yaml: is a symlink: it is not followed"):
            await previewer.folder(await desk.ready(), tmp_path)


async def test_a_plan_for_a_branch_that_the_sync_would_make_has_its_first_documents(
    desk: Desk, previewer: Previewer
) -> None:
    async with desk.working():
        desk.git.create("team", {"a.yaml": config("a", x="1")})
        await desk.repository()
        await make(desk, "new")
        sync = await desk.sync(**BOTH, revision="fresh", suspend=True)
        _, plan = await previewer.revision(sync)
        assert [(each.action, each.identity.name) for each in plan.write_back] == [("create", "new")]


async def test_a_plan_of_a_head_that_nobody_signed_is_as_untrusted_as_the_sync(
    desk: Desk, previewer: Previewer, tmp_path: Path
) -> None:
    await desk.secret("signers", ann=f"ann@example.com {public_key(tmp_path)}")
    async with desk.working():
        desk.git.create("team", {"a.yaml": config("a", x="1")})
        await desk.repository()
        await desk.sync(verify={"ssh": {"name": "signers"}})
        sync = await desk.reason("Untrusted")
        with pytest.raises(Stop) as stopped:
            await previewer.revision(sync)
        assert (stopped.value.verdict.reason, str(stopped.value)) == ("Untrusted", message(sync))


async def test_a_plan_without_its_repository_says_what_the_sync_says(desk: Desk, previewer: Previewer) -> None:
    async with desk.working():
        await desk.sync(repository="flet")
        sync = await desk.reason("RepositoryMissing")
        with pytest.raises(Stop) as stopped:
            await previewer.revision(sync)
        assert str(stopped.value) == message(sync)


async def test_a_plan_of_a_folder_that_never_was_says_so_as_the_sync_does(desk: Desk, previewer: Previewer) -> None:
    async with desk.working():
        desk.git.create("team", {"a.yaml": config("a", x="1")})
        await desk.repository()
        await desk.sync(path="productoin")
        sync = await desk.reason("PathMissing")
        with pytest.raises(Stop) as stopped:
            await previewer.revision(sync)
        assert str(stopped.value) == message(sync)


@pytest.mark.parametrize(("values", "said"), [({}, "identity"), ({"identity": "no key at all"}, "cannot sign")])
async def test_a_plan_of_commits_that_could_not_be_signed_says_so_as_the_sync_does(
    desk: Desk, previewer: Previewer, values: dict[str, str], said: str
) -> None:
    await desk.secret("sign", **values)
    async with desk.working():
        sign = {"secretRef": {"name": "sign"}}
        await started(desk, {"a.yaml": config("a", x="1")}, sign=sign, triggers={"internal": False})
        sync = await desk.ready()
        await previewer.revision(sync)
        await make(desk, "new")
        with pytest.raises(CredentialError, match=said):
            await previewer.revision(sync)
