"""Admission functions of whole groups: kinds that are known only when someone defines them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.webhooks_gadgets import Gadget, gadget
from tests.server.api import Api, running
from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Reader
from trimtab.model.crd import crd
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Scheme, Untyped

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class PumpSpec(Spec):
    capacity: int = 0


class Pump(Resource, group="water.made.trimtab.dev", version="v1", plural="pumps"):
    spec: PumpSpec


class Asked:
    """A function that remembers what it was asked and refuses an odd capacity."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    async def __call__(self, request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
        assert isinstance(request.object, Untyped)
        self.kinds.append(request.kind.resource)
        if request.object.raw["spec"].get("capacity", 0) % 2:
            return Denied(message="must be even")
        return Allowed(warnings=("seen",))


def pump(capacity: int) -> dict[str, Any]:
    names = {"apiVersion": "water.made.trimtab.dev/v1", "kind": "Pump"}
    return {**names, "metadata": {"name": "a"}, "spec": {"capacity": capacity}}


async def defined(api: Api, cls: type[Resource]) -> str:
    document = crd(cls, scheme=Scheme())
    await api.post(DEFINITIONS, document)
    spec = document["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/namespaces/default/{spec['names']['plural']}"
    await api.until(path, lambda answer: answer.code == 200)
    return path


async def test_a_kind_of_a_matching_group_is_judged_though_nobody_declared_it() -> None:
    asked = Asked()
    async with running(admission=(Admission(name="made", groups=("*.made",), function=asked),)) as api:
        pumps = await defined(api, Pump)
        refused = await api.post(pumps, pump(3))
        assert refused.doc["message"] == 'pumps.water.made.trimtab.dev "a" is forbidden: must be even'
        taken = await api.post(pumps, pump(4))
        assert (taken.code, taken.warnings) == (201, ["seen"])
        assert asked.kinds == ["pumps.water.made.trimtab.dev"] * 2


async def test_its_objects_stay_untyped_even_where_a_class_is_known() -> None:
    scheme = Scheme()
    scheme.register(Pump)
    admission = Admission(name="made", groups=("*.made",), function=Asked())
    async with running(admission=(admission,), scheme=scheme) as api:
        pumps = await defined(api, Pump)
        assert (await api.post(pumps, pump(4))).code == 201


async def test_other_groups_are_not_judged() -> None:
    asked = Asked()
    async with running(admission=(Admission(name="made", groups=("*.made",), function=asked),)) as api:
        gadgets = await defined(api, Gadget)
        assert (await api.post(gadgets, gadget("a"))).code == 201
        assert (await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})).code == 201
        assert asked.kinds == []


async def test_a_function_of_groups_asks_only_about_its_own_subresources_and_operations() -> None:
    asked = Asked()
    admission = Admission(name="made", groups=("*.made",), function=asked, subresources=("scale",))
    async with running(admission=(admission,)) as api:
        pumps = await defined(api, Pump)
        assert (await api.post(pumps, pump(3))).code == 201
        assert asked.kinds == []


def test_a_pattern_has_the_suffix_of_the_scheme() -> None:
    admission = Admission(name="made", groups=("*.made", "*.sub.example.com"), function=Asked())
    assert admission.suffixes(Scheme()) == (".made.trimtab.dev", ".sub.example.com")
    assert admission.suffixes(Scheme("acme.io")) == (".made.acme.io", ".sub.example.com")


@pytest.mark.parametrize("pattern", ["made", "*", "*.", "*.a.*", ""])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="no pattern of groups"):
        Admission(name="made", groups=(pattern,), function=Asked())
