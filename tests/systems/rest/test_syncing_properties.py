"""The laws of a reconcile, against services of every kind: what is written arrives, nothing else changes, and then there is
nothing left to do."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.systems.rest.syncing_kit import BODIES, KEY, PLAIN, Service, kind
from trimtab.systems.rest.model import Model, Overlay, Writer
from trimtab.systems.rest.syncing.adopting import adopt
from trimtab.systems.rest.syncing.comparing import compared
from trimtab.systems.rest.syncing.difference import difference, owned
from trimtab.systems.rest.syncing.leaves import walk
from trimtab.systems.rest.syncing.paths import MISSING, Item, Path, get, put
from trimtab.systems.rest.syncing.removing import next_removal
from trimtab.systems.rest.syncing.secrets import observed, sealed
from trimtab.systems.rest.syncing.settling import settle
from trimtab.systems.rest.syncing.stripping import stripped
from trimtab.systems.rest.syncing.writing import create_body, write_for

Body = dict[str, Any]

WORLDS = {
    "PUT that replaces": ("replace", kind(patch=Writer.NONE)),
    "PUT that merges": ("merge", kind(patch=Writer.NONE)),
    "ARM with PATCH of tags": ("replace", kind(tags_patch=True)),
    "ARM with PATCH of all": ("replace", kind(tags_patch=False)),
    "PATCH by RFC 7396": ("replace", kind(path=PLAIN, tags_patch=False)),
    "PUT that merges and PATCH of tags": ("merge", kind(path=PLAIN, tags_patch=True)),
}
"""How the service writes, and what is known of the kind."""


def mixed(model: Model, theirs: Body, ours: Body) -> Body:
    """What a service has: what we applied, and what others did."""
    for leaf in walk(model, ours).values():
        if leaf.bare and type(get(theirs, leaf.steps)) is type(leaf.value):
            continue
        theirs = put(theirs, leaf.steps, leaf.value)
    return copy.deepcopy(theirs)


def reconciled(model: Model, service: Service, desired: Body, applied: Body, *, correct: bool = True) -> Body:
    """Writes until all is settled, as the reconciler does; gives the known differences."""
    wanted, removals = sealed(model, desired, KEY), {}
    before = sealed(model, applied, KEY)
    for _ in range(5):
        live = service.read()
        found = difference(model, desired=wanted, applied=before, live=live)
        write = write_for(model, found, live=live, desired=desired, applied=before, correct=correct, removals=removals)
        if write is None:
            return settle(model, wanted, live, previous=before).known
        service.write(write.verb, write.body)
        settled = settle(model, wanted, service.read(), previous=before)
        had = walk(model, before)
        removals = {
            path: rung
            for path in settled.still_present
            if (rung := next_removal(model, had[path], removals.get(path, 0), desired=wanted, verb=write.verb))
        }
        if not removals:
            return settled.known
    raise AssertionError("it is never done")


@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=40, deadline=None)
@given(applied=BODIES, desired=BODIES, theirs=BODIES, mask=st.sampled_from([None, "***", ""]))
def test_what_is_written_arrives_and_then_nothing_is_left_to_do(
    world: str, applied: Body, desired: Body, theirs: Body, mask: str | None
) -> None:
    how, model = WORLDS[world]
    service = Service(model, mixed(model, theirs, applied), put=how, mask=mask)
    known = reconciled(model, service, desired, applied)
    wanted = sealed(model, desired, KEY)
    assert difference(model, desired=wanted, applied=wanted, live=service.read(), known=known).empty
    writes = service.writes
    assert reconciled(model, service, desired, desired) == known
    assert service.writes == writes


@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=40, deadline=None)
@given(applied=BODIES, desired=BODIES, theirs=BODIES)
def test_an_honest_service_differs_in_nothing_that_it_was_given(
    world: str, applied: Body, desired: Body, theirs: Body
) -> None:
    how, model = WORLDS[world]
    service = Service(model, mixed(model, theirs, applied), put=how)
    known = reconciled(model, service, desired, applied)
    # A service that merges takes null for nothing, and an empty object that it had never heard of it keeps.
    assert {path for path, said in known.items() if get(desired, walk(model, desired)[path].steps) is not None} == set()
    for leaf in owned(model, desired, {}).values():
        if leaf.hidden or leaf.path == "properties.steps":  # with the secrets in it
            assert get(service.state, leaf.steps) == leaf.value


@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=40, deadline=None)
@given(applied=BODIES, desired=BODIES, theirs=BODIES)
def test_nothing_that_is_someone_elses_changes(world: str, applied: Body, desired: Body, theirs: Body) -> None:
    how, model = WORLDS[world]
    start = mixed(model, theirs, applied)
    service = Service(model, start, put=how)
    before = stripped(model, service.read(), Writer.ALL)
    reconciled(model, service, desired, applied)
    ours = {*walk(model, applied), *walk(model, desired)}
    after, same = stripped(model, service.read(), Writer.ALL), compared(model, before)
    for leaf in walk(model, before).values():
        if leaf.initial(before) and get(after, leaf.steps[:-1]) is not MISSING:
            assert get(after, leaf.steps) == leaf.value
        if leaf.path in ours or leaf.hidden or _within(leaf.steps, applied, desired):
            continue
        assert same(leaf.path, leaf.value, get(after, leaf.steps)), leaf.path


def _within(steps: Path, applied: Body, desired: Body) -> bool:
    """Whether it goes with what is ours: in an item that we remove, or where we put something of another shape."""
    for end in range(1, len(steps) + 1):
        had, wants = get(applied, steps[:end]), get(desired, steps[:end])
        if isinstance(steps[end - 1], Item) and had is not MISSING and wants is MISSING:
            return True
        walked = None if end == len(steps) else list if isinstance(steps[end], Item) else dict
        if any(mine is not MISSING and (walked is None or not isinstance(mine, walked)) for mine in (had, wants)):
            return True
    return False


@pytest.mark.parametrize("patch", [Writer.NONE, Writer.PATCH])
@pytest.mark.parametrize(
    ("path", "value", "forgets"),
    [
        ("size", 3, "null"),
        ("size", 3, "default"),
        ("note", "x", "null"),
        ("note", "x", "empty"),
        ("hosts", ["x"], "null"),
        ("hosts", ["x"], "empty"),
        ("rules", [{"name": "web", "port": 1}], "null"),
        ("rules", [{"name": "web", "port": 1}], "empty"),
        ("net", {"a": "x", "deep": {"c": "y"}}, "null"),
        ("net", {"a": "x", "deep": {"c": "y"}}, "empty"),
    ],
)
def test_a_removed_field_goes_in_the_way_that_the_service_knows(
    forgets: str, patch: Writer, path: str, value: Any
) -> None:
    model = kind(path=PLAIN, patch=patch, tags_patch=False)
    applied: Body = {"location": "westus", "properties": {path: value, "mode": "on"}}
    desired: Body = {"location": "westus", "properties": {"mode": "on"}}
    service = Service(model, applied, put="merge", forgets=forgets)
    reconciled(model, service, desired, applied)
    assert service.state["properties"].get(path) in (None, {}, {"deep": {}})


@settings(max_examples=60, deadline=None)
@given(desired=BODIES, foreign=BODIES, data=st.data())
def test_drift_is_found_exactly_where_another_hand_changed_what_is_ours(
    desired: Body, foreign: Body, data: st.DataObject
) -> None:
    model = kind()
    service = Service(model, {}, put="replace")
    service.write("update", create_body(model, desired))
    wanted = sealed(model, desired, KEY)
    known = settle(model, wanted, service.read(), previous=None).known
    visible = [leaf for leaf in walk(model, foreign).values() if not leaf.hidden]
    assume(visible)
    chosen = data.draw(st.lists(st.sampled_from(visible), min_size=1, max_size=3))
    for leaf in chosen:
        service.state = put(service.state, leaf.steps, leaf.value)
    live = service.read()
    found = difference(model, desired=wanted, applied=wanted, live=live, known=known)
    same = compared(model, wanted)
    mine = owned(model, wanted, live)
    touched = {
        path for path, leaf in mine.items() if not leaf.hidden and not same(path, leaf.value, get(live, leaf.steps))
    }
    assert set(found.drift) == touched
    assert not found.wanted


@settings(max_examples=60, deadline=None)
@given(desired=BODIES, live=BODIES, order=st.randoms(use_true_random=False))
def test_whatever_a_service_makes_of_a_body_is_no_drift_while_it_stays_so(
    desired: Body, live: Body, order: random.Random
) -> None:
    model = kind()
    wanted = sealed(model, desired, KEY)
    service = Service(model, live, put="replace")
    known = json.loads(json.dumps(settle(model, wanted, service.read(), previous=None).known))
    for name in ("rules", "hosts"):
        order.shuffle(service.state.get("properties", {}).get(name, []))
    assert difference(model, desired=wanted, applied=wanted, live=service.read(), known=known).empty


@settings(max_examples=60, deadline=None)
@given(desired=BODIES, live=BODIES)
def test_what_is_adopted_as_it_is_is_not_written(desired: Body, live: Body) -> None:
    model = kind()
    service = Service(model, live, put="replace")
    wanted = sealed(model, desired, KEY)
    applied, known = adopt(model, wanted, service.read(), as_is=True)
    found = difference(model, desired=wanted, applied=applied, live=service.read(), known=known)
    assert found.empty
    assert write_for(model, found, live=service.read(), desired=desired, applied=applied, correct=True) is None


@settings(max_examples=60, deadline=None)
@given(desired=BODIES, live=BODIES)
def test_what_is_overwritten_becomes_what_the_spec_says(desired: Body, live: Body) -> None:
    model = kind()
    service = Service(model, live, put="replace")
    wanted = sealed(model, desired, KEY)
    applied, known = adopt(model, wanted, service.read(), as_is=False)
    assert known == {}
    found = difference(model, desired=wanted, applied=applied, live=service.read())
    write = write_for(model, found, live=service.read(), desired=desired, applied=applied, correct=True)
    if write is not None:
        service.write(write.verb, write.body)
    assert difference(model, desired=wanted, applied=wanted, live=service.read()).empty


@settings(max_examples=60, deadline=None)
@given(body=BODIES)
def test_secrets_are_in_nothing_that_is_remembered_or_shown(body: Body) -> None:
    model = kind()
    secret = put(body, ("properties", "secret"), "correct horse")
    secret = put(secret, ("properties", "steps"), [{"x": 1, "key": "battery staple"}])
    secret = put(secret, ("properties", "extra"), {"echoed": "it is correct horse, they say"})
    kept = json.dumps(sealed(model, secret, KEY)["properties"] | {"extra": None})
    shown = json.dumps(observed(model, secret, secrets=["correct horse", "battery staple"]))
    for text in (kept, shown):
        assert "correct horse" not in text
        assert "battery staple" not in text


@settings(max_examples=40, deadline=None)
@given(applied=BODIES, desired=BODIES, theirs=BODIES)
def test_a_replacing_update_sends_what_is_wanted_and_leaves_alone_what_is_initial(
    applied: Body, desired: Body, theirs: Body
) -> None:
    model = kind(overlay=Overlay(update="replace"), patch=Writer.NONE)
    service = Service(model, mixed(model, theirs, applied), put="replace")
    capacity = get(service.state, ("sku", "capacity"))
    reconciled(model, service, desired, applied)
    if service.writes:
        assert get(service.state, ("sku", "capacity")) == capacity
        ours = {**walk(model, desired)}
        assert all(
            path in ours or leaf.initial for path, leaf in walk(model, service.state).items() if leaf.value != {}
        )
