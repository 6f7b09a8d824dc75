"""What every client does, whatever carries it and whoever serves it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import pytest
from msgspec import UNSET, Meta

from tests.client.conftest import CONFIG_MAP, config_map, eventually
from tests.client.widgets import Widget, WidgetSpec, WidgetStatus
from trimtab.client import api
from trimtab.client.api import ApiClient
from trimtab.client.discovery import discover
from trimtab.client.follow import follow
from trimtab.client.protocol import Event, EventType, Listing, Named, Preconditions, Query, Ref
from trimtab.client.transport import Call, Reply, Transport
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Scheme, Untyped


def widget(name: str, namespace: str, **spec: Any) -> Widget:
    return Widget(metadata=ObjectMeta(name=name, namespace=namespace), spec=WidgetSpec(**{"size": 1, **spec}))


async def refused(work: Any) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await work
    return caught.value


# one object


async def test_what_was_created_is_read_back_typed(client: ApiClient, namespace: str) -> None:
    made = await client.create(widget("a", namespace, size=3))
    read = await client.get(Widget, "a", namespace)
    assert isinstance(read, Widget)
    assert read == made
    assert (read.spec.size, read.spec.colour) == (3, "grey")


async def test_a_kind_without_a_class_is_its_document(client: ApiClient, namespace: str) -> None:
    await client.create(config_map("a", namespace, key="value"))
    read = await client.get(CONFIG_MAP, "a", namespace)
    assert isinstance(read, Untyped)
    assert (read.kind, read.raw["data"]) == ("ConfigMap", {"key": "value"})


async def test_an_object_that_names_no_namespace_lives_in_the_clients_own(client: ApiClient, namespace: str) -> None:
    client.namespace = namespace
    made = await client.create(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(size=1)))
    assert made.namespace == namespace
    assert (await client.get(Widget, "a")).name == "a"


async def test_a_kind_of_the_cluster_has_no_namespace(client: ApiClient, namespace: str) -> None:
    read = await client.get(Named("v1", "Namespace"), namespace)
    assert read.name == namespace


async def test_an_object_that_is_not_there_is_a_404(client: ApiClient, namespace: str) -> None:
    error = await refused(client.get(Widget, "none", namespace))
    assert (error.code, error.reason) == (404, "NotFound")
    assert error.message == 'widgets.client.example.com "none" not found'


async def test_a_second_creation_is_a_409(client: ApiClient, namespace: str) -> None:
    await client.create(widget("a", namespace))
    error = await refused(client.create(widget("a", namespace)))
    assert (error.code, error.reason) == (409, "AlreadyExists")


async def test_what_the_schema_forbids_is_a_422_that_names_the_field(client: ApiClient, namespace: str) -> None:
    bad = {"apiVersion": "client.example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": namespace}}
    error = await refused(client.create(Untyped({**bad, "spec": {"size": "large"}})))
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.details is not None
    assert error.details["causes"][0]["field"] == "spec.size"


async def test_a_name_reaches_the_server_as_it_is(client: ApiClient, namespace: str) -> None:
    error = await refused(client.get(Widget, "a b?ü&c", namespace))
    assert error.message == 'widgets.client.example.com "a b?ü&c" not found'


@pytest.mark.parametrize("name", ["..", ".", "a/status", "../../secrets/b", "a%2Fstatus"])
async def test_a_name_does_not_lead_to_another_place(client: ApiClient, name: str) -> None:
    for asked in (client.get(Widget, name, "default"), client.get(Widget, "a", name)):
        assert (await refused(asked)).message.startswith(f'invalid resource name "{name}"')


@pytest.mark.parametrize("named", [Named("v1", "Gadget"), Named("nobody.example.com/v1", "Gadget")])
async def test_an_unknown_kind_is_a_clear_error(client: ApiClient, named: Named) -> None:
    error = await refused(client.list(named))
    assert error.code == 404
    assert error.message == f'no matches for kind "Gadget" in version "{named.api_version}"'


# changes


async def test_a_patch_sends_what_changed_and_leaves_the_rest(client: ApiClient, namespace: str) -> None:
    old = await client.create(widget("a", namespace, size=1, colour="red"))
    new = await client.patch(old, old.replace(spec=old.spec.replace(size=2)))
    assert (new.spec.size, new.spec.colour) == (2, "red")


async def test_a_patch_can_take_a_field_away(client: ApiClient, namespace: str) -> None:
    old = await client.create(widget("a", namespace, parts={"wheel": "round", "axle": "long"}))
    new = await client.patch(old, old.replace(spec=old.spec.replace(parts={"axle": "long"})))
    assert new.spec.parts == {"axle": "long"}
    bare = await client.patch(new, new.replace(spec=new.spec.replace(parts=UNSET)))
    assert bare.spec.parts is UNSET


async def test_a_patch_from_a_stale_object_is_a_409_and_changes_nothing(client: ApiClient, namespace: str) -> None:
    stale = await client.create(widget("a", namespace))
    await client.patch(stale, stale.replace(spec=stale.spec.replace(colour="blue")))
    error = await refused(client.patch(stale, stale.replace(spec=stale.spec.replace(colour="green"))))
    assert (error.code, error.reason) == (409, "Conflict")
    assert (await client.get(Widget, "a", namespace)).spec.colour == "blue"


async def test_a_patch_of_a_document_works_alike(client: ApiClient, namespace: str) -> None:
    old = await client.create(config_map("a", namespace, one="1", two="2"))
    new = await client.patch(old, Untyped({**old.raw, "data": {"two": "2"}}))
    assert new.raw["data"] == {"two": "2"}
    error = await refused(client.patch(old, Untyped({**old.raw, "data": {}})))
    assert error.code == 409


async def test_a_patch_without_a_change_sends_nothing(client: ApiClient, namespace: str) -> None:
    old = await client.create(widget("a", namespace))
    await client.delete(Ref(Widget, "a", namespace))
    assert await client.patch(old, old.replace(spec=WidgetSpec(size=1))) is old


async def test_status_is_written_through_its_subresource_alone(client: ApiClient, namespace: str) -> None:
    old = await client.create(widget("a", namespace))
    through_main = await client.patch(old, old.replace(status=WidgetStatus(made=1)))
    assert through_main.status is UNSET
    new = await client.patch(through_main, through_main.replace(status=WidgetStatus(made=7)), subresource="status")
    assert new.status.made == 7


# apply


async def test_apply_creates_and_then_owns_its_fields(client: ApiClient, namespace: str) -> None:
    made = await client.apply(widget("a", namespace, parts={"x": "1", "y": "2"}), manager="ours")
    assert made.metadata.managed_fields[0].manager == "ours"
    again = await client.apply(widget("a", namespace, parts={"x": "1"}), manager="ours")
    assert again.spec.parts == {"x": "1"}


async def test_apply_over_anothers_field_conflicts_until_forced(client: ApiClient, namespace: str) -> None:
    await client.apply(widget("a", namespace, colour="red"), manager="ours")
    error = await refused(client.apply(widget("a", namespace, colour="blue"), manager="theirs"))
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.details is not None
    assert [cause["field"] for cause in error.details["causes"]] == [".spec.colour"]
    forced = await client.apply(widget("a", namespace, colour="blue"), manager="theirs", force=True)
    assert forced.spec.colour == "blue"


async def test_apply_of_a_status_leaves_the_spec(client: ApiClient, namespace: str) -> None:
    await client.apply(widget("a", namespace, size=5), manager="ours")
    partial = Untyped(
        {
            "apiVersion": "client.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "a", "namespace": namespace},
            "status": {"made": 2},
        }
    )
    made = await client.apply(partial, manager="status", subresource="status")
    assert (made.spec.size, made.status.made) == (5, 2)


# dry run


async def test_a_dry_run_answers_and_changes_nothing(client: ApiClient, namespace: str) -> None:
    tried = await client.create(widget("a", namespace), dry_run=True)
    assert tried.metadata.uid
    assert (await refused(client.get(Widget, "a", namespace))).code == 404
    made = await client.create(widget("a", namespace))
    await client.patch(made, made.replace(spec=made.spec.replace(size=9)), dry_run=True)
    await client.apply(widget("a", namespace, size=8), manager="tests", force=True, dry_run=True)
    await client.delete(Ref(Widget, "a", namespace), dry_run=True)
    assert await client.get(Widget, "a", namespace) == made


# deletion


async def test_a_deleted_object_is_gone(client: ApiClient, namespace: str) -> None:
    await client.create(widget("a", namespace))
    await client.delete(Ref(Widget, "a", namespace))
    assert (await refused(client.get(Widget, "a", namespace))).code == 404
    assert (await refused(client.delete(Ref(Widget, "a", namespace)))).code == 404


async def test_a_deletion_heeds_its_preconditions(client: ApiClient, namespace: str) -> None:
    made = await client.create(widget("a", namespace))
    ref = Ref(Widget, "a", namespace)
    assert (await refused(client.delete(ref, preconditions=Preconditions(uid="other")))).code == 409
    assert (await refused(client.delete(ref, preconditions=Preconditions(resource_version="1")))).code == 409
    await client.delete(
        ref, preconditions=Preconditions(uid=made.metadata.uid, resource_version=made.metadata.resource_version)
    )
    assert (await refused(client.get(Widget, "a", namespace))).code == 404


@pytest.mark.parametrize(("propagation", "survives"), [("Background", False), ("Foreground", False), ("Orphan", True)])
async def test_propagation_says_what_becomes_of_dependents(
    client: ApiClient, namespace: str, propagation: str, survives: bool
) -> None:
    owner = await client.create(config_map("owner", namespace))
    child = config_map("child", namespace)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
    child.raw["metadata"]["ownerReferences"] = [reference]
    await client.create(child)
    await client.delete(Ref(CONFIG_MAP, "owner", namespace), propagation=propagation)

    async def settled() -> bool:
        try:
            found = await client.get(CONFIG_MAP, "child", namespace)
        except StatusError as error:
            return error.code == 404
        return survives and not found.raw["metadata"].get("ownerReferences")

    await eventually(settled)
    left = await client.list(CONFIG_MAP, Query(namespace=namespace, fields="metadata.name=child"))
    assert bool(left.items) is survives


# lists


async def test_a_list_is_whole_although_it_comes_in_chunks(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "CHUNK", 2)
    for number in range(5):
        await client.create(widget(f"w{number}", namespace))
    listing = await client.list(Widget, Query(namespace=namespace))
    assert [item.name for item in listing.items] == ["w0", "w1", "w2", "w3", "w4"]
    assert all(isinstance(item, Widget) for item in listing.items)
    assert listing.revision


async def test_selectors_choose(client: ApiClient, namespace: str) -> None:
    for name, tier in (("a", "front"), ("b", "back")):
        made = widget(name, namespace)
        await client.create(made.replace(metadata=ObjectMeta(name=name, namespace=namespace, labels={"tier": tier})))
    by_label = await client.list(Widget, Query(namespace=namespace, labels="tier=back"))
    by_field = await client.list(Widget, Query(namespace=namespace, fields="metadata.name!=b"))
    assert ([o.name for o in by_label.items], [o.name for o in by_field.items]) == (["b"], ["a"])


async def test_metadata_can_be_listed_alone(client: ApiClient, namespace: str) -> None:
    await client.create(widget("a", namespace))
    listing = await client.list(Widget, Query(namespace=namespace, metadata_only=True))
    (item,) = listing.items
    assert (item.name, item.kind, "spec" in item.raw) == ("a", "PartialObjectMetadata", False)


async def test_an_object_that_does_not_fit_its_class_hides_no_other(client: ApiClient, namespace: str) -> None:
    await client.create(widget("small", namespace))
    await client.create(widget("large", namespace, size=2**40))
    narrow = ApiClient(client.transport, Scheme())
    narrow.scheme.register(NarrowWidget)
    listing = await narrow.list(NarrowWidget, Query(namespace=namespace))
    assert [(item.name, type(item)) for item in listing.items] == [("large", Untyped), ("small", NarrowWidget)]
    assert (await refused(narrow.get(NarrowWidget, "large", namespace))).code == 500


class NarrowWidgetSpec(Spec):
    size: Annotated[int, Meta(le=100)]


class NarrowWidget(Resource, group="client.example.com", version="v1", kind="Widget", plural="widgets"):
    """The same kind as an older program knows it."""

    spec: NarrowWidgetSpec


# watches


@contextlib.asynccontextmanager
async def watching(client: ApiClient, query: Query, since: str) -> Any:
    events = client.watch(Widget, query, since)
    try:
        yield lambda: _next(events)
    finally:
        await events.aclose()


async def _next(source: AsyncGenerator[Any, None]) -> Any:
    async with asyncio.timeout(20):
        while True:
            found = await anext(source)
            if not (isinstance(found, Event) and found.type is EventType.BOOKMARK):
                return found


async def test_a_watch_tells_every_change_since_a_revision(client: ApiClient, namespace: str) -> None:
    query = Query(namespace=namespace)
    listing = await client.list(Widget, query)
    made = await client.create(widget("a", namespace))
    await client.patch(made, made.replace(spec=made.spec.replace(size=2)))
    await client.delete(Ref(Widget, "a", namespace))
    async with watching(client, query, listing.revision) as next_event:
        events = [await next_event() for _ in range(3)]
    assert [event.type.value for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.object.spec.size for event in events] == [1, 2, 2]


async def test_a_watch_goes_on_where_another_stopped(client: ApiClient, namespace: str) -> None:
    query = Query(namespace=namespace)
    listing = await client.list(Widget, query)
    for name in ("a", "b", "c"):
        await client.create(widget(name, namespace))
    async with watching(client, query, listing.revision) as next_event:
        first = await next_event()
    async with watching(client, query, first.revision) as next_event:
        rest = [await next_event() for _ in range(2)]
    assert [event.object.name for event in (first, *rest)] == ["a", "b", "c"]


async def test_metadata_can_be_watched_alone(client: ApiClient, namespace: str) -> None:
    query = Query(namespace=namespace, metadata_only=True)
    listing = await client.list(Widget, query)
    await client.create(widget("a", namespace))
    async with watching(client, query, listing.revision) as next_event:
        event = await next_event()
    assert (event.object.name, event.object.kind, "spec" in event.object.raw) == ("a", "PartialObjectMetadata", False)


async def test_a_refusal_of_a_watch_is_raised(client: ApiClient) -> None:
    error = await refused(anext(client.watch(Widget, Query(labels="a in ("), "")))
    assert (error.code, error.reason) == (400, "BadRequest")


# follow


async def test_follow_lists_and_then_tells_changes(client: ApiClient, namespace: str) -> None:
    await client.create(widget("a", namespace))
    following = follow(client, Widget, Query(namespace=namespace))
    listing = await _next(following)
    assert isinstance(listing, Listing)
    assert [item.name for item in listing.items] == ["a"]
    await client.create(widget("b", namespace))
    event = await _next(following)
    assert (event.type, event.object.name) == (EventType.ADDED, "b")
    await following.aclose()


async def test_follow_goes_on_when_a_watch_ends(client: ApiClient, namespace: str) -> None:
    following = follow(ApiClient(Brief(client.transport), client.scheme), Widget, Query(namespace=namespace))
    assert isinstance(await _next(following), Listing)
    for name in ("a", "b", "c"):
        await client.create(widget(name, namespace))
    assert [(await _next(following)).object.name for _ in range(3)] == ["a", "b", "c"]
    await following.aclose()


async def test_follow_lists_again_when_the_past_is_gone(client: ApiClient, namespace: str) -> None:
    forgetful = ApiClient(Forgetful(client.transport), client.scheme)
    following = follow(forgetful, Widget, Query(namespace=namespace))
    assert isinstance(await _next(following), Listing)
    await client.create(widget("a", namespace))
    listing = await _next(following)
    assert isinstance(listing, Listing)
    assert [item.name for item in listing.items] == ["a"]
    await following.aclose()


async def test_follow_raises_what_will_never_pass(client: ApiClient) -> None:
    error = await refused(anext(follow(client, Widget, Query(labels="a in ("))))
    assert error.code == 400


class Brief:
    """Each of its watches ends after one event."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def call(self, call: Call) -> Reply:
        return await self.inner.call(call)

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(self.inner.stream(call, inactivity)) as lines:
            yield await anext(lines)

    async def close(self) -> None:
        pass


class Forgetful(Brief):
    """Its first watch is told that the revision is gone."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.forgot = False

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        if self.forgot:
            return self.inner.stream(call, inactivity)
        self.forgot = True
        return self._expired()

    async def _expired(self) -> AsyncGenerator[bytes, None]:
        status = (
            b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}'
        )
        yield b'{"type":"ERROR","object":' + status + b"}"


# discovery


async def test_a_defined_kind_is_discovered_by_its_names(client: ApiClient) -> None:
    catalogue = await discover(client.transport)
    found = catalogue.find("wd")
    assert found is not None
    assert (found.api_version, found.kind, found.namespaced) == ("client.example.com/v1", "Widget", True)
    assert catalogue.find("widgets.client.example.com") == catalogue.kind("client.example.com/v1", "Widget") == found
    assert {"deployments", "replicasets", "services"} <= {resource.plural for resource in catalogue.category("all")}
