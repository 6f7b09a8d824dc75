"""What is sensitive in a Cluster is in no file of Git that we write, in no difference and in no conflict."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trimtab.cli.git_plan import differences
from trimtab.cli.kinds import scheme
from trimtab.model.hub import HubMeta
from trimtab.systems.gitops.conflicts import shown, spec_of
from trimtab.systems.gitops.exporting import hidden
from trimtab.systems.gitops.hiding import for_git, for_people, is_hidden
from trimtab.systems.gitops.kinds import GitSync, GitSyncSpec
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.merging import Base, FieldConflict
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import Action, Conflict, FileEdit, Plan, Step

EDGE = Identity("infra.trimtab.dev", "Cluster", "shop", "edge")


def cluster(one: str, two: str, all_: str, proxy: str, version: str = "v1.31.4") -> dict[str, Any]:
    nodes = {"a": {"hostname": "a", "ssh": {"passphrase": one}}, "b": {"hostname": "b", "ssh": {"passphrase": two}}}
    mks = {"kubernetesVersion": version, "nodes": nodes, "clusterSsh": {"passphrase": all_, "username": "root"}}
    return {
        "apiVersion": "infra.trimtab.dev/v3",
        "kind": "Cluster",
        "metadata": {"name": "edge", "namespace": "shop"},
        "spec": {"config": {"mks": mks}, "proxy": {"enabled": True, "httpProxy": "http://p", "proxyAuth": proxy}},
    }


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(scheme())


def test_the_secrets_of_a_cluster_are_known(knowledge: Knowledge) -> None:
    assert set(knowledge.sensitive("infra.trimtab.dev/v3", "Cluster")) == {
        ("spec", "config", "mks", "nodes", "*", "ssh", "passphrase"),
        ("spec", "config", "mks", "clusterSsh", "passphrase"),
        ("spec", "proxy", "proxyAuth"),
    }


def test_a_new_file_has_none_of_them(knowledge: Knowledge) -> None:
    made = hidden(FileEdit(EDGE, "create", "edge.yaml", document=cluster(*["hunter2"] * 4)), knowledge)
    assert made.document is not None
    assert "hunter2" not in str(made.document)
    assert made.document["spec"]["config"]["mks"]["nodes"]["a"] == {"hostname": "a", "ssh": {}}


def test_those_in_git_stay_whatever_the_system_has(knowledge: Knowledge) -> None:
    before = cluster("1", "2", "3", "4")
    after = cluster(*["hunter2"] * 4, version="v1.32.0")
    edit = FileEdit(EDGE, "update", "edge.yaml", before=before, document=after)
    assert hidden(edit, knowledge).document == cluster("1", "2", "3", "4", version="v1.32.0")
    del (
        after["spec"]["config"]["mks"]["nodes"]["b"],
        after["spec"]["proxy"],
    )  # what is gone around them is gone with them
    after["spec"]["config"]["mks"]["nodes"]["c"] = {"hostname": "c", "ssh": {"passphrase": "hunter2"}}
    document = hidden(edit, knowledge).document
    assert document is not None
    assert document["spec"].keys() == {"config"}
    assert document["spec"]["config"]["mks"]["nodes"] == {
        "a": {"hostname": "a", "ssh": {"passphrase": "1"}},
        "c": {"hostname": "c", "ssh": {}},
    }


def test_a_difference_tells_that_they_differ_and_not_what_they_are(knowledge: Knowledge) -> None:
    old, new = (
        cluster("hush-1", "hush-2", "hush-3", "hush-4"),
        cluster("hush-1", "hush-5", "hush-3", "hush-4", "v1.32.0"),
    )
    plan = Plan(
        create=(Step(EDGE, Action.CREATE, document=new),),
        update=(Step(EDGE, Action.UPDATE, document=new, live=old),),
        prune=(Step(EDGE, Action.PRUNE, live=old),),
        write_back=(
            FileEdit(EDGE, "update", "edge.yaml", before=old, document=new),
            FileEdit(EDGE, "delete", "edge.yaml", before=old),
        ),
    )
    for one in (plan, *(Plan(**{name: getattr(plan, name)}) for name in ("create", "prune", "write_back"))):
        said = "\n".join(differences(one, knowledge))
        assert "hush" not in said
        assert "passphrase: (not shown)" in said
    said = "\n".join(differences(Plan(update=plan.update), knowledge))
    assert [line for line in said.splitlines() if line.startswith("+") and "not shown" in line] == [
        "+            passphrase: (not shown; it is another one)"
    ]
    assert "+      kubernetesVersion: v1.32.0" in said


def test_a_secret_that_goes_from_git_is_only_named(knowledge: Knowledge) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hush"}}
    edit = FileEdit(Identity("", "Secret", "shop", "s"), "delete", "s.yaml", before=secret)
    assert list(differences(Plan(write_back=(edit,)), knowledge)) == ["~ s.yaml in Git (a Secret is not shown)"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "spec",
        "spec.proxy",
        "spec.proxy.proxyAuth",
        "spec.config.mks.nodes.b",
        "spec.config.mks.nodes.b.ssh.passphrase",
    ],
)
def test_a_conflict_names_them_without_their_values(knowledge: Knowledge, path: str) -> None:
    sync = GitSync(metadata=HubMeta(name="fleet", namespace="shop"), spec=GitSyncSpec(repository="team"))
    found = (FieldConflict(path, "hush", "hush", "hush"), FieldConflict("spec.proxy2", "1", "2", "3"))
    document = cluster(*["hush"] * 4)
    conflict = Conflict(EDGE, "edge.yaml", found, Base.of(document, document), document, document)
    spec = spec_of(sync, shown(conflict, knowledge), "")
    assert "hush" not in str(spec)
    assert (spec.fields[0].path, spec.fields[1].git) == (path or ".", '"2"')


def test_items_of_lists_are_known_by_their_names() -> None:
    paths = [("users", "*", "password"), ("keys", "*"), ("plain", "*", "no")]
    live = {"users": [{"name": "b", "password": "x"}, {"password": "y"}, {"name": "c", "password": "z"}], "keys": ["k"]}
    kept = copy.deepcopy(live)
    before = {
        "users": [{"name": "a", "password": "1"}, {"name": "b", "password": "2"}, {"password": "3"}],
        "keys": ["h"],
    }
    assert for_git(live, before, paths) == {
        "users": [{"name": "b", "password": "2"}, {}, {"name": "c"}],
        "keys": ["h"],
    }
    assert for_git(live, None, paths) == {"users": [{"name": "b"}, {}, {"name": "c"}]}
    assert for_git({"users": "odd", "other": 1}, before, paths) == {"users": "odd", "other": 1, "keys": ["h"]}
    old, new = for_people(before, live, paths)
    assert old["keys"] == "(not shown)"
    assert [user.get("password") for user in new["users"]] == ["(not shown; it is another one)", *["(not shown)"] * 2]
    assert live == kept


@pytest.mark.parametrize(
    ("field", "is_so"),
    [
        ("spec.proxy.proxyAuth", True),
        ("spec.proxy", True),
        ("spec", True),
        ("spec.config.mks.nodes[0].ssh.passphrase", True),
        ("spec.config.mks.nodes[0].arch", False),
        ("spec.blueprint.name", False),
    ],
)
def test_a_message_about_a_field_shows_its_value_unless_something_in_it_is_sensitive(field: str, is_so: bool) -> None:
    assert is_hidden(field, Knowledge(scheme()).secret("infra.trimtab.dev/v3", "Cluster")) is is_so
