"""Kinds by group and suffix, with what belongs to them."""

from __future__ import annotations

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.kit import Plan, Service, plan
from trimtab.hub.contract import Hub
from trimtab.hub.lint import IdField, id_fields
from trimtab.hub.registry import Registry
from trimtab.hub.scheme import HubConfig, HubScheme, SchemeBuilder, SpokeConvertor, UnknownKind, builder_for
from trimtab.hub.versions import from_hub, to_hub
from trimtab.model.hub import HubKind, HubMeta, HubResource, Stored
from trimtab.model.markers import Ref
from trimtab.model.resource import Spec


class SiteSpec(Spec):
    plan: Annotated[str, Ref("Plan")] = ""
    theirs: Annotated[str, Ref("Plan.other")] = ""


class Site(HubResource, group="apps", version="v3"):
    """Of a group that Kubernetes has, too."""

    spec: SiteSpec = SiteSpec()


class OtherPlan(HubResource, group="other", version="v3", kind="Plan"):
    """The same name in another group."""


class OldPlanSpec(Spec):
    count: int = 1
    where: tuple[str, ...] = ()


class OldPlan(HubResource, group="infra", version="v2", kind="Plan"):
    """The version before: other words for the same."""

    spec: OldPlanSpec = OldPlanSpec()


class Between:
    """v2 ↔ v3."""

    def convert_to(self, spoke: OldPlan) -> Plan:
        from tests.hub.kit import PlanSpec

        return Plan(metadata=spoke.metadata, spec=PlanSpec(replicas=spoke.spec.count, places=spoke.spec.where))

    def convert_from(self, hub: Plan) -> OldPlan:
        return OldPlan(metadata=hub.metadata, spec=OldPlanSpec(count=hub.spec.replicas, where=hub.spec.places))


class HasSpec(Spec):
    cluster_id: str = ""


class Has(HubResource, group="infra", version="v3"):
    """With what a spec may not have."""

    spec: HasSpec = HasSpec()


@pytest.fixture
def scheme() -> HubScheme:
    made = HubScheme(("trimtab.dev", "acme.io"))
    made.add(HubConfig(cls=Plan))
    return made


@pytest.mark.row(2)
def test_an_unknown_kind_is_told_with_the_known_ones(scheme: HubScheme) -> None:
    with pytest.raises(UnknownKind) as unknown:
        scheme.find("infra.trimtab.dev/v3", "Plane")
    assert str(unknown.value) == (
        "there is no Plane of infra.trimtab.dev/v3; known are infra.acme.io/v3 Plan, infra.trimtab.dev/v3 Plan"
    )
    assert unknown.value.code == 400


@pytest.mark.row(2)
@pytest.mark.row(10)
def test_the_same_kinds_are_there_under_every_suffix_at_once(scheme: HubScheme) -> None:
    for suffix in ("trimtab.dev", "acme.io"):
        found = scheme.find(f"infra.{suffix}/v3", "Plan")
        assert found.kind.group == f"infra.{suffix}"
        assert found.type == "plans.infra", "the rows are the same"
    scheme.add(HubConfig(cls=Plan), suffix="other.example")
    assert scheme.new("infra.other.example/v3", "Plan")["apiVersion"] == "infra.other.example/v3"


@pytest.mark.row(10)
def test_a_group_that_kubernetes_has_too_gets_the_suffix_all_the_same() -> None:
    scheme = HubScheme()
    scheme.add(HubConfig(cls=Site))
    assert scheme.find("apps.trimtab.dev/v3", "Site").kind.plural == "sites"


@pytest.mark.row(11)
def test_registering_twice_is_an_error(scheme: HubScheme) -> None:
    with pytest.raises(ValueError, match="twice"):
        scheme.add(HubConfig(cls=Plan))

    class Other(HubResource, group="infra", version="v3", plural="plans"):
        pass

    with pytest.raises(ValueError, match="are Plan already"):
        scheme.add(HubConfig(cls=Other))


@pytest.mark.row(11)
@pytest.mark.row(8)
def test_a_new_document_has_its_defaults() -> None:
    def defaulter(hub: Hub) -> None:
        hub["spec"].setdefault("places", ["west"])

    scheme = HubScheme()
    scheme.add(HubConfig(cls=Plan, defaulter=defaulter))
    assert scheme.new("infra.trimtab.dev/v3", "Plan", project="red") == {
        "apiVersion": "infra.trimtab.dev/v3",
        "kind": "Plan",
        "metadata": {"project": "red", "namespace": "red"},
        "spec": {"version": "", "replicas": 1, "places": ["west"], "sharing": {"enabled": False}},
    }


