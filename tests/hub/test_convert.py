"""To the storage service and back loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.kit import Plan
from trimtab.hub.contract import Hub, Refused
from trimtab.hub.convert import Documents, Incomplete
from trimtab.hub.rows import Rows
from trimtab.hub.sharing import canonical
from trimtab.hub.storage.contract import RowKey
from trimtab.model.hub import StorageResource, Stored
from trimtab.model.scheme import Scheme

words = st.text("abc", min_size=1, max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
sharings = st.none() | st.fixed_dictionaries(
    {"enabled": st.booleans(), "projects": st.lists(st.fixed_dictionaries({"name": words | st.just("*")}), max_size=4)}
)
hubs = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": words, "project": words},
            optional={
                "description": words,
                "labels": st.dictionaries(words, words, min_size=1, max_size=2),
                "annotations": st.dictionaries(words, words, min_size=1, max_size=2),
            },
        ),
        "spec": st.builds(
            lambda body, version, sharing: {
                **body,
                **({} if version is None else {"version": version}),
                "sharing": sharing,
            },
            st.dictionaries(words, values, max_size=4),
            st.none() | st.sampled_from(["", "v1", "v2"]),
            sharings,
        ),
    },
    optional={"status": st.dictionaries(words, values)},
)


def shared_once(hub: Hub) -> Hub | None:
    try:
        sharing = canonical(hub["spec"]["sharing"], hub["metadata"]["project"])
    except Refused:
        return None
    return {**hub, "spec": {**hub["spec"], "sharing": sharing}}


@pytest.mark.row(14)
@pytest.mark.row(9)
@given(hub=hubs, versioned=st.booleans())
def test_a_document_comes_back_canonical(hub: Hub, versioned: bool) -> None:
    convertor = Documents(shared=True, versioned=versioned)
    expected = shared_once(hub)
    if expected is None:
        with pytest.raises(Refused):
            convertor.convert_from(hub)
        return
    stored = convertor.convert_from(hub)
    assert convertor.convert_to(stored) == expected
    assert convertor.convert_from(convertor.convert_to(stored)) == stored
    assert (stored.snapshot is not None) == (versioned and bool(hub["spec"].get("version")))
    assert "sharing" not in stored.resource.body


@pytest.mark.row(15)
def test_a_spoke_that_lacks_its_snapshot_is_refused() -> None:
    resource = StorageResource(name="a", body={"version": "v1"})
    with pytest.raises(Incomplete, match="snapshot"):
        Documents(shared=False, versioned=True).convert_to(Stored(resource=resource))


@pytest.mark.row(14)
@given(replicas=st.integers(0, 5), places=st.lists(words, max_size=3), sharing=sharings)
def test_a_row_is_the_document_with_its_envelope(replicas: int, places: list[str], sharing: Any) -> None:
    hub: Hub = {
        "apiVersion": "infra.trimtab.dev/v3",
        "kind": "Plan",
        "metadata": {"name": "a", "project": "p", "uid": "u", "generation": 3, "resourceVersion": "0"},
        "spec": {"replicas": replicas, "places": places, "sharing": sharing},
    }
    expected = shared_once(hub)
    if expected is None:
        return
    rows = Rows(Scheme().kind_of(Plan), Plan, None)
    row = rows.row(RowKey("default", "plans.infra", "p", "a"), hub)
    assert "resourceVersion" not in row.envelope
    assert rows.hub(row) == expected
