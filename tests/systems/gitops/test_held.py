"""Deletions that wait for a person: whatever runs meanwhile, they wait, and those that come later are counted with them."""

from __future__ import annotations

import pytest

from tests.systems.gitops.desk import Desk, config, message, reason
from tests.systems.gitops.test_both_ways import edit, started
from trimtab.client.protocol import Ref
from trimtab.model.kubernetes import ConfigMap
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.kinds.fields import CONFIRM, SYNC_NOW

NAMES = ("a", "b", "c", "d", "e")
GUARD = {"maxCount": 1, "maxPercent": 30}


async def held(desk: Desk, *, internal: bool = False) -> GitSync:
    """Five documents; two objects were deleted in the system, and Git has them still."""
    files = {f"{name}.yaml": config(name, v="1") for name in NAMES}
    await started(desk, files, deletionGuard=GUARD, triggers={"interval": "10m", "internal": internal})
    await desk.change(suspend=True)
    await desk.reason("Suspended")
    for name in ("a", "b"):
        await desk.client.delete(Ref(ConfigMap, name, desk.namespace))
    await desk.change(suspend=False)
    return await desk.reason("MassDelete")


async def test_a_push_does_not_let_held_deletions_be_forgotten(desk: Desk) -> None:
    async with desk.working():
        before = await held(desk)
        desk.git.commit("team", {"e.yaml": config("e", v="2")})
        after = await desk.again(how="webhook")
        assert (reason(after), after.status.held.count) == ("MassDelete", 2)
        assert after.status.last_applied_revision == before.status.last_applied_revision


async def test_a_change_of_another_object_does_not_let_held_deletions_be_forgotten(desk: Desk) -> None:
    async with desk.working():
        await held(desk, internal=True)
        head = desk.git.head()
        await edit(desk, "e", v="2")
        after = await desk.until(lambda sync: sync.status.last_attempted_revision == desk.git.head() != head)
        assert (reason(after), after.status.held.count) == ("MassDelete", 2)


async def test_a_deletion_that_comes_later_is_held_with_those_that_wait(desk: Desk) -> None:
    async with desk.working():
        await held(desk, internal=True)
        await desk.again(how="webhook")
        await desk.client.delete(Ref(ConfigMap, "c", desk.namespace))
        await desk.until(lambda sync: sync.status.held and sync.status.held.count == 3)
        assert len(desk.git.read()) == len(NAMES)


@pytest.mark.parametrize("how", ["webhook", "manual"])
async def test_a_confirmation_counts_whatever_else_starts_the_run(desk: Desk, how: str) -> None:
    async with desk.working():
        waiting = await held(desk)
        word = f"{how} together"
        await desk.change(annotations={CONFIRM: waiting.status.held.plan, SYNC_NOW: word})
        after = await desk.answered(word)
        assert (reason(after), set(desk.git.read())) == ("Synced", {"c.yaml", "d.yaml", "e.yaml"})
        assert after.status.history[0].trigger == "Confirmed"


async def test_a_typing_error_in_the_path_is_named_before_the_deletions_that_it_would_mean(desk: Desk) -> None:
    async with desk.working():
        desk.git.create("team", {"production/a.yaml": config("a", v="1")})
        await desk.repository()
        await desk.sync(path="production")
        await desk.ready()
        await desk.change(path="productoin")
        said = message(await desk.reason("EmptySource"))
        assert said.startswith('spec.path: there is no folder "productoin" in ')
        assert said.endswith("if it is meant, 1 document would be deleted: `trimtab git confirm fleet` lets it pass")
