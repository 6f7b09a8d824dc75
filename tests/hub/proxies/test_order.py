"""The whole chain, in its order; and what calls say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.hub.kit import KEY, TYPES, Plan, Register, Service, plan
from trimtab.hub.artifacts.digests import file_paths
from trimtab.hub.contract import ApplyOptions, GetOptions, Hub, ListOptions, Options, Refused
from trimtab.hub.proxies.auth import Auth
from trimtab.hub.proxies.default import Default
from trimtab.hub.proxies.hydrate import Hydrate
from trimtab.hub.proxies.lineage import Lineage
from trimtab.hub.proxies.names import Names
from trimtab.hub.proxies.passing import Passing
from trimtab.hub.proxies.validate import Validate
from trimtab.hub.proxies.version import Version
from trimtab.hub.proxies.view import View
from trimtab.hub.references import references_of
from trimtab.model.errors import StatusError, forbidden
from trimtab.model.scheme import Scheme


def refuses(verb: str, plural: str, *_: str) -> None:
    raise forbidden(plural, "", "", f"nobody may {verb} them")


class Seen(Passing):
    """Notes what comes down past it."""

    def __init__(self, inner: Any, place: str, seen: list[tuple[str, Hub]]) -> None:
        super().__init__(inner)
        self._place, self._seen = place, seen

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        self._seen.append((self._place, hub))
        return await super().apply(hub, options)


@pytest.mark.row(21)
async def test_a_write_is_allowed_checked_completed_and_resolved_in_this_order() -> None:
    kind = Scheme().kind_of(Plan)
    register, service = Register(), Service()
    red = register.add("Project", "red")
    seen: list[tuple[str, Hub]] = []
    chain: Any = Seen(service, "service", seen)
    chain = Seen(Hydrate(chain, references_of(Plan, TYPES), Names(register)), "hydrate", seen)
    chain = Seen(Lineage(chain, KEY), "lineage", seen)
    chain = Seen(Default(Version(chain, "Plan"), kind), "default", seen)
    chain = Seen(Validate(chain, kind, files=file_paths(Plan)), "validate", seen)
    nobody = Auth(chain, refuses, plural="plans")
    anybody = Auth(chain, lambda *_: None, plural="plans")
    options = ApplyOptions(project="red")
    with pytest.raises(StatusError):
        await nobody.apply({"spec": 1}, options)
    assert seen == [], "who may not is not told what is wrong either"
    with pytest.raises(Refused):
        await anybody.apply({"spec": 1}, options)
    assert [place for place, _ in seen] == ["validate"], "nothing wrong is completed"
    seen.clear()
    await anybody.apply({"metadata": {"name": "a", "annotations": {KEY: "forged"}}}, options)
    found = dict(seen)
    assert list(found) == ["validate", "default", "lineage", "hydrate", "service"]
    assert "spec" not in found["default"]
    assert found["lineage"]["spec"]["sharing"] == {"enabled": False}
    assert KEY in str(found["lineage"])
    assert KEY not in str(found["hydrate"])
    assert found["hydrate"]["metadata"]["project"] == "red"
    assert found["service"]["metadata"]["project"] == red


@pytest.mark.row(19)
@pytest.mark.row(32)
def test_equal_questions_have_equal_keys_and_others_others() -> None:
    assert GetOptions(project="a").key() == GetOptions(project="a", organization="default", version="").key()
    different: list[Options] = [
        GetOptions(project="a"),
        GetOptions(project="b"),
        GetOptions(project="a", organization="other"),
        GetOptions(project="a", include_lineage=True),
        GetOptions(project="a", version="v1"),
        ListOptions(project="a", labels="x=y"),
        ListOptions(project="a", limit=3),
        ListOptions(project="a", after=("a", "b")),
    ]
    assert len({options.key() for options in different}) == len(different)
    for options in different:
        assert msgspec.json.decode(options.key(), type=type(options)) == options


@pytest.mark.row(10)
async def test_another_view_shows_its_own_group() -> None:
    service = Service()
    view = View(service, Scheme("acme.io").kind_of(Plan))
    shown = await view.apply(plan(), ApplyOptions(project="red"))
    assert shown["apiVersion"] == "infra.acme.io/v3"
    assert (await view.get("a", GetOptions(project="red")))["apiVersion"] == "infra.acme.io/v3"
    assert {hub["apiVersion"] for hub in (await view.list(ListOptions(project="red"))).items} == {"infra.acme.io/v3"}