@pytest.mark.row(11)
def test_kinds_are_found_by_plural_by_kind_and_by_list(scheme: HubScheme) -> None:
    for name in ("plans", "plans.infra", "plans.infra.trimtab.dev"):
        assert scheme.by_plural(name).kind.group == "infra.trimtab.dev"
    assert scheme.by_plural("plans.infra.acme.io").suffix == "acme.io"
    assert scheme.by_plural("plans", "acme.io").suffix == "acme.io"
    assert [each.suffix for each in scheme.by_kind("Plan")] == ["trimtab.dev", "acme.io"]
    with pytest.raises(UnknownKind, match=r"known are plans\.infra"):
        scheme.by_plural("plan")
    listed = scheme.of_list("infra.acme.io/v3", "PlanList")
    assert listed is not None
    assert listed.suffix == "acme.io"


@pytest.mark.row(12)
def test_a_list_kind_is_derived_or_given() -> None:
    scheme = HubScheme()
    scheme.add(HubConfig(cls=Plan, list_kind="Plans"))
    assert scheme.by_plural("plans").kind.list_kind == "Plans"


@pytest.mark.row(13)
def test_groups_are_added_one_by_one_or_together() -> None:
    infra, apps = builder_for(HubKind(cls=Plan)), builder_for(HubConfig(cls=Site))
    some, both = HubScheme(), HubScheme()
    infra.add_to_scheme(some)
    SchemeBuilder(infra, apps)(both)
    assert [each.kind.kind for each in some.registered()] == ["Plan"]
    assert [each.kind.kind for each in both.registered()] == ["Plan", "Site"]
    white = SchemeBuilder()
    white.register(builder_for(HubKind(cls=Plan), suffix="acme.io").add_to_scheme)
    white.add_to_scheme(both)
    assert {each.suffix for each in both.by_kind("Plan")} == {"trimtab.dev", "acme.io"}


@pytest.mark.row(16)
def test_spokes_are_added_to_a_hub_and_found_by_their_type(scheme: HubScheme) -> None:
    convertor = object()
    scheme.add_spokes_for_hub(Plan, SpokeConvertor(Stored, convertor))
    assert scheme.convertor("plans.infra", Stored) is convertor
    with pytest.raises(ValueError, match="twice"):
        scheme.add_spokes_for_hub(Plan, SpokeConvertor(Stored, convertor))
    with pytest.raises(UnknownKind, match="it has Stored"):
        scheme.convertor("plans.infra", dict)
    with pytest.raises(UnknownKind, match="not registered"):
        scheme.add_spokes_for_hub(Site, SpokeConvertor(Stored, convertor))


@pytest.fixture
def versions(scheme: HubScheme) -> HubScheme:
    scheme.add_spokes_for_hub(Plan, SpokeConvertor(OldPlan, Between()))
    return scheme


VERSIONS = HubScheme(("trimtab.dev", "acme.io"))
VERSIONS.add(HubConfig(cls=Plan, spokes=(SpokeConvertor(OldPlan, Between()),)))


@pytest.mark.row(17)
@pytest.mark.row(14)
@given(
    count=st.integers(0, 9),
    where=st.lists(st.text("abc", min_size=1), max_size=3),
    suffix=st.sampled_from(VERSIONS.suffixes),
    labels=st.dictionaries(st.text("ab", min_size=1), st.text("ab"), min_size=1, max_size=2),
)
def test_an_older_version_goes_through_the_kept_one_and_back(
    count: int, where: list[str], suffix: str, labels: dict[str, str]
) -> None:
    old: Hub = {
        "apiVersion": f"infra.{suffix}/v2",
        "kind": "Plan",
        "metadata": {"name": "a", "project": "red", "uid": "u", "labels": labels},
        "spec": {"count": count, "where": where},
    }
    kept = to_hub(old, VERSIONS)
    assert kept["apiVersion"] == f"infra.{suffix}/v3"
    assert kept["spec"].get("replicas", 1) == count
    assert kept["metadata"] == old["metadata"]
    back = from_hub(kept, f"infra.{suffix}/v2", VERSIONS)
    spec = {"count": 1, "where": [], **back.pop("spec", {})}
    assert {**back, "spec": spec} == old


@pytest.mark.row(17)
def test_versions_are_told_with_the_known_ones_and_checked(versions: HubScheme) -> None:
    assert to_hub(plan(), versions) == plan()
    assert from_hub(plan(), "infra.trimtab.dev/v3", versions) == plan()
    with pytest.raises(UnknownKind, match=r"infra\.trimtab\.dev/v2 Plan"):
        to_hub({"apiVersion": "infra.trimtab.dev/v1", "kind": "Plan"}, versions)
    with pytest.raises(UnknownKind, match="has no version"):
        from_hub(plan(), "infra.acme.io/v2", versions)
    assert ("infra.acme.io/v2", "Plan") in versions.versions
    with pytest.raises(ValueError, match="twice"):
        versions.add(HubConfig(cls=OldPlan))


