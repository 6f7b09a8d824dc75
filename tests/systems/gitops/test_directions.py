"""The directions of a sync: which there must be, and that the source of a sync with one direction wins."""

from __future__ import annotations

import pytest

from tests.systems.gitops.desk import Desk, config
from tests.systems.gitops.test_both_ways import edit, started
from tests.systems.gitops.test_files import alone
from tests.systems.gitops.test_up import MANIFEST, Up, up
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubMeta
from trimtab.systems.gitops.kinds import GitSync, GitSyncSpec
from trimtab.systems.gitops.run.asking import options_of
from trimtab.systems.gitops.run.verdicts import Stop

__all__ = ["up"]

TO_GIT = {"gitToSystem": False, "systemToGit": True}
ONE = {"one.yaml": config("one", a="1"), "two.yaml": config("two", a="1")}


async def test_a_sync_without_a_direction_is_refused_and_told_what_would_be_right(desk: Desk) -> None:
    with pytest.raises(StatusError, match=r"spec\.gitToSystem: .*let gitToSystem or systemToGit be true"):
        await desk.sync(gitToSystem=False)


async def test_a_sync_cannot_be_left_without_a_direction(desk: Desk) -> None:
    held = await desk.sync(gitToSystem=False, systemToGit=True)
    with pytest.raises(StatusError, match=r"spec\.gitToSystem"):
        await desk.client.patch(held, held.replace(spec=held.spec.replace(system_to_git=False)))


def test_a_stored_sync_without_a_direction_is_stalled_and_names_the_field() -> None:
    spec = GitSyncSpec(repository="team", git_to_system=False)
    with pytest.raises(Stop) as stopped:
        options_of(GitSync(metadata=HubMeta(name="fleet", namespace="shop"), spec=spec))
    verdict = stopped.value.verdict
    assert (verdict.reason, verdict.stalled) == ("InvalidSpec", True)
    assert verdict.message.startswith("spec.gitToSystem: both directions are off")


async def _made(desk: Desk) -> None:
    """Two objects that Git has too, with the system as the only source."""
    async with desk.working("before"):
        await started(desk, ONE)
    await desk.change(**TO_GIT)


async def test_each_change_in_git_is_put_back_where_the_system_is_the_only_source(desk: Desk) -> None:
    await _made(desk)
    async with desk.working():
        for value in ("2", "3", "4"):
            desk.git.commit("team", {"one.yaml": config("one", a=value)})
            await desk.again()
            assert desk.git.read()["one.yaml"].decode() == ONE["one.yaml"]


async def test_a_file_deleted_in_git_is_written_again_where_the_system_is_the_only_source(desk: Desk) -> None:
    await _made(desk)
    async with desk.working():
        desk.git.commit("team", {"one.yaml": None})
        await desk.again()
        assert set(desk.git.read()) == {*ONE}
        await edit(desk, "one", a="5")
        await desk.until(lambda sync: b"5" in desk.git.read()["one.yaml"])


async def test_what_is_excluded_is_not_written_again(desk: Desk) -> None:
    await _made(desk)
    async with desk.working():
        await desk.change(exclude=["ConfigMap/one"])
        desk.git.commit("team", {"one.yaml": None})
        await desk.again()
        assert set(desk.git.read()) == {"two.yaml"}


async def test_a_file_of_a_document_is_put_back_where_the_system_is_the_only_source(up: Up) -> None:
    await alone(up, systemToGit=True)
    await up.change(**TO_GIT)
    for number in range(2):
        up.git.commit("team", {"m/one.yaml": f"{MANIFEST}data: {{a: {number}}}\n"})
        await up.again()
        assert up.git.read()["m/one.yaml"].decode() == MANIFEST
