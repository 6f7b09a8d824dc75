"""From an object to its URL and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.rest.addressing import (
    AddressError,
    canonical,
    climbs,
    fill,
    matched,
    normalized,
    parsed,
    query_of,
    resource_id,
    url_of,
)
from trimtab.systems.rest.model import Call, Calls, Identity, Model, Node, Parameter

PATH = "/groups/{group}/sets/{set}"


def model(**changes: object) -> Model:
    call = Call(method="PUT", path=PATH, query={"api-version": "1", "expand": "{expand}"})
    given = {
        "group": "x.rest.trimtab.dev",
        "version": "v1",
        "kind": "Set",
        "plural": "sets",
        "service": "x",
        "spec": Node(type="object"),
        "calls": Calls(create=call, read=Call(method="GET", path=PATH, query=call.query)),
        "identity": Identity(parameter="set"),
        **changes,
    }
    return Model(**given)  # type: ignore[arg-type]


NAMES = st.text(min_size=1, max_size=20).filter(lambda text: not climbs(text) and "\n" not in text)


@settings(max_examples=100, deadline=None)
@given(group=NAMES, own=NAMES)
def test_an_id_gives_its_parameters_back_whatever_they_are(group: str, own: str) -> None:
    kind = model()
    assert parsed(kind, resource_id(kind, {"group": group, "set": own})) == {"group": group, "set": own}


@settings(max_examples=100, deadline=None)
@given(own=NAMES)
def test_a_name_never_leads_to_another_path(own: str) -> None:
    made = resource_id(model(), {"group": "g", "set": own})
    assert made.startswith("/groups/g/sets/")
    assert made.count("/") == 4
    assert "?" not in made
    assert "#" not in made


@pytest.mark.parametrize("name", [".", ".."])
def test_dots_alone_are_refused(name: str) -> None:
    with pytest.raises(AddressError, match="another path"):
        resource_id(model(), {"group": "g", "set": name})


def test_a_parameter_without_a_value_is_named() -> None:
    with pytest.raises(AddressError) as raised:
        resource_id(model(), {"set": "s"})
    assert raised.value.parameter == "group"


def test_a_parameter_that_is_a_path_may_not_climb() -> None:
    kind = model(parameters=(Parameter(name="scope", source="object", encode=False),))
    assert fill(kind, "/{scope}/locks", {"scope": "/a/b/"}) == "/a/b/locks"
    with pytest.raises(AddressError):
        fill(kind, "/{scope}/locks", {"scope": "a/../b"})


def test_fixed_segments_match_in_any_case() -> None:
    assert parsed(model(), "/GROUPS/g/Sets/S") == {"group": "g", "set": "S"}


@pytest.mark.parametrize("identifier", ["/groups/g", "/groups/g/sets/s/more", "/groups//sets/s", ""])
def test_an_id_of_another_kind_is_none_of_ours(identifier: str) -> None:
    assert parsed(model(), identifier) is None


def test_a_parameter_may_span_segments_where_it_is_said() -> None:
    assert matched("/{scope}/locks/{name}", "/a/b/locks/l", frozenset({"scope"})) == {"scope": "a/b", "name": "l"}


def test_a_query_parameter_without_a_value_is_left_out() -> None:
    kind = model()
    assert query_of(kind.calls.create, {}) == "?api-version=1"
    assert query_of(kind.calls.create, {"expand": "a b&c"}) == "?api-version=1&expand=a%20b%26c"


def test_a_call_below_the_resource_takes_its_parameters_from_the_id() -> None:
    call = Call(method="POST", path=PATH + "/restart", query={"api-version": "1"})
    assert url_of(model(), call, "/groups/g/sets/s%2Ft") == "/groups/g/sets/s%2Ft/restart?api-version=1"


@pytest.mark.parametrize("written", ["/Groups/g/sets/%73", "/groups/%67/sets/s/", "/groups/g/sets/s"])
def test_all_ways_to_write_an_id_are_asked_for_in_one(written: str) -> None:
    assert normalized(model(), written) == "/groups/g/sets/s"
    assert canonical(written) == "/groups/g/sets/s"
    call = Call(method="GET", path=PATH)
    assert url_of(model(), call, written) == "/groups/g/sets/s"


@settings(max_examples=100, deadline=None)
@given(group=NAMES, own=NAMES)
def test_an_id_that_we_made_stays_as_it_is(group: str, own: str) -> None:
    made = resource_id(model(), {"group": group, "set": own})
    assert normalized(model(), made) == made
    assert canonical(canonical(made)) == canonical(made)


@pytest.mark.parametrize(
    "written",
    ["/groups/g/sets/..", "/groups/g/sets/%2E%2e", "/groups/g/sets/%252e%252e", "/groups/g/sets/a%2f..%2fb",
     "/groups/g/sets/..%5Cb", "/groups/g/sets/s?x=1", "/groups/g/sets/s#x", "/groups/./sets/s"],
)  # fmt: skip
def test_an_id_that_would_lead_elsewhere_is_none_and_never_asked_for(written: str) -> None:
    assert parsed(model(), written) is None
    assert normalized(model(), written) == ""
    with pytest.raises(AddressError):
        url_of(model(), Call(method="DELETE", path=PATH), written)


def test_an_id_of_an_earlier_definition_is_asked_for_as_it_is() -> None:
    assert url_of(model(), Call(method="DELETE", path=PATH), "/old/s") == "/old/s"


def test_a_parameter_that_is_a_path_stays_as_it_is_written() -> None:
    kind = model(
        parameters=(Parameter(name="scope", source="object", encode=False),),
        calls=Calls(create=Call(method="PUT", path="/{scope}/locks/{set}")),
    )
    assert normalized(kind, "/a%20b/c/locks/l") == "/a%20b/c/locks/l"