@pytest.mark.row(4)
@pytest.mark.parametrize(
    "name",
    [
        "clusterId",
        "clusterID",
        "cluster_id",
        "uid",
        "id",
        "nodeIds",
        "agentUID",
        "uuid",
        "ownerUuid",
        "ids",
        "clusterIDs",
    ],
)
def test_a_field_that_is_called_an_id_is_refused(name: str) -> None:
    schema = {"properties": {"spec": {"properties": {"deep": {"items": {"properties": {name: {}}}}}}}}
    assert id_fields(schema) == [f"spec.deep[].{name}"]
    assert id_fields(schema, exempt=[name]) == []
    assert id_fields(schema, exempt=[f"spec.deep[].{name}"]) == []


@pytest.mark.row(4)
@pytest.mark.parametrize(
    "name", ["grid", "valid", "identity", "idle", "android", "hybrid", "fluid", "idempotent", "Idea"]
)
def test_a_word_that_ends_like_one_is_none(name: str) -> None:
    assert id_fields({"properties": {"spec": {"properties": {name: {}}}}}) == []


@pytest.mark.row(23)
def test_a_reference_may_say_the_group_of_what_it_names() -> None:
    scheme = HubScheme()
    scheme.add(HubConfig(cls=Plan), HubConfig(cls=OtherPlan), HubConfig(cls=Site))
    assert {(each.path, each.type) for each in scheme.references(scheme.by_plural("sites"))} == {
        (("spec", "plan"), "plans.infra"),
        (("spec", "theirs"), "plans.other"),
    }


@pytest.mark.row(4)
def test_a_kind_with_ids_is_not_registered() -> None:
    with pytest.raises(IdField, match=r"spec\.clusterId.*Ref"):
        HubScheme().add(HubConfig(cls=Has))
    HubScheme().add(HubConfig(cls=Has, exempt=("spec.clusterId",)))


@pytest.mark.row(20)
def test_accessors_are_found_by_their_declared_plural(scheme: HubScheme) -> None:
    registry, service = Registry(), Service()
    plans = scheme.by_plural("plans")
    registry.add_hub_storage(plans, "plans", service)
    assert registry.accessor("plans") is service
    assert registry.registered("plans") is plans
    with pytest.raises(ValueError, match="already"):
        registry.add_hub_storage(plans, "plans", service)
    with pytest.raises(ValueError, match="the plural of Plan is plans"):
        registry.add_hub_storage(plans, "plan", service)
    with pytest.raises(UnknownKind, match="served are plans"):
        registry.accessor("sites")


def test_a_typed_object_keeps_its_metadata_between_versions() -> None:
    typed = Between().convert_to(OldPlan(metadata=HubMeta(name="a", project="red"), spec=OldPlanSpec(count=3)))
    assert Between().convert_from(typed).spec.count == 3


class Rack(HubResource, group="racks.example.com", version="v1"):
    """Of a group that has a domain of its own."""


@pytest.mark.row(10)
def test_a_group_with_a_domain_of_its_own_is_the_same_under_every_suffix(scheme: HubScheme) -> None:
    scheme.add(HubConfig(cls=Rack))
    assert [each.kind.api_version for each in scheme.by_kind("Rack")] == ["racks.example.com/v1"]
    with pytest.raises(ValueError, match="twice"):
        scheme.add(HubConfig(cls=Rack))


@pytest.mark.row(10)
@pytest.mark.parametrize("suffix", ["", "Not_A_Domain", "a..b", "-a.io"])
def test_a_suffix_is_a_domain(suffix: str) -> None:
    with pytest.raises(ValueError, match="cannot end the name of a group"):
        HubScheme(("trimtab.dev", suffix))


@pytest.mark.row(4)
def test_ids_are_found_in_lists_and_in_maps() -> None:
    inner = {"type": "object", "properties": {"agentID": {"type": "string"}, "identity": {"type": "string"}}}
    spec = {
        "properties": {
            "nodes": {"type": "array", "items": inner},
            "byZone": {"type": "object", "additionalProperties": inner},
        }
    }
    found = id_fields({"properties": {"spec": spec, "status": inner}})
    assert found == ["spec.nodes[].agentID", "spec.byZone{}.agentID"]
    assert id_fields({"properties": {"spec": spec}}, exempt=("spec.nodes[].agentID",)) == ["spec.byZone{}.agentID"]
