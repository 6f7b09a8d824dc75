"""What a restore finds of a resource of the hub, by tables."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.cli.restore_hub_plan import stages, verdict
from trimtab.cli.restore_plan import LINEAGE, RESTORING, Act, Name, Verdict, name_of, ordered, plan, to_write
from trimtab.hub.offline import Kept, Version
from trimtab.model.hub import MADE_FOR

HUB, INFRA = "hub.trimtab.dev/v3", "infra.trimtab.dev/v3"
ONE, TWO = {"version": "v1", "a": 1}, {"version": "v2", "a": 2}


def document(kind: str = "Addon", name: str = "a", api: str = INFRA, **more: Any) -> dict[str, Any]:
    namespace = {} if kind in ("Project", "Namespace") else {"namespace": "shop"}
    metadata = {"name": name, **namespace, "uid": f"old-{name}", **more.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


KEPT = Kept(document=document(spec=TWO), versions=(Version("v1", ONE), Version("v2", TWO)))


@pytest.mark.parametrize(
    ("present", "published", "act", "settled"),
    [
        (None, {}, Act.CREATE, False),
        (TWO, {"v1": ONE, "v2": TWO}, Act.SAME, False),
        (TWO, {"v1": {**ONE, "sharing": {"enabled": True}}, "v2": TWO}, Act.SAME, False),
        (ONE, {"v1": ONE}, Act.CONFLICT, False),
        (TWO, {"v1": ONE}, Act.CONFLICT, False),
        ({"a": 3}, {"v1": ONE, "v2": TWO, "v3": {}}, Act.CONFLICT, False),
        (ONE, {"v1": {**ONE, "a": 9}}, Act.CONFLICT, True),
        (TWO, {"v2": TWO}, Act.CONFLICT, True),
        (ONE, {"v1": ONE, "v3": {}}, Act.CONFLICT, True),
    ],
)
def test_what_the_server_has_decides(present: Any, published: Any, act: Act, settled: bool) -> None:
    live = None if present is None else document(spec=present)
    found = verdict(KEPT, live, published, {})
    assert (found.act, found.settled) == (act, settled)


def test_a_resource_that_is_marked_is_gone_on_with() -> None:
    marked = document(spec={"a": 1}, metadata={"annotations": {RESTORING: "old-a"}})
    assert verdict(KEPT, marked, {"v1": ONE}, {}).act is Act.CREATE
    other = document(spec={"a": 1}, metadata={"annotations": {RESTORING: "of another archive"}})
    assert verdict(KEPT, other, {"v1": ONE}, {}).act is Act.CONFLICT


def test_files_that_are_not_there_matter_only_where_they_are_needed() -> None:
    missing = {"sha256:0": "web.yaml"}
    assert verdict(KEPT, None, {}, missing).act is Act.LOST
    assert verdict(KEPT, document(spec=TWO), {"v1": ONE, "v2": TWO}, missing).act is Act.SAME


def test_versions_come_before_the_spec_that_it_is_left_with() -> None:
    assert stages(KEPT, {}) == [ONE, TWO]
    assert stages(KEPT, {"v1": ONE}) == [TWO]
    drafted = Kept(document=document(spec={"a": 3}), versions=KEPT.versions)
    assert stages(drafted, {}) == [ONE, TWO, {"a": 3}]
    back = Kept(document=document(spec=ONE), versions=KEPT.versions)
    assert stages(back, {}) == [ONE, TWO, ONE]


def test_what_others_need_comes_first_and_clusters_last() -> None:
    made = {"annotations": {MADE_FOR: "old-shop"}}
    hub = [document("Cluster"), document("Workload"), document("Addon"), document("GitSync", api=HUB)]
    hub.append(document("Project", "shop", HUB))
    rest = [
        document("Namespace", "shop", "v1", metadata=made),
        document("Secret", api="v1"),
        document("Namespace", "b", "v1"),
    ]
    documents = {name_of(each): each for each in (*hub, *rest)}
    by_uid = {each["metadata"]["uid"]: name for name, each in documents.items()}
    order = [f"{name.kind} {name.name}" for name in ordered(documents, by_uid, {name_of(each) for each in hub})]
    assert order[:3] == ["Namespace b", "Project shop", "Namespace shop"]
    assert order[3:] == ["Secret a", "GitSync a", "Addon a", "Workload a", "Cluster a"]


def test_the_archive_wins_only_where_it_can() -> None:
    documents = [document(), document(name="b"), document("Project", "shop", HUB)]
    found = {
        name_of(documents[0]): Verdict(Act.CONFLICT, "spec"),
        name_of(documents[1]): Verdict(Act.CONFLICT, "v1", settled=True),
        name_of(documents[2]): Verdict(Act.SAME),
    }
    known = {(INFRA, "Addon"), (HUB, "Project")}
    steps = plan(documents, {}, known=known, overwrite=True, hub=found)
    assert [step.act for step in steps] == [Act.SAME, Act.OVERWRITE, Act.CONFLICT]


def test_a_resource_without_its_project_is_left_out() -> None:
    name = name_of(document())
    known = {(INFRA, "Addon"), (HUB, "Project")}
    [step] = plan([document()], {}, known=known, overwrite=False, hub={name: Verdict(Act.CREATE)})
    assert (step.act, step.why) == (Act.LEAVE, "the project shop is not there")
    live = {Name(HUB, "Project", "", "shop"): document("Project", "shop", HUB)}
    [step] = plan([document()], live, known=known, overwrite=False, hub={name: Verdict(Act.CREATE)})
    assert step.act is Act.CREATE
    [step] = plan([document()], {}, known={(INFRA, "Addon")}, overwrite=False, hub={name: Verdict(Act.CREATE)})
    assert step.act is Act.CREATE, "a server that does not tell its projects may have it"


def test_uids_in_annotations_are_those_of_the_server() -> None:
    given = {LINEAGE: "shop/desk@old", MADE_FOR: "gone", RESTORING: "x", "note": "mine"}
    sent = to_write(document(metadata={"annotations": given}), {"old": "new"})
    assert sent["metadata"]["annotations"] == {LINEAGE: "shop/desk@new", "note": "mine"}
