"""What stands on something comes after it, and what waits for each other is told."""

from __future__ import annotations

import time
from typing import Any

import pytest

from trimtab.systems.gitops.ordering import DEPENDS_ON, Ordering, cycles, order
from trimtab.systems.gitops.parsing import Identity

Item = tuple[Identity, dict[str, Any]]


def item(kind: str, name: str, group: str = "", namespace: str = "shop", needs: str = "", refs: str = "") -> Item:
    metadata: dict[str, Any] = {"name": name, "annotations": {DEPENDS_ON: needs}} if needs else {"name": name}
    return Identity(group, kind, namespace, name), {"metadata": metadata, "refs": refs.split()}


def references(own: Identity, document: dict[str, Any]) -> list[Identity]:
    return [Identity("g", "Thing", own.namespace, name) for name in document["refs"]]


def names(found: Ordering) -> list[list[str]]:
    return [[identity.name for identity in wave] for wave in found.waves]


@pytest.mark.row(48)
def test_kinds_that_others_stand_on_come_first() -> None:
    found = order(
        [
            item("Deployment", "deployment", "apps"),
            item("Secret", "secret"),
            item("MutatingWebhookConfiguration", "webhook", "admissionregistration.k8s.io", ""),
            item("CustomResourceDefinition", "crd", "apiextensions.k8s.io", ""),
            item("Project", "project", "hub.trimtab.dev", ""),
            item("Namespace", "namespace", namespace=""),
            item("ServiceAccount", "account"),
            item("RoleBinding", "binding", "rbac.authorization.k8s.io"),
        ]
    )
    assert names(found) == [
        ["namespace", "crd", "project"],
        ["secret", "account"],
        ["binding"],
        ["deployment"],
        ["webhook"],
    ]


@pytest.mark.row(48)
def test_a_document_comes_after_what_it_refers_to() -> None:
    things = [
        item("Thing", "top", "g", refs="middle low"),
        item("Thing", "low", "g"),
        item("Thing", "middle", "g", refs="low elsewhere"),
        item("Thing", "alone", "g"),
    ]
    assert names(order(things, references)) == [["alone", "low"], ["middle"], ["top"]]


def test_an_annotation_says_what_comes_first() -> None:
    found = order(
        [
            item("ConfigMap", "config", needs="Job/migrate, other/Job/nothing, nonsense"),
            item("Job", "migrate", "batch"),
            item("Job", "migrate", "batch", "bank"),
        ]
    )
    assert [[str(i) for i in wave] for wave in found.waves] == [
        ["batch/Job shop/migrate"],
        ["ConfigMap shop/config"],
        ["batch/Job bank/migrate"],
    ]
    assert not found.cycles


def test_a_reference_goes_before_what_is_known_of_kinds() -> None:
    found = order([item("Namespace", "late", namespace="", needs="g/Thing/early"), item("Thing", "early", "g", "")])
    assert names(found) == [["early"], ["late"]]


def test_a_cycle_is_told_and_applied_together() -> None:
    things = [
        item("Thing", "a", "g", refs="b"),
        item("Thing", "b", "g", refs="c"),
        item("Thing", "c", "g", refs="a base"),
        item("Thing", "base", "g"),
        item("Thing", "after", "g", refs="a"),
        item("Thing", "self", "g", refs="self"),
    ]
    found = order(things, references)
    assert names(found) == [["base", "self"], ["a", "b", "c"], ["after"]]
    assert [[identity.name for identity in cycle] for cycle in found.cycles] == [["a", "b", "c"]]


def test_a_cycle_is_found_from_any_that_is_in_it_and_from_no_other() -> None:
    things = dict(
        [
            item("Thing", "a", "g", refs="b"),
            item("Job", "b", "batch", needs="Thing/a"),
            item("Thing", "b", "g", needs="Job/b"),
            item("Thing", "before", "g", refs="a"),
            item("Thing", "alone", "g", refs="alone gone"),
        ]
    )
    circle = (("batch", "b"), ("g", "a"), ("g", "b"))

    def found(*changed: str) -> list[tuple[tuple[str, str], ...]]:
        new = [identity for identity in things if identity.name in changed]
        return [tuple((one.group, one.name) for one in cycle) for cycle in cycles(new, things, references)]

    assert found("a") == found("b") == found("a", "before", "alone") == [circle]
    assert found("before", "alone") == found() == []


def test_the_order_does_not_depend_on_the_order() -> None:
    things = [item("Thing", f"t{n}", "g", refs=f"t{n // 2}") for n in range(1, 50)]
    assert order(things, references) == order(reversed(things), references)


def test_nothing_is_in_no_wave() -> None:
    assert order([]) == Ordering()


def test_a_long_chain_is_no_trouble() -> None:
    begun = time.process_time()
    found = order([item("Thing", f"t{n:05}", "g", refs=f"t{n - 1:05}") for n in range(5000)], references)
    assert len(found.waves) == 5000
    assert time.process_time() - begun < 2
