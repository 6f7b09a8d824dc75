"""The same resources under another group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub.kit import Plan, Service, plan
from trimtab.hub.contract import ApplyOptions, DeleteOptions, GetOptions, ListOptions, Stale
from trimtab.hub.proxies.passing import Passing
from trimtab.hub.proxies.view import View
from trimtab.model.scheme import Scheme

OURS, THEIRS = "hub.trimtab.dev/by", "hub.acme.io/by"


@pytest.fixture
async def service() -> Service:
    made = Service()
    await made.apply(plan(annotations={OURS: "ada", THEIRS: "eve"}), ApplyOptions(project="red"))
    return made


def view(service: Any) -> View:
    return View(service, Scheme("acme.io").kind_of(Plan), {OURS: THEIRS})


def told(hub: Any) -> tuple[str, dict[str, str]]:
    return hub["apiVersion"], hub["metadata"]["annotations"]


@pytest.mark.row(10)
async def test_all_that_is_read_is_of_the_views_group_and_keys(service: Service) -> None:
    seen = [await view(service).get("a", GetOptions(project="red"))]
    seen += (await view(service).list(ListOptions(project="red"))).items
    assert [told(hub) for hub in seen] == [("infra.acme.io/v3", {THEIRS: "ada"})] * 2


@pytest.mark.row(10)
async def test_what_is_written_is_kept_under_one_key(service: Service) -> None:
    wanted = plan(annotations={THEIRS: "bob", OURS: "eve"})
    applied = await view(service).apply(wanted, ApplyOptions(project="red"))
    assert told(applied) == ("infra.acme.io/v3", {THEIRS: "bob"})
    kept = await service.get("a", GetOptions(project="red"))
    assert kept["metadata"]["annotations"] == {OURS: "bob"}


@pytest.mark.row(10)
async def test_the_state_that_a_late_writer_meets_is_of_the_views_group(service: Service) -> None:
    class Late(Passing):
        async def delete(self, name: str, options: DeleteOptions) -> None:
            raise Stale("late", await self.inner.get(name, GetOptions(project=options.project)))

    for late in (
        view(service).apply(plan(), ApplyOptions(project="red", expect=99)),
        view(Late(service)).delete("a", DeleteOptions(project="red", expect=99)),
    ):
        with pytest.raises(Stale) as stale:
            await late
        assert stale.value.current is not None
        assert told(stale.value.current) == ("infra.acme.io/v3", {THEIRS: "ada"})
