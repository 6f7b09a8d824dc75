"""The merge of two sides that both moved on, case by case. Its laws are in test_merging_laws."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from trimtab.systems.gitops.merging import Base, FieldConflict, Merged, impose, merge, normal, same


def document(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "shop"}, "spec": spec}


def merged(base: Any, git: Any, system: Any, **options: Any) -> Merged:
    """A merge of one field."""
    was, ours, theirs = ({} if value is UNSET else {"x": value} for value in (base, git, system))
    return merge(Base.of(document(**was), document(**was)), document(**ours), document(**theirs), **options)


@pytest.mark.parametrize(
    ("base", "git", "system", "result"),
    [
        (1, 2, 1, 2),
        (1, 1, 2, 2),
        (1, 2, 2, 2),
        (1, 2, 2.0, 2),
        (1, UNSET, 1, UNSET),
        (1, 1, UNSET, UNSET),
        (1, UNSET, UNSET, UNSET),
        (UNSET, 1, UNSET, 1),
        (1, None, 1, UNSET),
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}),
        ({"a": 1, "b": 1}, {"b": 1}, {"a": 1, "b": 2}, {"b": 2}),
        (UNSET, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, {"a": {"b": 1}, "d": 3}, {"a": {"b": 1, "c": 2}, "d": 3}),
        ([1, 2], [1, 2, 3], [1, 2], [1, 2, 3]),
        (
            [{"name": "a", "v": 1}, {"name": "b", "v": 1}],
            [{"name": "a", "v": 2}, {"name": "b", "v": 1}],
            [{"name": "a", "v": 1}, {"name": "b", "v": 3}, {"name": "c"}],
            [{"name": "a", "v": 2}, {"name": "b", "v": 3}, {"name": "c"}],
        ),
        (
            [{"name": "a"}, {"name": "b"}],
            [{"name": "n"}, {"name": "a"}, {"name": "b"}],
            [{"name": "a"}, {"name": "m"}],
            [{"name": "n"}, {"name": "a"}, {"name": "m"}],
        ),
        (
            [{"name": "a"}, {"name": "b"}],
            [{"name": "b"}, {"name": "a"}],
            [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            [{"name": "b"}, {"name": "c"}, {"name": "a"}],
        ),
        (
            [{"key": "a", "v": 1}],
            [{"key": "a", "v": 2}],
            [{"key": "a", "v": 1}, {"key": "b"}],
            [{"key": "a", "v": 2}, {"key": "b"}],
        ),
    ],
)
def test_changes_of_both_sides_come_together(base: Any, git: Any, system: Any, result: Any) -> None:
    found = merged(base, git, system)
    assert found.conflicts == ()
    assert found.git is not None
    assert same(found.git["spec"], {} if result is UNSET else {"x": result})
    assert same(found.git, found.system)


@pytest.mark.parametrize(
    ("base", "git", "system", "paths"),
    [
        (1, 2, 3, ["spec.x"]),
        (1, UNSET, 2, ["spec.x"]),
        (1, 2, UNSET, ["spec.x"]),
        (UNSET, 1, 2, ["spec.x"]),
        (1, "1", 1.5, ["spec.x"]),
        (0, False, 1, ["spec.x"]),
        ({"a": 1}, {"a": 2}, 5, ["spec.x"]),
        ({"a": 1}, UNSET, {"a": 2}, ["spec.x"]),
        ({"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 3}, ["spec.x.a", "spec.x.b"]),
        ({"a.b/c": 1}, {"a.b/c": 2}, {"a.b/c": 3}, ['spec.x["a.b/c"]']),
        ([1], [1, 2], [1, 3], ["spec.x"]),
        ([{"name": "a", "v": 1}], [{"name": "a", "v": 2}], [{"name": "a", "v": 3}], ["spec.x[name=a].v"]),
        ([{"name": "a", "v": 1}], [], [{"name": "a", "v": 3}], ["spec.x[name=a]"]),
        ([{"name": "a"}, {"name": "a"}], [{"name": "a", "v": 1}], [{"name": "b"}], ["spec.x"]),
        (
            [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            [{"name": "b"}, {"name": "a"}, {"name": "c"}],
            [{"name": "c"}, {"name": "a"}, {"name": "b"}],
            ["spec.x"],
        ),
    ],
)
def test_what_both_changed_differently_is_a_conflict_with_its_path(
    base: Any, git: Any, system: Any, paths: list[str]
) -> None:
    found = merged(base, git, system)
    assert [conflict.path for conflict in found.conflicts] == paths
    assert (found.to_git, found.to_system) == (False, False)
    wins = merged(base, git, system, policy="git")
    loses = merged(base, git, system, policy="system")
    assert (wins.to_git, wins.to_system) == (False, True)
    assert (loses.to_git, loses.to_system) == (True, False)
    assert [conflict.path for conflict in wins.resolved] == paths


def test_a_conflict_says_what_was_and_what_is() -> None:
    assert merged(1, 2, UNSET).conflicts == (FieldConflict("spec.x", 1, 2, UNSET),)


def test_defaults_of_the_server_do_not_come_to_git() -> None:
    git, live = document(image="a"), document(image="a", pull="Always", probe={"period": 10})
    base = Base.of(git, live)
    assert merge(base, git, live) == Merged(normal(git), normal(live))
    changed = merge(base, document(image="b"), live)
    assert changed.git == document(image="b")
    assert changed.system == document(image="b", pull="Always", probe={"period": 10})
    # one of the defaults, changed by somebody: only that comes
    probing = document(image="a", pull="Always", probe={"period": 20, "path": "/"})
    written = merge(base, git, probing)
    assert written.git == document(image="a", probe={"period": 20, "path": "/"})
    assert (written.to_git, written.to_system) == (True, False)


def test_a_sidecar_that_the_system_added_stays_there() -> None:
    git = document(containers=[{"name": "web", "image": "a"}])
    live = document(containers=[{"name": "web", "image": "a", "pull": "Always"}, {"name": "side"}])
    base = Base.of(git, live)
    found = merge(base, document(containers=[{"name": "web", "image": "b"}]), live)
    assert found.git == document(containers=[{"name": "web", "image": "b"}])
    assert found.system == document(containers=[{"name": "web", "image": "b", "pull": "Always"}, {"name": "side"}])


def test_a_hint_says_what_names_the_items_of_a_list() -> None:
    one, two = {"port": "80", "v": 1}, {"port": "81", "v": 1}
    arguments = ([one, two], [{**one, "v": 2}, two], [one, {**two, "v": 2}])
    assert merged(*arguments).conflicts
    found = merged(*arguments, keys=lambda path: ["port"] if path == "spec.x" else None)
    assert not found.conflicts
    named = [{"name": "a", "v": 1}], [{"name": "a", "v": 2}], [{"name": "a", "v": 1}, {"name": "b"}]
    assert merged(*named, keys=lambda path: ()).conflicts[0].path == "spec.x"


def test_fields_that_are_ignored_stay_on_both_sides() -> None:
    found = merged(1, 2, 3, ignored=lambda path: path == "spec.x")
    assert (found.conflicts, found.to_git, found.to_system) == ((), False, False)


@pytest.mark.parametrize(
    ("base", "git", "live", "result"),
    [
        (document(), None, document(), "to_system"),
        (document(), document(), None, "to_git"),
        (document(), None, document(a=1), "conflict"),
        (document(), document(a=1), None, "conflict"),
        (None, document(), None, "to_system"),
        (None, None, document(), "to_git"),
        (document(), None, None, ""),
    ],
)
def test_a_document_that_one_side_does_not_have(base: Any, git: Any, live: Any, result: str) -> None:
    found = merge(Base.of(base, base), git, live)
    assert found.to_system is (result == "to_system")
    assert found.to_git is (result == "to_git")
    assert [conflict.path for conflict in found.conflicts] == ([""] if result == "conflict" else [])
    for policy in ("git", "system"):
        decided = merge(Base.of(base, base), git, live, policy=policy)
        assert not decided.conflicts
        assert decided.git == decided.system


def test_what_the_server_says_of_every_object_does_not_count() -> None:
    noisy = {
        **document(a=1, gone=None),
        "status": {"ready": True},
        "metadata": {
            "name": "a",
            "project": "shop",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "creationTimestamp": None,
            "managedFields": [{}],
            "ownerReferences": [{}],
            "finalizers": ["x"],
            "annotations": {"hub.trimtab.dev/lineage": "l", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
    }
    assert normal(noisy) == document(a=1)


def test_what_a_secret_says_as_text_is_the_same_field_as_its_data() -> None:
    def secret(**fields: Any) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **fields}

    base = Base.of(secret(stringData={"p": "1"}), secret(data={"p": "MQ=="}))
    found = merge(base, secret(stringData={"p": "2"}), secret(data={"p": "Mw=="}))
    assert [conflict.path for conflict in found.conflicts] == ["data.p"]
    found = merge(base, secret(stringData={"p": "1"}), secret(data={"p": "MQ=="}))
    assert (found.conflicts, found.to_git, found.to_system) == ((), False, False)
    assert normal(secret(data={"p": "MQ==", "q": "MQ=="}, stringData={"p": "2"}))["data"] == {"p": "Mg==", "q": "MQ=="}
    assert normal(secret(stringData={"p": 1}))["stringData"] == {"p": 1}  # the server says what is wrong with it
    other = {"apiVersion": "x.example.com/v1", "kind": "Secret", "stringData": {"p": "1"}}
    assert normal(other) == other


def test_one_way_drift_is_put_right_and_what_git_never_said_stays() -> None:
    git = document(image="a", env=[{"name": "x", "value": "1"}])
    live = document(image="a", env=[{"name": "x", "value": "1"}], pull="Always")
    base = Base.of(git, live)
    drifted = document(image="z", env=[{"name": "y"}, {"name": "x", "value": "2"}], pull="Never", more=1)
    found = impose(base, git, drifted)
    assert found.system == document(image="a", env=[{"name": "y"}, {"name": "x", "value": "1"}], pull="Never", more=1)
    assert found.to_system
    assert not found.to_git
    shorter = impose(base, document(image="a"), live)
    assert shorter.system == document(image="a", pull="Always")


def test_what_the_server_writes_otherwise_is_no_drift() -> None:
    git, live = document(cpu="1000m", protocols=["tcp"]), document(cpu="1", protocols=["TCP"])
    base = Base.of(git, live)
    assert not impose(base, git, live).to_system
    assert not merge(base, git, live).to_git
    assert impose(base, git, document(cpu="2", protocols=["TCP"])).system == document(cpu="1000m", protocols=["TCP"])


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        ({"a": [1, {"b": "c"}]}, {"a": [1.0, {"b": "c"}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 0.0}, {"a": -0.0}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": None}, {}, False),
    ],
)
def test_values_are_the_same_when_they_say_the_same(one: Any, other: Any, are: bool) -> None:
    assert same(one, other) is are
    assert same(other, one) is are
