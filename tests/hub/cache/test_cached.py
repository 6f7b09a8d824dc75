"""The cache in one process: what it answers from memory, and what it never does."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.hub.cache.service import Service, document
from trimtab.hub.cache.caches import Caches, Question
from trimtab.hub.cache.generations import Change
from trimtab.hub.cache.group import Group
from trimtab.hub.cache.keys import key_of
from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    Down,
    GetOptions,
    ListOptions,
    Missing,
    Refused,
    Stale,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.proxies.cached import Cached
from trimtab.store.contract import Gone
from trimtab.testing.clock import FakeClock

TYPE = "blueprints.infra"
GET = GetOptions(project="p")
LIST = ListOptions(project="p")
EVERYWHERE = ListOptions(all_projects=True)
APPLY = ApplyOptions(project="p")
DELETE = DeleteOptions(project="p")


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def caches() -> Caches:
    return Caches()


@pytest.fixture
def cached(service: Service, caches: Caches) -> Cached:
    return Cached(service, TYPE, caches)


@pytest.mark.row(31)
async def test_gets_and_lists_are_answered_from_two_groups_of_the_type(service: Service, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    for _ in range(3):
        assert (await cached.get("a", GET))["metadata"]["name"] == "a"
        assert len((await cached.list(LIST)).items) == 1
    assert (service.gets, service.lists) == (1, 1)


@pytest.mark.row(31)
async def test_a_group_has_a_name_a_size_and_an_expiry(service: Service, caches: Caches) -> None:
    clock = FakeClock()
    gets = Group("own name", kind="get", max_bytes=10_000, expiry=60, jitter=0, clock=clock)
    cached = Cached(service, TYPE, caches, gets=gets)
    await cached.apply(document("a"), APPLY)
    await cached.get("a", GET)
    await clock.advance(59)
    await cached.get("a", GET)
    assert service.gets == 1
    await clock.advance(1)
    await cached.get("a", GET)
    assert service.gets == 2
    assert caches.kinds[TYPE].get.name == "own name"


@pytest.mark.row(31)
async def test_who_changes_what_was_read_changes_it_for_nobody_else(cached: Cached) -> None:
    await cached.apply(document("a", 1), APPLY)
    (await cached.get("a", GET))["spec"]["v"] = 2
    (await cached.list(LIST)).items[0]["spec"]["v"] = 3
    assert (await cached.get("a", GET))["spec"]["v"] == 1
    assert (await cached.list(LIST)).items[0]["spec"]["v"] == 1


@pytest.mark.row(32)
async def test_equal_questions_share_an_entry_whether_or_not_they_ask_for_lineage(
    service: Service, cached: Cached
) -> None:
    await cached.apply(document("a"), APPLY)
    await cached.get("a", GetOptions(project="p", include_lineage=True))
    await cached.get("a", GetOptions(project="p", organization="default", version=""))
    assert service.gets == 1


@pytest.mark.row(32)
def test_a_question_that_came_over_a_wire_has_the_same_key() -> None:
    for options in (GET, LIST, EVERYWHERE, GetOptions(organization="other", project="p")):
        again = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(options)), type=type(options))
        wired = msgspec.structs.replace(again, organization="".join(options.organization))
        split = msgspec.structs.replace(again, organization=options.organization[:3] + options.organization[3:])
        assert key_of(TYPE, "a", wired) == key_of(TYPE, "a", split) == key_of(TYPE, "a", options)


@pytest.mark.row(32)
async def test_organizations_and_projects_never_share_an_entry(service: Service, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    await cached.get("a", GET)
    await cached.get("a", GetOptions(project="p", organization="other"))
    with pytest.raises(Missing):
        await cached.get("a", GetOptions(project="q"))
    assert service.gets == 3


@pytest.mark.row(33)
async def test_what_is_not_there_is_believed_for_a_short_time(service: Service, caches: Caches) -> None:
    clock = FakeClock()
    cached = Cached(service, TYPE, caches, gets=Group("g", kind="get", negative_expiry=5, jitter=0, clock=clock))
    for _ in range(3):
        with pytest.raises(Missing, match="a is not there"):
            await cached.get("a", GET)
    assert service.gets == 1
    await clock.advance(5)
    with pytest.raises(Missing):
        await cached.get("a", GET)
    assert service.gets == 2


@pytest.mark.row(33)
async def test_what_was_not_there_is_seen_once_it_is_created(cached: Cached) -> None:
    with pytest.raises(Missing):
        await cached.get("a", GET)
    await cached.apply(document("a"), APPLY)
    assert (await cached.get("a", GET))["metadata"]["name"] == "a"


@pytest.mark.row(34)
async def test_many_who_ask_at_once_are_one_load(service: Service, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    found = await asyncio.gather(*(cached.get("a", GET) for _ in range(50)))
    assert len(found) == 50
    assert service.gets == 1


@pytest.mark.row(34)
async def test_one_who_gives_up_does_not_take_the_load_from_the_others(service: Service, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    go = asyncio.Event()
    service.pause = lambda where: go.wait() if where == "get" else asyncio.sleep(0)
    first = asyncio.create_task(cached.get("a", GET))
    second = asyncio.create_task(cached.get("a", GET))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    go.set()
    assert (await second)["metadata"]["name"] == "a"
    assert service.gets == 1
    with pytest.raises(asyncio.CancelledError):
        await first


@pytest.mark.row(38)
async def test_a_get_that_began_before_an_apply_is_not_kept_after_it(service: Service, cached: Cached) -> None:
    await cached.apply(document("a", "old"), APPLY)
    at, go = asyncio.Event(), asyncio.Event()

    async def pause(where: str) -> None:
        if where == "get":
            at.set()
            await go.wait()

    service.pause = pause
    slow = asyncio.create_task(cached.get("a", GET))
    await at.wait()  # it has looked, and seen the old one
    await cached.apply(document("a", "new"), APPLY)
    late = asyncio.create_task(cached.get("a", GET))  # may not join the one under way
    go.set()
    assert (await slow)["spec"]["v"] == "old"
    assert (await late)["spec"]["v"] == "new"
    assert (await cached.get("a", GET))["spec"]["v"] == "new"


@pytest.mark.row(38)
@pytest.mark.parametrize("options", [LIST, EVERYWHERE], ids=["project", "all"])
async def test_a_list_that_began_before_an_apply_is_not_kept_after_it(
    service: Service, cached: Cached, options: ListOptions
) -> None:
    at, go = asyncio.Event(), asyncio.Event()

    async def pause(where: str) -> None:
        if where == "list":
            at.set()
            await go.wait()

    service.pause = pause
    slow = asyncio.create_task(cached.list(options))
    await at.wait()
    await cached.apply(document("a"), APPLY)
    go.set()
    assert (await slow).items == []
    assert len((await cached.list(options)).items) == 1
    assert cached._lists.metrics.dropped_fills == 1


@pytest.mark.row(36)
@pytest.mark.parametrize(
    "options",
    [LIST, EVERYWHERE, ListOptions(project="p", name="a"), ListOptions(project="p", labels="x=y")],
    ids=["project", "all", "name", "labels"],
)
async def test_a_write_clears_every_list_that_may_have_the_resource(cached: Cached, options: ListOptions) -> None:
    assert (await cached.list(options)).items == []
    await cached.apply(document("a"), APPLY)
    assert len((await cached.list(options)).items) == 1
    await cached.delete("a", DELETE)
    assert (await cached.list(options)).items == []


@pytest.mark.row(36)
async def test_a_write_leaves_other_projects_and_other_names_alone(service: Service, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    await cached.apply(document("b"), APPLY)
    await cached.get("a", GET)
    await cached.list(ListOptions(project="q"))
    await cached.apply(document("b"), APPLY)
    await cached.get("a", GET)
    await cached.list(ListOptions(project="q"))
    assert (service.gets, service.lists) == (1, 1)


@pytest.mark.row(36)
@pytest.mark.parametrize("error", [Stale("it changed"), Down("no answer"), TimeoutError()])
async def test_a_write_that_failed_clears_what_was_kept(service: Service, cached: Cached, error: Exception) -> None:
    await cached.apply(document("a", "old"), APPLY)
    await cached.get("a", GET)
    service.put(("p", "a"), document("a", "new"))

    async def pause(where: str) -> None:
        if where == "before apply":
            raise error

    service.pause = pause
    with pytest.raises(type(error)):
        await cached.apply(document("a"), APPLY)
    assert (await cached.get("a", GET))["spec"]["v"] == "new"


@pytest.mark.row(36)
async def test_a_write_that_was_refused_or_only_tried_clears_nothing(service: Service, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    await cached.get("a", GET)

    async def pause(where: str) -> None:
        if where == "before apply":
            raise Refused([("spec", "is wrong")])

    service.pause = pause
    with pytest.raises(Refused):
        await cached.apply(document("a"), APPLY)
    await cached.get("a", GET)
    assert service.gets == 1


@pytest.mark.row(36)
async def test_a_write_whose_caller_gave_up_is_told_all_the_same(service: Service, cached: Cached) -> None:
    await cached.apply(document("a", "old"), APPLY)
    await cached.get("a", GET)
    done, go = asyncio.Event(), asyncio.Event()

    async def pause(where: str) -> None:
        if where == "apply":
            done.set()
            await go.wait()

    service.pause = pause
    writer = asyncio.create_task(cached.apply(document("a", "new"), APPLY))
    await done.wait()
    writer.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await writer
    await cached.drain()
    assert (await cached.get("a", GET))["spec"]["v"] == "new"


@pytest.mark.row(38)
async def test_who_has_seen_a_write_under_way_does_not_see_what_was_before_it(service: Service, cached: Cached) -> None:
    await cached.apply(document("a", "old"), APPLY)
    await cached.get("a", GET)
    await cached.list(LIST)
    done, go = asyncio.Event(), asyncio.Event()

    async def pause(where: str) -> None:
        if where == "apply":
            done.set()
            await go.wait()

    service.pause = pause
    writer = asyncio.create_task(cached.apply(document("a", "new"), APPLY))
    await done.wait()  # it is in the service's log, and watchers have it, but the write has not returned
    assert (await cached.get("a", GET))["spec"]["v"] == "new"
    assert (await cached.list(LIST)).items[0]["spec"]["v"] == "new"
    go.set()
    await writer


@pytest.mark.row(37)
async def test_who_has_seen_a_change_in_a_watch_does_not_read_what_was_before_it(
    service: Service, cached: Cached
) -> None:
    await cached.apply(document("a", "old"), APPLY)
    await cached.get("a", GET)
    await cached.list(LIST)
    service.put(("p", "a"), document("a", "new"))  # by another client of the service
    watch = cached.watch(WatchOptions(), 1)
    assert (await anext(watch)).changes[0].hub["spec"]["v"] == "new"
    assert (await cached.get("a", GET))["spec"]["v"] == "new"
    assert (await cached.list(LIST)).items[0]["spec"]["v"] == "new"
    await watch.aclose()


async def test_a_list_that_cannot_be_watched_from_is_read_anew(service: Service, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    before = await cached.list(LIST)
    service.revision += 100  # other types were written
    service.forget()
    assert (await cached.list(LIST)).revision == before.revision
    with pytest.raises(Gone):
        await anext(cached.watch(WatchOptions(), before.revision))
    again = await cached.list(LIST)
    assert again.revision == 101
    assert service.lists == 2


async def test_questions_about_the_past_and_pages_go_past_the_cache(service: Service, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    for _ in range(2):
        await cached.list(ListOptions(project="p", revision=1))
        await cached.list(ListOptions(project="p", after=("p", "a")))
        await cached.get("a", GetOptions(project="p", version="latest"))
    assert (service.gets, service.lists) == (2, 4)


@pytest.mark.row(31)
async def test_the_pages_of_a_long_list_are_kept_until_something_in_it_changes(
    service: Service, cached: Cached
) -> None:
    await cached.apply(document("c"), APPLY)
    rest = ListOptions(project="p", limit=2, after=("p", "b"), revision=service.revision)
    pages = [await cached.list(rest) for _ in range(3)]
    assert [page.items[0]["spec"]["v"] for page in pages] == [0, 0, 0]
    assert service.lists == 1
    await cached.apply(document("c", "new"), APPLY)
    await cached.list(rest)
    assert service.lists == 2, "whether it still has that revision is for the service to say"


async def test_status_is_asked_of_the_service(service: Service, cached: Cached) -> None:
    await cached.apply({**document("a"), "status": {"ready": True}}, APPLY)
    assert await cached.status("a", StatusOptions(project="p")) == {"ready": True}


@pytest.mark.row(39)
async def test_a_group_counts_what_it_does(caches: Caches, cached: Cached) -> None:
    await cached.apply(document("a"), APPLY)
    await asyncio.gather(*(cached.get("a", GET) for _ in range(3)))
    await cached.get("a", GET)
    numbers = caches.kinds[TYPE].get.metrics
    assert (numbers.gets, numbers.hits, numbers.loads, numbers.deduplicated) == (4, 1, 1, 2)
    assert numbers.bytes > 100
    assert numbers.invalidations == 1
    samples = {
        (sample.name, sample.labels["group"]): sample.value for family in caches.collect() for sample in family.samples
    }
    assert samples["trimtab_hub_cache_hits_total", f"{TYPE}/get"] == 1
    assert samples["trimtab_hub_cache_entries", f"{TYPE}/get"] == 1


async def test_a_type_has_its_groups_once(service: Service, caches: Caches, cached: Cached) -> None:
    with pytest.raises(ValueError, match="has its groups already"):
        Cached(service, TYPE, caches)


@pytest.mark.row(34)
async def test_what_others_may_write_unheard_is_not_answered_from_memory(service: Service) -> None:
    cached = Cached(service, TYPE, Caches(alone=False))
    await cached.apply(document("a"), APPLY)
    for count in (1, 2, 3):
        await cached.get("a", GET)
        await cached.list(LIST)
        assert (service.gets, service.lists) == (count, count)


class Gate:
    """Holds the service at one place until it is opened."""

    def __init__(self, service: Service, where: str) -> None:
        self._where = where
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        service.pause = self._pass

    async def _pass(self, where: str) -> None:
        if where == self._where:
            self.reached.set()
            await self.opened.wait()


@pytest.mark.row(33)
async def test_a_write_goes_on_when_its_caller_gives_up(service: Service, cached: Cached) -> None:
    gate = Gate(service, "before apply")
    writing = asyncio.create_task(cached.apply(document("a", 1), APPLY))
    await gate.reached.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    gate.opened.set()
    await cached.drain()
    assert (await cached.get("a", GET))["spec"]["v"] == 1


@pytest.mark.row(33)
async def test_while_something_is_written_lists_over_projects_go_past_the_cache(
    service: Service, cached: Cached
) -> None:
    await cached.apply(document("a", 1), APPLY)
    await cached.list(EVERYWHERE)
    gate = Gate(service, "apply")
    writing = asyncio.create_task(cached.apply(document("a", 2), APPLY))
    await gate.reached.wait()
    assert (await cached.list(EVERYWHERE)).items[0]["spec"]["v"] == 2
    assert (await cached.list(EVERYWHERE)).items[0]["spec"]["v"] == 2
    gate.opened.set()
    await writing


@pytest.mark.row(33)
async def test_another_replica_is_not_answered_with_what_is_being_written_over(
    service: Service, cached: Cached, caches: Caches
) -> None:
    await cached.apply(document("a", 1), APPLY)
    await cached.get("a", GET)
    gate = Gate(service, "apply")
    writing = asyncio.create_task(cached.apply(document("a", 2), APPLY))
    await gate.reached.wait()
    answer = await caches.kinds[TYPE].read(Question(TYPE, "a", GET.key()))
    assert msgspec.msgpack.decode(answer.value)["spec"]["v"] == 2
    gate.opened.set()
    await writing


@pytest.mark.row(34)
async def test_another_replica_that_knows_of_something_newer_is_not_answered_with_less(
    service: Service, cached: Cached, caches: Caches
) -> None:
    await cached.apply(document("a", 1), APPLY)
    await cached.get("a", GET)
    await cached.list(LIST)
    service.put(("p", "a"), document("a", 2))
    read = caches.kinds[TYPE].read
    answer = await read(Question(TYPE, "a", GET.key(), floor=service.revision))
    assert msgspec.msgpack.decode(answer.value)["spec"]["v"] == 2
    answer = await read(Question(TYPE, "", LIST.key(), floor=service.revision))
    assert answer.revision == service.revision


@pytest.mark.row(33)
async def test_a_list_that_is_older_than_what_is_known_is_not_kept(
    service: Service, cached: Cached, caches: Caches
) -> None:
    await cached.apply(document("a", 1), APPLY)
    caches.news(Change(TYPE, "default", "p", "b", revision=service.revision + 5))
    await cached.list(LIST)
    await cached.list(LIST)
    assert service.lists == 2
    service.revision += 5
    await cached.list(LIST)
    await cached.list(LIST)
    assert service.lists == 3
