"""What an inventory would do, decided without any I/O."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.scheme import Untyped
from trimtab.runtime.inventory.plan import (
    LABEL,
    PRUNE,
    Document,
    Entry,
    Identity,
    Plan,
    Reason,
    entry_of,
    labelled,
    planned,
)

OWNER = Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o", "namespace": "n", "uid": "us"}})
ME = "me"


def document(name: str, kind: str = "ConfigMap", **data: str) -> Document:
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}, "data": data}
    return labelled(made, "us")


def live(name: str, uid: str = "", label: str | None = "us", **more: Any) -> Document:
    labels = {LABEL: label} if label else {}
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "n", "labels": labels, **more},
    }
    made["metadata"]["uid"] = uid or name  # type: ignore[index]
    return made


def plan(declared: list[Document], recorded: list[Entry], found: list[Document], **options: bool) -> Plan:
    return planned(
        OWNER,
        ME,
        {entry_of(document).identity: document for document in declared},
        recorded,
        {entry_of(document).identity: document for document in found},
        **options,
    )


def entry(name: str, uid: str = "") -> Entry:
    return Entry(api_version="v1", kind="ConfigMap", name=name, namespace="n", uid=uid)


def reasons(made: Plan) -> dict[str, Reason]:
    return {refusal.entry.name: refusal.reason for refusal in made.refused}


def names(steps: Any) -> list[str]:
    return [getattr(step, "entry", step).name for step in steps]


def test_what_is_not_there_is_created() -> None:
    made = plan([document("a")], [], [])
    assert names(made.create) == ["a"]


def test_what_is_there_and_ours_is_changed_or_left() -> None:
    same = live("b")
    same["data"] = {}
    fields = {"f:metadata": {"f:labels": {f"f:{LABEL}": {}}}, "f:data": {}}
    owned = {"manager": ME, "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields}
    same["metadata"]["managedFields"] = [owned]
    made = plan([document("a", x="1"), document("b")], [], [live("a"), same])
    assert (names(made.change), names(made.unchanged)) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("found", "adopt", "reason"),
    [
        (live("a", label="others"), True, Reason.NOT_OURS),
        (live("a", label=None), False, Reason.UNOWNED),
        (live("a", label=None, ownerReferences=[{"controller": True}]), True, Reason.NOT_OURS),
        (live("a", deletionTimestamp="2026-01-01T00:00:00Z"), False, Reason.DELETING),
    ],
)
def test_what_is_in_the_way_is_refused(found: Document, adopt: bool, reason: Reason) -> None:
    assert reasons(plan([document("a")], [], [found], adopt=adopt)) == {"a": reason}


def test_an_object_of_nobody_is_adopted_when_allowed() -> None:
    assert names(plan([document("a")], [], [live("a", label=None)], adopt=True).change) == ["a"]


def test_our_object_whose_label_was_taken_off_is_known_by_its_uid() -> None:
    assert names(plan([document("a")], [entry("a", "1")], [live("a", "1", label=None)]).change) == ["a"]
    assert reasons(plan([document("a")], [entry("a", "1")], [live("a", "2", label=None)])) == {"a": Reason.UNOWNED}


def test_what_is_no_longer_declared_is_pruned() -> None:
    assert names(plan([document("b")], [entry("a"), entry("b")], [live("a"), live("b")]).prune) == ["a"]


@pytest.mark.parametrize("found", [[], [live("a", label=None)], [live("a", label="others")]])
def test_what_is_gone_or_no_longer_ours_is_forgotten(found: list[Document]) -> None:
    made = plan([document("b")], [entry("a", "a")], found)
    assert (names(made.forget), made.prune) == (["a"], ())


def test_an_annotated_object_stays() -> None:
    made = plan([document("b")], [entry("a")], [live("a", annotations={PRUNE: "false"})])
    assert (reasons(made), made.prune) == ({"a": Reason.KEPT}, ())


def test_an_object_declared_under_another_name_of_its_kind_is_not_pruned() -> None:
    """Ingress was in two groups once, and each showed the same object."""
    old = Entry(api_version="extensions/v1", kind="ConfigMap", name="a", namespace="n", uid="1")
    twin = {**live("a", "1"), "apiVersion": "extensions/v1"}
    made = plan([document("a")], [old], [live("a", "1"), twin])
    assert (made.prune, made.forget) == ((), (old,))


@pytest.mark.parametrize(
    ("recorded", "leaving", "allowed"), [(6, 5, True), (7, 6, False), (40, 12, True), (40, 13, False)]
)
def test_no_more_than_five_or_thirty_per_cent_go_at_once(recorded: int, leaving: int, allowed: bool) -> None:
    everything = [f"x{n}" for n in range(recorded)]
    stay = [document(name) for name in everything[leaving:]]
    made = plan(stay, [entry(name) for name in everything], [live(name) for name in everything])
    assert len(made.prune) == (leaving if allowed else 0)
    assert set(reasons(made).values()) == (set() if allowed else {Reason.MASS_DELETE})


def test_nothing_declared_is_no_wish_to_delete_everything() -> None:
    assert reasons(plan([], [entry("a")], [live("a")])) == {"a": Reason.MASS_DELETE}
    assert names(plan([], [entry("a")], [live("a")], allow_mass_delete=True).prune) == ["a"]


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cups.example.com"},
}


def there(document: Document) -> Document:
    return {**document, "metadata": {**document["metadata"], "uid": document["kind"], "labels": {LABEL: "us"}}}


@pytest.mark.parametrize(
    ("carrier", "says"),
    [
        (NAMESPACE, "Namespace shop: everything in it would go with it, whoever made it"),
        (DEFINITION, "CustomResourceDefinition cups.example.com: every object of its kind would go with it"),
    ],
)
def test_what_takes_others_with_it_goes_only_when_that_is_allowed(carrier: Document, says: str) -> None:
    recorded, found = [entry("b"), entry_of(carrier)], [live("b"), there(carrier)]
    made = plan([document("b")], recorded, found)
    assert (made.prune, [str(refusal).startswith(says) for refusal in made.refused]) == ((), [True])
    allowed = plan([document("b")], recorded, found, allow_mass_delete=True)
    assert (names(allowed.prune), allowed.refused) == ([carrier["metadata"]["name"]], ())


def test_nothing_else_goes_while_a_namespace_is_held() -> None:
    recorded = [entry("a"), entry("b"), entry_of(NAMESPACE)]
    made = plan([document("b")], recorded, [live("a"), live("b"), there(NAMESPACE)])
    assert made.prune == ()
    assert [str(refusal) for refusal in made.refused][1:] == [
        "ConfigMap n/a: it stays while others of the same deletion are held"
    ]


def test_a_namespace_of_another_group_is_an_object_like_any() -> None:
    other = {**NAMESPACE, "apiVersion": "example.com/v1"}
    made = plan([document("b")], [entry("b"), entry_of(other)], [live("b"), there(other)])
    assert names(made.prune) == ["shop"]


def test_namespaces_and_definitions_come_first_and_go_last() -> None:
    kinds = [("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")]
    kinds += [
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("v1", "Namespace"),
        ("x.dev/v1", "X"),
    ]
    documents = [{"apiVersion": group, "kind": kind, "metadata": {"name": "a"}} for group, kind in kinds]
    order = ["Namespace", "CustomResourceDefinition", "ConfigMap", "Deployment", "X", "ValidatingWebhookConfiguration"]
    made = plan([labelled(document, "us") for document in documents], [], [])
    assert [step.entry.kind for step in made.applied] == order
    found = [{**d, "metadata": {"name": "a", "uid": d["kind"], "labels": {LABEL: "us"}}} for d in documents]
    made = plan([], [entry_of(document) for document in documents], found, allow_mass_delete=True)
    assert [step.entry.kind for step in made.pruned][-2:] == ["CustomResourceDefinition", "Namespace"]
    assert made.pruned[0].entry.kind == "ValidatingWebhookConfiguration"


def test_a_plan_shows_no_contents() -> None:
    made = plan([document("a", password="hunter2")], [], [])
    assert "hunter2" not in repr(made) + repr(made.create)


NAMES = [f"o{n}" for n in range(12)]
OBJECTS = st.builds(
    live,
    st.sampled_from(NAMES),
    label=st.sampled_from(["us", "us", "us", "others", None]),
    annotations=st.sampled_from([{}, {}, {PRUNE: "false"}]),
)


@given(
    st.sets(st.sampled_from(NAMES)),
    st.sets(st.sampled_from(NAMES)),
    st.lists(OBJECTS, unique_by=lambda found: found["metadata"]["name"]),
    st.booleans(),
    st.booleans(),
)
def test_everything_has_one_place_in_the_plan_and_nobody_loses_anything(
    declared: set[str], recorded: set[str], found: list[Document], adopt: bool, allow: bool
) -> None:
    made = plan(
        [document(name) for name in sorted(declared)],
        [entry(name) for name in sorted(recorded)],
        found,
        adopt=adopt,
        allow_mass_delete=allow,
    )
    placed = [*names(made.wanted), *names(made.prune), *names(made.refused), *names(made.forget)]
    assert sorted(placed) == sorted(declared | recorded)
    by_name = {one["metadata"]["name"]: one["metadata"] for one in found}
    for step in made.prune:
        metadata = by_name[step.entry.name]
        assert step.entry.name in recorded - declared
        assert metadata["labels"].get(LABEL) == "us"
        assert metadata["annotations"] == {}
    for step in made.change:
        label = by_name[step.entry.name]["labels"].get(LABEL)
        assert label == "us" or (adopt and label is None)
    if not allow:
        assert len(made.prune) <= max(5, len(recorded) * 30 // 100)
        assert declared or not made.prune


def test_an_identity_is_the_same_in_every_version() -> None:
    one = Entry(api_version="x.dev/v1", kind="X", name="a")
    assert one.identity == Entry(api_version="x.dev/v2", kind="X", name="a").identity == Identity("x.dev", "X", "", "a")
