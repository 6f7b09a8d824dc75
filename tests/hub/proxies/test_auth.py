"""Who may do what, asked before it is done."""

from __future__ import annotations

import pytest

from tests.hub.kit import Service, plan
from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    ListOptions,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.proxies.auth import Auth
from trimtab.hub.proxies.passing import Passing
from trimtab.model.errors import StatusError, forbidden


def refuses(verb: str, plural: str, project: str, name: str, user: str) -> None:
    raise forbidden(plural, "", name, f'User "{user}" cannot {verb} resource "{plural}"')


@pytest.fixture
async def service() -> Service:
    made = Service()
    await made.apply(plan(), ApplyOptions(project="red"))
    made.calls.clear()
    return made


@pytest.mark.row(21)
async def test_each_call_is_asked_for_with_its_verb(service: Service) -> None:
    asked: list[tuple[str, ...]] = []

    async def may(*question: str) -> None:
        asked.append(question)

    auth = Auth(service, may, plural="plans", user="ann")
    await auth.get("a", GetOptions(project="red"))
    await auth.list(ListOptions(all_projects=True))
    await auth.apply(plan(), ApplyOptions(project="red", user="bob"))
    await auth.apply(plan("b"), ApplyOptions(project="red", expect=0))
    await auth.status("a", StatusOptions(project="red"))
    watch = auth.watch(WatchOptions(), 0)
    await anext(watch)
    await watch.aclose()
    await auth.delete("a", DeleteOptions(project="red"))
    assert asked == [
        ("get", "plans", "red", "a", "ann"),
        ("list", "plans", "", "", "ann"),
        ("create", "plans", "red", "a", "bob"),
        ("update", "plans", "red", "a", "bob"),
        ("create", "plans", "red", "b", "ann"),
        ("get", "plans/status", "red", "a", "ann"),
        ("watch", "plans", "", "", "ann"),
        ("delete", "plans", "red", "a", "ann"),
    ]


@pytest.mark.row(21)
async def test_what_may_not_be_is_never_asked_of_the_service(service: Service) -> None:
    auth = Auth(service, refuses, plural="plans").as_user("eve")
    with pytest.raises(StatusError) as error:
        await auth.get("a", GetOptions(project="red"))
    assert error.value.code == 403
    assert 'User "eve" cannot get' in str(error.value)
    for call in (
        auth.list(ListOptions(project="red")),
        auth.apply(plan(), ApplyOptions(project="red")),
        auth.delete("a", DeleteOptions(project="red")),
        auth.status("a", StatusOptions(project="red")),
        anext(auth.watch(WatchOptions(), 0)),
    ):
        with pytest.raises(StatusError):
            await call
    assert service.calls == []


@pytest.mark.row(41)
@pytest.mark.row(42)
async def test_lineage_has_its_own_verb(service: Service) -> None:
    def may(verb: str, plural: str, project: str, name: str, user: str) -> None:
        if verb == "lineage":
            refuses(verb, plural, project, name, user)

    auth = Auth(service, may, plural="plans", user="ann")
    await auth.get("a", GetOptions(project="red"))
    for call in (
        auth.get("a", GetOptions(project="red", include_lineage=True)),
        auth.list(ListOptions(project="red", include_lineage=True)),
        auth.apply(plan(), ApplyOptions(project="red", include_lineage=True)),
        anext(auth.watch(WatchOptions(include_lineage=True), 0)),
    ):
        with pytest.raises(StatusError, match="lineage"):
            await call


@pytest.mark.row(21)
async def test_the_proxy_that_does_nothing_changes_nothing(service: Service) -> None:
    proxy = Passing(service)
    assert await proxy.get("a", GetOptions(project="red")) == await service.get("a", GetOptions(project="red"))
    assert await proxy.list(ListOptions(project="red")) == await service.list(ListOptions(project="red"))
    assert await proxy.status("a", StatusOptions(project="red")) == {}
    assert await proxy.horizon() == (1, 0)
    assert await proxy.published("a", GetOptions(project="red")) == []
    watch = proxy.watch(WatchOptions(), 0)
    assert len((await anext(watch)).changes) == 1
    await watch.aclose()
    await proxy.delete("a", DeleteOptions(project="red"))
    assert service.rows == {}


@pytest.mark.row(21)
async def test_published_versions_are_read_only_by_those_who_may_read(service: Service) -> None:
    with pytest.raises(StatusError) as refusal:
        await Auth(service, refuses, plural="plans", user="eve").published("a", GetOptions(project="red"))
    assert refusal.value.code == 403
