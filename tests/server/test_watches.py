"""Watch: order, selectors that are crossed, bookmarks, the past."""

import pytest

from tests.server.api import Api, config_map
from trimtab.server import watches

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_watch_tells_of_what_is_there_and_what_comes(api: Api) -> None:
    await api.post(MAPS, config_map("a"))
    async with api.watch(f"{MAPS}?watch=true") as event:
        assert ((first := await event())["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
        await api.merge(f"{MAPS}/a", {"data": {"x": "1"}})
        assert (await event())["type"] == "MODIFIED"
        await api.delete(f"{MAPS}/a")
        gone = await event()
        assert gone["type"] == "DELETED"
        assert int(gone["object"]["metadata"]["resourceVersion"]) > int(first["object"]["metadata"]["resourceVersion"])


async def test_a_watch_resumes_after_a_revision(api: Api) -> None:
    first = (await api.post(MAPS, config_map("a"))).doc
    await api.post(MAPS, config_map("b"))
    async with api.watch(f"{MAPS}?watch=true&resourceVersion={first['metadata']['resourceVersion']}") as event:
        assert (await event())["object"]["metadata"]["name"] == "b"


async def test_crossing_a_selector_adds_and_deletes(api: Api) -> None:
    await api.post(MAPS, config_map("a", labels={"on": "no"}))
    revision = (await api.get(MAPS)).doc["metadata"]["resourceVersion"]
    async with api.watch(f"{MAPS}?watch=true&labelSelector=on=yes&resourceVersion={revision}") as event:
        await api.merge(f"{MAPS}/a", {"metadata": {"labels": {"on": "yes"}}})
        assert (await event())["type"] == "ADDED"
        changed = (await api.merge(f"{MAPS}/a", {"metadata": {"labels": {"on": "no"}}})).doc
        left = await event()
        assert left["type"] == "DELETED"
        assert left["object"]["metadata"]["labels"] == {"on": "yes"}
        assert left["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


async def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    await api.post(MAPS, config_map("a"))
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(f"{MAPS}?{query}") as event:
        assert (await event())["type"] == "ADDED"
        end = await event()
        assert end["type"] == "BOOKMARK"
        assert end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"


async def test_a_revision_that_was_compacted_away_is_a_410(api: Api) -> None:
    await api.post(MAPS, config_map("a"))
    await api.post(MAPS, config_map("b"))
    await api.server.store.compact(api.server.store.revision)
    async with api.watch(f"{MAPS}?watch=true&resourceVersion=1") as event:
        error = await event()
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_watch_ends_at_its_time(api: Api) -> None:
    revision = (await api.get(MAPS)).doc["metadata"]["resourceVersion"]
    query = f"watch=true&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={revision}"
    async with api.watch(f"{MAPS}?{query}") as event:
        with pytest.raises(StopAsyncIteration):
            await event()


async def test_only_the_first_table_has_columns(api: Api) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    await api.post(MAPS, config_map("a"))
    async with api.watch(f"{MAPS}?watch=true", accept=accept) as event:
        assert (await event())["object"]["columnDefinitions"]
        await api.merge(f"{MAPS}/a", {"data": {"x": "1"}})
        assert (await event())["object"]["columnDefinitions"] is None


@pytest.mark.parametrize("accept", ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"])
async def test_an_idle_watch_is_told_how_far_it_is(api: Api, accept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "HEARTBEAT", 0.05)
    revision = (await api.get(MAPS)).doc["metadata"]["resourceVersion"]
    query = f"watch=true&allowWatchBookmarks=true&resourceVersion={revision}"
    async with api.watch(f"{MAPS}?{query}", accept=accept) as event:
        told = await event()
        assert told["type"] == "BOOKMARK"
        assert int(told["object"]["metadata"]["resourceVersion"]) >= int(revision)
