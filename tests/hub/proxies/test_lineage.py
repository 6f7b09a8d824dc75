"""The rules of lineage, for each call, with and without asking for it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.kit import KEY, Service, plan
from trimtab.hub.contract import ApplyOptions, DeleteOptions, GetOptions, Hub, ListOptions, Stale, WatchOptions
from trimtab.hub.proxies.lineage import Lineage
from trimtab.hub.proxies.lineage_fields import kept, value_of, without
from trimtab.hub.proxies.passing import Passing
from trimtab.store.contract import Op

ASKED = pytest.mark.parametrize("asked", [False, True], ids=["not-asked", "asked"])
OTHER = {"note": "x"}


def managed(*keys: str, manager: str = "gitops") -> Hub:
    fields = {".": {}} | {f"f:{key}": {} for key in keys}
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": "infra.trimtab.dev/v3",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:annotations": fields}},
    }


def lineage(hub: Hub) -> str | None:
    return value_of(hub, KEY)


async def stored(service: Service, value: str | None) -> None:
    annotations = dict(OTHER) if value is None else {**OTHER, KEY: value}
    entries = [managed("note", manager="kubectl")] + ([] if value is None else [managed(KEY)])
    await service.apply(plan(annotations=annotations, managed=entries), ApplyOptions(project="red"))


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.mark.row(41)
@ASKED
@pytest.mark.parametrize("value", [None, "git"])
async def test_get_shows_lineage_only_when_asked(service: Service, asked: bool, value: str | None) -> None:
    await stored(service, value)
    found = await Lineage(service, KEY).get("a", GetOptions(project="red", include_lineage=asked))
    assert lineage(found) == (value if asked else None)
    assert found["metadata"]["annotations"]["note"] == "x"
    assert (KEY in str(found["metadata"]["managedFields"])) == (asked and value is not None)


@pytest.mark.row(42)
@ASKED
async def test_list_shows_lineage_of_each_item_only_when_asked(service: Service, asked: bool) -> None:
    for name in ("a", "b"):
        await service.apply(plan(name, annotations={KEY: name}, managed=[managed(KEY)]), ApplyOptions(project="red"))
    page = await Lineage(service, KEY).list(ListOptions(project="red", include_lineage=asked))
    assert [lineage(hub) for hub in page.items] == (["a", "b"] if asked else [None, None])
    assert (KEY in str(page.items)) == asked


@pytest.mark.row(42)
@ASKED
async def test_watch_shows_lineage_now_and_before_only_when_asked(service: Service, asked: bool) -> None:
    proxy = Lineage(service, KEY)
    await stored(service, "one")
    await stored(service, "two")
    watch = proxy.watch(WatchOptions(include_lineage=asked), 0)
    batch = await anext(watch)
    first, second = batch.changes
    assert first.op is Op.PUT
    assert first.before is None
    assert second.before is not None
    assert (lineage(first.hub), lineage(second.before), lineage(second.hub)) == (
        ("one", "one", "two") if asked else (None, None, None)
    )
    assert (KEY in str(batch)) == asked


@pytest.mark.row(43)
@ASKED
@pytest.mark.parametrize("expect", [None, 0])
async def test_create_keeps_lineage_only_when_asked(service: Service, asked: bool, expect: int | None) -> None:
    sent = plan(annotations={**OTHER, KEY: "forged"}, managed=[managed(KEY, "note")])
    options = ApplyOptions(project="red", include_lineage=asked, expect=expect)
    answer = await Lineage(service, KEY).apply(sent, options)
    now = service.rows["red", "a"]
    assert lineage(now) == ("forged" if asked else None)
    assert (KEY in str(now["metadata"]["managedFields"])) == asked
    assert lineage(answer) == ("forged" if asked else None)
    assert now["metadata"]["annotations"]["note"] == "x"


@pytest.mark.row(44)
@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize("sent", [None, "new"])
@pytest.mark.parametrize("conditional", [False, True])
async def test_an_update_that_asks_is_stored_as_given(
    service: Service, before: str | None, sent: str | None, conditional: bool
) -> None:
    await stored(service, before)
    document = plan(annotations=OTHER if sent is None else {**OTHER, KEY: sent})
    options = ApplyOptions(project="red", include_lineage=True, expect=1 if conditional else None)
    answer = await Lineage(service, KEY).apply(document, options)
    assert lineage(service.rows["red", "a"]) == lineage(answer) == sent


@pytest.mark.row(45)
@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize("sent", [None, "forged"])
@pytest.mark.parametrize("conditional", [False, True])
async def test_an_update_that_does_not_ask_keeps_the_stored_lineage(
    service: Service, before: str | None, sent: str | None, conditional: bool
) -> None:
    await stored(service, before)
    entries = [managed(KEY, "note", manager="kubectl")] if sent else [managed("note", manager="kubectl")]
    document = plan(annotations=OTHER if sent is None else {**OTHER, KEY: sent}, managed=entries)
    options = ApplyOptions(project="red", expect=1 if conditional else None)
    answer = await Lineage(service, KEY).apply(document, options)
    now = service.rows["red", "a"]
    assert lineage(now) == before
    owners = [entry["manager"] for entry in now["metadata"]["managedFields"] if KEY in str(entry)]
    assert owners == ([] if before is None else ["gitops"]), "who manages it stays, too"
    assert KEY not in str(answer)


@pytest.mark.row(45)
async def test_an_update_without_annotations_keeps_the_stored_lineage(service: Service) -> None:
    await stored(service, "old")
    await Lineage(service, KEY).apply(plan(), ApplyOptions(project="red"))
    assert service.rows["red", "a"]["metadata"]["annotations"] == {KEY: "old"}


@pytest.mark.row(45)
async def test_an_update_meets_a_sync_in_between_and_keeps_what_the_sync_wrote(service: Service) -> None:
    await stored(service, "old")

    class Racing(Service):
        raced = False

        async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
            if not self.raced:
                self.raced = True
                await stored(service, "newer")
            return await service.apply(hub, options)

        async def get(self, name: str, options: GetOptions) -> Hub:
            return await service.get(name, options)

    await Lineage(Racing(), KEY).apply(plan(annotations={KEY: "forged"}), ApplyOptions(project="red"))
    assert lineage(service.rows["red", "a"]) == "newer"


@pytest.mark.row(45)
async def test_a_conditional_update_at_another_revision_is_stale_and_shows_no_lineage(service: Service) -> None:
    await stored(service, "old")
    with pytest.raises(Stale) as stale:
        await Lineage(service, KEY).apply(plan(), ApplyOptions(project="red", expect=7))
    assert stale.value.current is not None
    assert KEY not in str(stale.value.current)


@pytest.mark.row(40)
@pytest.mark.row(10)
async def test_a_white_label_shows_its_own_key_and_stores_the_same_one(service: Service) -> None:
    mine, theirs = "hub.acme.io/lineage", KEY
    acme, usual = Lineage(service, mine), Lineage(service, theirs)
    sent = plan(annotations={mine: "git", theirs: "forged"}, managed=[managed(mine)])
    shown = await acme.apply(sent, ApplyOptions(project="red", include_lineage=True))
    assert shown["metadata"]["annotations"] == {mine: "git"}
    assert service.rows["red", "a"]["metadata"]["annotations"] == {theirs: "git"}
    assert lineage(await usual.get("a", GetOptions(project="red", include_lineage=True))) == "git"
    found = await acme.get("a", GetOptions(project="red", include_lineage=True))
    assert theirs not in str(found)
    assert mine in str(found["metadata"]["managedFields"])
    await acme.apply(plan(annotations={theirs: "forged"}), ApplyOptions(project="red"))
    assert lineage(service.rows["red", "a"]) == "git"


@pytest.mark.row(46)
def test_taking_lineage_out_and_keeping_it_again_changes_nothing() -> None:
    whole = plan(annotations={KEY: "git", "note": "x"}, managed=[managed("note", manager="kubectl"), managed(KEY)])
    assert kept(without(whole, KEY), whole, KEY) == whole


@pytest.mark.row(46)
def test_an_entry_that_managed_lineage_alone_goes_with_it() -> None:
    whole = plan(annotations={KEY: "git"}, managed=[managed(KEY)])
    left = without(whole, KEY)
    assert "annotations" not in left["metadata"]
    assert "managedFields" not in left["metadata"]
    assert KEY in str(whole), "the document that was given is as it was"


def test_a_document_without_lineage_comes_back_as_it_is() -> None:
    document = plan(annotations=OTHER)
    assert without(document, KEY) is document


writes = st.lists(
    st.tuples(st.booleans(), st.none() | st.sampled_from(["x", "y", "forged"]), st.booleans()), max_size=8
)


@pytest.mark.row(43)
@pytest.mark.row(44)
@pytest.mark.row(45)
@given(writes=writes)
async def test_after_any_writes_the_lineage_is_what_was_asked_for_last(
    writes: list[tuple[bool, str | None, bool]],
) -> None:
    service, expected = Service(), None
    proxy = Lineage(service, KEY)
    for asked, sent, conditional in writes:
        if asked:
            expected = sent
        document = plan(annotations=dict(OTHER) if sent is None else {**OTHER, KEY: sent})
        expect = int(service.rows["red", "a"]["metadata"]["resourceVersion"]) if service.rows else 0
        options = ApplyOptions(project="red", include_lineage=asked, expect=expect if conditional else None)
        await proxy.apply(document, options)
        shown = await proxy.get("a", GetOptions(project="red", include_lineage=True))
        hidden = await proxy.get("a", GetOptions(project="red"))
        assert (lineage(shown), lineage(hidden)) == (expected, None)


async def test_two_writers_at_once_keep_both_the_sync_s_lineage_and_the_last_spec(service: Service) -> None:
    proxy = Lineage(service, KEY)
    await stored(service, "old")
    syncs = [proxy.apply(plan(annotations={KEY: "new"}), ApplyOptions(project="red", include_lineage=True))]
    users = [proxy.apply(plan(spec={"replicas": n}), ApplyOptions(project="red")) for n in range(8)]
    await asyncio.gather(*users[:4], *syncs, *users[4:])
    assert lineage(service.rows["red", "a"]) == "new"


@pytest.mark.row(41)
async def test_a_deletion_that_comes_too_late_does_not_show_lineage() -> None:
    """The state that it meets goes back to whoever asked, and is shown as any other."""

    class Moved(Passing):
        async def delete(self, name: str, options: DeleteOptions) -> None:
            raise Stale("moved on", {"metadata": {"name": name, "annotations": {KEY: "secret", "own": "x"}}})

    for asked, seen in ((False, {"own": "x"}), (True, {KEY: "secret", "own": "x"})):
        with pytest.raises(Stale) as stale:
            await Lineage(Moved(None), KEY).delete("a", DeleteOptions(include_lineage=asked))
        assert stale.value.current is not None
        assert stale.value.current["metadata"]["annotations"] == seen


@pytest.mark.row(40)
@ASKED
async def test_the_keys_of_other_views_are_neither_kept_nor_shown(service: Service, asked: bool) -> None:
    other = "hub.acme.io/lineage"
    view = Lineage(service, KEY, others=(KEY, other))
    await view.apply(plan(annotations={other: "f", "note": "x"}), ApplyOptions(project="red", include_lineage=asked))
    kept = await service.get("a", GetOptions(project="red"))
    assert kept["metadata"]["annotations"] == {"note": "x"}
    await service.apply(plan(annotations={other: "f", "note": "x"}), ApplyOptions(project="red"))  # from before
    for key in (KEY, other):
        view = Lineage(service, key, others=(KEY, other))
        shown = await view.get("a", GetOptions(project="red", include_lineage=asked))
        assert shown["metadata"]["annotations"] == {"note": "x"}
