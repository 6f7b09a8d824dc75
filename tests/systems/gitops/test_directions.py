"""The directions of a sync: which there must be, and that the source of a sync with one direction wins."""

from __future__ import annotations

import pytest

from tests.systems.gitops.desk import Desk
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubMeta
from trimtab.systems.gitops.kinds import GitSync, GitSyncSpec
from trimtab.systems.gitops.run.asking import options_of
from trimtab.systems.gitops.run.verdicts import Stop


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
