"""The chain of proxies as a process has it: all of them, in their order, for every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub.served.conftest import Home, addon
from trimtab.hub.contract import ApplyOptions
from trimtab.model.errors import StatusError


def layers(accessor: Any) -> Iterator[str]:
    while accessor is not None:
        yield type(accessor).__name__
        accessor = getattr(accessor, "inner", None)


@pytest.mark.row(21)
async def test_every_kind_is_served_through_the_whole_chain_in_its_order(home: Home) -> None:
    above, below = ["Validate", "Default", "Version", "Lineage", "View"], ["Hydrate", "Cached", "StorageAccessor"]

    def wanted(kind: str) -> list[str]:
        return [*above, *(["Inhabited"] if kind == "Project" else []), *below]

    for registered in home.hub.scheme.registered():
        accessor = home.hub.registry.accessor(registered.kind.resource)
        assert list(layers(accessor)) == ["Auth", *wanted(registered.kind.kind)], registered.kind.resource
    for backend in home.hub.backends:
        assert list(layers(backend.accessor)) in (wanted("Project"), wanted("Addon"))


@pytest.mark.row(21)
async def test_who_may_not_is_told_so_before_what_is_wrong(home: Home) -> None:
    accessor = home.hub.registry.accessor("addons.infra.trimtab.dev")
    wrong = {**addon(), "spec": {"colour": "red"}}
    with pytest.raises(StatusError) as refusal:
        await accessor.apply(wrong, ApplyOptions(project="default", user="bob"))
    assert refusal.value.code == 403
