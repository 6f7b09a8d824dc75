"""Typed objects: what is sent is what is meant, and what the class does not know survives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType

from trimtab.model.document import convert, equal, merge_diff, patch_between, to_document
from trimtab.model.duration import Duration
from trimtab.model.fields import fields_of
from trimtab.model.kind import Column
from trimtab.model.markers import AlwaysEmit, Immutable, Initial, Keyed
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.model.quantity import Quantity
from trimtab.model.resource import Resource, Spec, definition_of
from trimtab.model.scheme import Scheme, Untyped


class Step(Spec):
    name: str
    weight: int = 10


class RolloutSpec(Spec):
    period: Duration = Duration("1m")
    size: Quantity | UnsetType = UNSET
    max_weight: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    replicas: Annotated[int, Initial()] | UnsetType = UNSET
    paused: Annotated[bool, AlwaysEmit()] = False
    zone: Annotated[str, Immutable()] | UnsetType = UNSET
    steps: Annotated[tuple[Step, ...], Keyed("name")] = ()
    notes: tuple[Step, ...] = ()
    labels: dict[str, str] | UnsetType = UNSET
    since: datetime | UnsetType = UNSET


class RolloutStatus(Spec):
    phase: str | UnsetType = UNSET


class Rollout(
    Resource, group="delivery", version="v1alpha1", short=("ro",), columns=(Column("Phase", ".status.phase"),)
):
    spec: RolloutSpec
    status: RolloutStatus | UnsetType = UNSET


class Job(Resource, group="batch", version="v1"):
    spec: dict[str, Any]


class Volume(Resource, group="", version="v1", namespaced=False):
    pass


SERVED: dict[str, Any] = {
    "apiVersion": "delivery.trimtab.dev/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7", "futureMeta": 1},
    "spec": {
        "period": "1m",
        "paused": False,
        "replicas": 4,
        "steps": [{"name": "a", "weight": 1, "future": "x"}, {"name": "b", "weight": 2, "future": "y"}],
        "futureSpec": {"deep": [1]},
    },
    "status": {"phase": "Running", "futureStatus": True},
}


def served() -> Rollout:
    return convert(SERVED, Rollout)


def test_only_what_is_set_is_sent() -> None:
    made = Rollout(metadata=ObjectMeta(name="web"), spec=RolloutSpec(max_weight=5))
    assert to_document(made) == {"metadata": {"name": "web"}, "spec": {"maxWeight": 5, "paused": False}}


def test_a_default_is_not_sent_even_when_it_was_given() -> None:
    assert "period" not in to_document(RolloutSpec(period=Duration("1m")))
    assert to_document(RolloutSpec(period=Duration("2m")))["period"] == "2m"


def test_values_are_written_as_the_api_has_them() -> None:
    spec = RolloutSpec(size=Quantity("1024Mi"), since=datetime(2026, 1, 1, tzinfo=UTC), notes=(Step(name="n"),))
    assert to_document(spec) == {
        "paused": False,
        "size": "1Gi",
        "since": "2026-01-01T00:00:00Z",
        "notes": [{"name": "n"}],
    }


def test_values_are_read_as_types() -> None:
    spec = convert({"size": 5, "period": "1h", "since": "2026-01-01T00:00:00Z"}, RolloutSpec)
    assert (spec.size, spec.period.seconds, spec.since) == (Quantity("5"), 3600, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "spec", [{"period": "soon"}, {"size": "1GiB"}, {"maxWeight": -1}, {"steps": [{}]}, {"size": []}]
)
def test_a_document_of_another_shape_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        convert(spec, RolloutSpec)


def test_an_object_from_the_api_keeps_its_document() -> None:
    assert served().raw == SERVED
    assert served().replace(spec=RolloutSpec()).raw == SERVED
    assert Rollout(spec=RolloutSpec()).raw is None


def test_an_unchanged_object_is_written_as_it_came() -> None:
    assert to_document(served()) == SERVED


def test_nothing_changed_is_an_empty_patch() -> None:
    assert patch_between(served(), served()) == {}


def test_a_patch_carries_only_the_change() -> None:
    old = served()
    new = old.replace(spec=old.spec.replace(period=Duration("5m"), zone="z"))
    assert patch_between(old, new) == {"spec": {"period": "5m", "zone": "z"}}


def test_a_patch_leaves_the_servers_metadata_alone() -> None:
    new = Rollout(metadata=ObjectMeta(name="web", labels={"a": "b"}), spec=served().spec, status=served().status)
    assert patch_between(served(), new) == {"metadata": {"labels": {"a": "b"}}}


def test_what_is_unset_again_is_removed() -> None:
    old = served()
    assert patch_between(old, old.replace(status=UNSET)) == {"status": None}


def test_going_back_to_a_default_is_said_when_the_api_has_another_value() -> None:
    old = convert({**SERVED, "spec": {"period": "9m"}}, Rollout)
    assert patch_between(old, old.replace(spec=old.spec.replace(period=Duration("1m")))) == {"spec": {"period": "1m"}}


def test_unknown_fields_of_list_items_survive_reordering() -> None:
    old = served()
    first, second = old.spec.steps
    new = old.replace(spec=old.spec.replace(steps=(second, first.replace(weight=9), Step(name="c"))))
    assert patch_between(old, new) == {
        "spec": {
            "steps": [
                {"name": "b", "weight": 2, "future": "y"},
                {"name": "a", "weight": 9, "future": "x"},
                {"name": "c"},
            ]
        }
    }


def test_an_initial_field_is_left_to_whoever_has_it_now() -> None:
    old = served()
    assert patch_between(old, old.replace(spec=old.spec.replace(replicas=9))) == {}
    assert to_document(Rollout(spec=RolloutSpec(replicas=9)))["spec"]["replicas"] == 9


def test_an_object_is_frozen() -> None:
    with pytest.raises(AttributeError):
        served().spec = RolloutSpec()  # type: ignore[misc]


def test_a_class_without_a_group_is_no_kind() -> None:
    class Base(Resource):
        pass

    with pytest.raises(TypeError, match="names no group"):
        definition_of(Base)


def test_a_class_with_a_group_needs_a_version() -> None:
    with pytest.raises(TypeError, match="no version"):

        class Bad(Resource, group="x"):
            pass


def test_fields_tell_their_markers() -> None:
    fields = {field.name: field for field in fields_of(RolloutSpec)}
    assert fields["zone"].marker(Immutable) == Immutable()
    assert fields["steps"].marker(Keyed) == Keyed("name")
    assert (fields["max_weight"].wire, fields["max_weight"].optional) == ("maxWeight", True)


def test_a_scheme_gives_a_class_its_kind() -> None:
    kind = Scheme().kind_of(Rollout)
    assert (kind.api_version, kind.resource) == ("delivery.trimtab.dev/v1alpha1", "rollouts.delivery.trimtab.dev")
    assert (kind.singular, kind.list_kind, kind.short_names) == ("rollout", "RolloutList", ("ro",))
    assert [column.name for column in kind.columns] == ["Phase", "Age"]
    assert kind.status
    assert kind.namespaced


def test_a_scheme_leaves_foreign_and_core_groups_as_they_are() -> None:
    scheme = Scheme(suffix="example.org")
    assert scheme.kind_of(Rollout).group == "delivery.example.org"
    assert scheme.kind_of(Job).api_version == "batch/v1"
    assert scheme.kind_of(Volume).api_version == "v1"
    assert not scheme.kind_of(Volume).status
    assert scheme.group("networking.istio.io") == "networking.istio.io"


def test_a_kind_is_one_record() -> None:
    scheme = Scheme()
    scheme.register(Rollout)
    assert scheme.kind_of(Rollout) is scheme.kind("delivery.trimtab.dev/v1alpha1", "Rollout")
    assert scheme.class_of("delivery.trimtab.dev/v1alpha1", "Rollout") is Rollout


def test_a_second_class_for_a_kind_is_refused() -> None:
    class Other(Resource, group="delivery", version="v1alpha1", kind="Rollout"):
        pass

    scheme = Scheme()
    scheme.register(Rollout)
    with pytest.raises(ValueError, match="is already Rollout"):
        scheme.register(Other)


def test_a_scheme_decodes_what_it_knows_and_wraps_the_rest() -> None:
    scheme = Scheme()
    scheme.register(Rollout)
    typed = scheme.decode(msgspec.json.encode(SERVED))
    assert isinstance(typed, Rollout)
    assert (typed.name, typed.namespace, typed.spec.replicas) == ("web", "shop", 4)
    other = scheme.decode({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}})
    assert isinstance(other, Untyped)
    assert (other.kind, other.name, other.namespace, other.metadata.name) == ("Secret", "s", "n", "s")
    assert msgspec.json.decode(scheme.encode(other)) == other.raw


def test_a_scheme_names_what_it_encodes() -> None:
    document = Scheme().document(Rollout(metadata=ObjectMeta(name="web"), spec=RolloutSpec()))
    assert list(document)[:2] == ["apiVersion", "kind"]
    assert (document["apiVersion"], document["kind"]) == ("delivery.trimtab.dev/v1alpha1", "Rollout")


def test_metadata_reads_every_usual_field() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    document = {
        "name": "a",
        "creationTimestamp": None,
        "ownerReferences": [owner],
        "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {}}}],
        "finalizers": ["x"],
        "deletionGracePeriodSeconds": 0,
    }
    meta = convert(document, ObjectMeta)
    assert meta.owner_references == (OwnerReference(api_version="v1", kind="Pod", name="p", uid="u", controller=True),)
    assert {k: v for k, v in document.items() if v is not None} == to_document(meta, document)


json = st.recursive(
    st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a"]) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), json, max_size=3)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@settings(max_examples=120)
@given(documents, documents)
def test_a_merge_patch_leads_from_the_old_document_to_the_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merged(old, merge_diff(old, new)) == new
    assert merge_diff(new, new) == {}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": [1, "x", None]}, {"a": [1, "x", None]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (True, 1, False),
        ([0], [False], False),
        (1, 1.0, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1], [1, 1], False),
        ({}, [], False),
        (None, False, False),
    ],
)
def test_documents_are_equal_as_json_has_it(one: Any, other: Any, same: bool) -> None:
    assert equal(one, other) is same
    assert equal(other, one) is same
