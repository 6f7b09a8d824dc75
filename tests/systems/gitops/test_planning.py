"""What a sync would do, in all the ways in which Git, the system and the last sync may differ."""

from __future__ import annotations

import copy
import gc
import time
from typing import Any

import msgspec
import pytest

from trimtab.systems.gitops.inventory import Entry
from trimtab.systems.gitops.merging import Base
from trimtab.systems.gitops.parsing import Identity, Parsed, Problem, SourceDocument, digest_of, identity_of, selection
from trimtab.systems.gitops.planning import PRUNE, Options, Plan, plan, summary, told

BOTH = Options(system_to_git=True)
TO_GIT = Options(git_to_system=False, system_to_git=True)
ONE_WAY = Options()
NO_WAY = Options(git_to_system=False)


def thing(name: str = "a", replicas: int = 1, kind: str = "Thing", **more: Any) -> dict[str, Any]:
    document = {"apiVersion": "g/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}}
    return {**document, "spec": {"replicas": replicas, **more}}


def lived(document: dict[str, Any], **more: Any) -> dict[str, Any]:
    """As the server has it: with its metadata, its status and its defaults."""
    found = copy.deepcopy(document)
    found["metadata"] |= {"uid": f"uid-{document['metadata']['name']}", "resourceVersion": "7", "generation": 1}
    found["spec"] = {"strategy": "default", **found["spec"], **more}
    found["status"] = {"ready": True}
    return found


def parsed(*documents: dict[str, Any], problems: tuple[Problem, ...] = ()) -> Parsed:
    sources = tuple(
        SourceDocument(f"{d['metadata']['name']}.yaml", 0, 1, d, identity_of(d), digest_of(d)) for d in documents
    )
    return Parsed(sources, problems, (), len(sources))


def live(*documents: dict[str, Any]) -> dict[Identity, dict[str, Any]]:
    return {identity_of(d): d for d in documents}


def known(*documents: dict[str, Any], uid: str | None = None) -> dict[Identity, Entry]:
    """The inventory after a sync of these."""
    found = {}
    for d in documents:
        identity = identity_of(d)
        found[identity] = Entry(
            identity,
            d["apiVersion"],
            uid if uid is not None else f"uid-{identity.name}",
            f"{identity.name}.yaml",
            0,
            digest_of(d),
            Base.of(d, lived(d)),
        )
    return found


def acts(found: Plan) -> dict[str, list[str]]:
    """What of a plan is not empty, by the names of the documents."""
    names: dict[str, list[str]] = {}
    for field in found.__struct_fields__:
        for step in getattr(found, field):
            name = step.identity.name if hasattr(step, "identity") else step.reason
            if field == "write_back":
                name = f"{step.action} {name}"
            names.setdefault(field, []).append(name)
    return names


def entry_of(document: dict[str, Any], **changes: Any) -> dict[Identity, Entry]:
    return {i: msgspec.structs.replace(e, **changes) for i, e in known(document).items()}


@pytest.mark.row(48)
@pytest.mark.parametrize(
    ("git", "system", "synced", "options", "expected"),
    [
        pytest.param([thing()], [], {}, ONE_WAY, {"create": ["a"]}, id="new in Git"),
        pytest.param([thing()], [], {}, BOTH, {"create": ["a"]}, id="new in Git, both ways"),
        pytest.param([thing()], [], {}, TO_GIT, {}, id="new in Git, which does not go to the system"),
        pytest.param([thing()], [lived(thing())], known(thing()), ONE_WAY, {"unchanged": ["a"]}, id="the same"),
        pytest.param([thing()], [lived(thing())], known(thing()), BOTH, {"unchanged": ["a"]}, id="the same, both ways"),
        pytest.param(
            [thing(replicas=2)], [lived(thing())], known(thing()), ONE_WAY, {"update": ["a"]}, id="Git changed"
        ),
        pytest.param(
            [thing(replicas=2)], [lived(thing())], known(thing()), BOTH, {"update": ["a"]}, id="Git changed, both"
        ),
        pytest.param(
            [thing()], [lived(thing(), replicas=3)], known(thing()), ONE_WAY, {"update": ["a"]}, id="drift is put right"
        ),
        pytest.param(
            [thing()],
            [lived(thing(), strategy="other", own=1)],
            known(thing()),
            ONE_WAY,
            {"unchanged": ["a"]},
            id="what Git does not say is the system's",
        ),
        pytest.param(
            [thing()],
            [lived(thing(), replicas=3)],
            known(thing()),
            BOTH,
            {"write_back": ["update a"]},
            id="the system changed",
        ),
        pytest.param(
            [thing(image="x")],
            [lived(thing(), replicas=3)],
            known(thing()),
            BOTH,
            {"write_back": ["update a"], "update": ["a"]},
            id="both changed other fields",
        ),
        pytest.param(
            [thing(replicas=2)],
            [lived(thing(), replicas=3)],
            known(thing()),
            BOTH,
            {"conflicts": ["a"]},
            id="a conflict",
        ),
        pytest.param(
            [thing(replicas=2)],
            [lived(thing(), replicas=3)],
            known(thing()),
            Options(system_to_git=True, policy="git"),
            {"update": ["a"]},
            id="Git wins",
        ),
        pytest.param(
            [thing(replicas=2)],
            [lived(thing(), replicas=3)],
            known(thing()),
            Options(system_to_git=True, policy="system"),
            {"write_back": ["update a"]},
            id="the system wins",
        ),
        pytest.param(
            [thing(replicas=2)],
            [lived(thing(), replicas=3)],
            known(thing()),
            TO_GIT,
            {"write_back": ["update a"]},
            id="the only source wins",
        ),
        pytest.param(
            [thing(replicas=2)],
            [lived(thing(), replicas=2)],
            known(thing()),
            BOTH,
            {"unchanged": ["a"]},
            id="the same change",
        ),
        pytest.param([thing()], [], known(thing()), ONE_WAY, {"create": ["a"]}, id="deleted in the system, one way"),
        pytest.param([thing()], [], known(thing()), BOTH, {"write_back": ["delete a"]}, id="deleted in the system"),
        pytest.param([thing()], [], known(thing()), TO_GIT, {"write_back": ["delete a"]}, id="deleted, to Git only"),
        pytest.param(
            [thing()], [], entry_of(thing(), uid="", base=Base()), BOTH, {"create": ["a"]}, id="a create cut off"
        ),
        pytest.param(
            [thing()],
            [lived(thing())],
            entry_of(thing(), uid="", base=Base(), digest=""),
            ONE_WAY,
            {"adopt": ["a"]},
            id="a create cut off after it was done",
        ),
        pytest.param(
            [thing(replicas=2)],
            [],
            known(thing()),
            BOTH,
            {"conflicts": ["a"]},
            id="deleted in the system, changed in Git",
        ),
        pytest.param(
            [thing(replicas=2)],
            [],
            known(thing()),
            Options(system_to_git=True, policy="git"),
            {"create": ["a"]},
            id="deleted in the system, changed in Git, which wins",
        ),
        pytest.param([thing()], [lived(thing())], {}, ONE_WAY, {"adopt": ["a"]}, id="exists already"),
        pytest.param([thing()], [lived(thing())], {}, BOTH, {"adopt": ["a"]}, id="exists already, both ways"),
        pytest.param(
            [thing(replicas=2)], [lived(thing())], {}, ONE_WAY, {"adopt": ["a"]}, id="exists otherwise, one way"
        ),
        pytest.param(
            [thing(replicas=2)], [lived(thing())], {}, BOTH, {"conflicts": ["a"]}, id="exists otherwise, both ways"
        ),
        pytest.param([], [lived(thing())], {}, ONE_WAY, {}, id="never ours"),
        pytest.param([], [lived(thing())], {}, BOTH, {"write_back": ["create a"]}, id="new in the system"),
        pytest.param(
            [thing("b")], [lived(thing())], known(thing()), ONE_WAY, {"create": ["b"], "prune": ["a"]}, id="gone"
        ),
        pytest.param(
            [thing("b")],
            [lived(thing(), replicas=3)],
            known(thing()),
            ONE_WAY,
            {"create": ["b"], "prune": ["a"]},
            id="gone from Git and changed, one way",
        ),
        pytest.param(
            [thing("b")],
            [lived(thing(), replicas=3)],
            known(thing()),
            BOTH,
            {"create": ["b"], "conflicts": ["a"]},
            id="gone from Git and changed",
        ),
        pytest.param(
            [thing("b")],
            [lived(thing(), replicas=3)],
            known(thing()),
            Options(system_to_git=True, policy="system"),
            {"create": ["b"], "write_back": ["create a"]},
            id="gone from Git and changed in the system, which wins",
        ),
        pytest.param([thing("b")], [], known(thing()), BOTH, {"create": ["b"], "forget": ["a"]}, id="gone everywhere"),
        pytest.param(
            [thing("b")],
            [lived(thing())],
            entry_of(thing(), digest=""),
            BOTH,
            {"create": ["b"], "forget": ["a"]},
            id="gone from Git, where nobody ever saw it",
        ),
        pytest.param(
            [thing("b")],
            [lived(thing())],
            known(thing()),
            Options(prune=False),
            {"create": ["b"], "keep": ["a"]},
            id="prune is off",
        ),
        pytest.param(
            [thing("b")],
            [lived(thing())],
            known(thing()),
            TO_GIT,
            {"write_back": ["create a"]},
            id="gone from Git, which is not the source",
        ),
        pytest.param(
            [thing(replicas=2, image="x")],
            [lived(thing())],
            known(thing()),
            TO_GIT,
            {"write_back": ["update a"]},
            id="Git changed, which is not the source",
        ),
        pytest.param(
            [thing(image="x")],
            [lived(thing())],
            {},
            TO_GIT,
            {"write_back": ["update a"]},
            id="exists, and Git says more, which is not the source",
        ),
        pytest.param([thing()], [lived(thing())], {}, TO_GIT, {"unchanged": ["a"]}, id="exists already, to Git only"),
        pytest.param(
            [thing("b")],
            [lived(thing())],
            known(thing(), uid="another"),
            ONE_WAY,
            {"create": ["b"], "forget": ["a"]},
            id="another object of its name",
        ),
        pytest.param(
            [thing("b")],
            [lived(thing())],
            entry_of(thing(), uid=""),
            ONE_WAY,
            {"create": ["b"], "forget": ["a"]},
            id="perhaps not ours",
        ),
        pytest.param(
            [thing("b")],
            [lived(thing())],
            known(thing()),
            Options(selection=selection([], ["Thing/a"])),
            {"create": ["b"], "forget": ["a"]},
            id="not selected any more",
        ),
        pytest.param([thing()], [], {}, Options(selection=selection(["Other"])), {}, id="not selected"),
        pytest.param(
            [thing(replicas=2)], [lived(thing())], known(thing()), NO_WAY, {"keep": ["a"]}, id="Git changed, no way"
        ),
        pytest.param([thing()], [lived(thing())], {}, NO_WAY, {"keep": ["a"]}, id="exists already, no way"),
        pytest.param([thing()], [], known(thing()), NO_WAY, {}, id="deleted in the system, no way"),
        pytest.param([], [lived(thing())], known(thing()), NO_WAY, {"keep": ["a"]}, id="gone from Git, no way"),
    ],
)
def test_what_is_done(
    git: list[Any], system: list[Any], synced: dict[Identity, Entry], options: Options, expected: dict[str, list[str]]
) -> None:
    assert acts(plan(parsed(*git), live(*system), synced, options)) == expected


def test_what_is_going_is_waited_for() -> None:
    going = lived(thing())
    going["metadata"]["deletionTimestamp"] = "2026-11-16T19:00:00Z"
    for options in (ONE_WAY, BOTH):
        assert acts(plan(parsed(thing(replicas=2)), live(going), known(thing()), options)) == {"keep": ["a"]}
        assert acts(plan(parsed(thing("b")), live(going), known(thing()), options)) == {"create": ["b"], "keep": ["a"]}
        assert acts(plan(parsed(), live(going), {}, options)) == {}


def test_what_is_applied_and_what_is_written_is_the_merge() -> None:
    found = plan(parsed(thing(image="x")), live(lived(thing(), replicas=3)), known(thing()), BOTH)
    both = thing(replicas=3, image="x")
    assert found.update[0].document == both
    assert found.write_back[0].document == both  # without the server's default
    assert found.write_back[0].before == thing(image="x")


@pytest.mark.parametrize("synced", [known(thing()), {}], ids=["synced before", "met for the first time"])
def test_what_git_alone_changed_is_put_back_where_the_system_wins(synced: dict[Identity, Entry]) -> None:
    found = plan(parsed(thing(replicas=2, image="x")), live(lived(thing())), synced, TO_GIT)
    assert found.write_back[0].document == thing()  # without the server's default


def test_a_file_that_git_lost_is_written_where_it_was_and_as_it_was() -> None:
    found = plan(parsed(), live(lived(thing())), entry_of(thing(), path="own/place.yaml"), TO_GIT)
    assert [(edit.path, edit.document) for edit in found.write_back] == [("own/place.yaml", thing())]


def test_a_secret_that_git_lost_is_not_written_again() -> None:
    secret = {**thing(kind="Secret"), "apiVersion": "v1"}
    assert acts(plan(parsed(), live(lived(secret)), known(secret), TO_GIT)) == {"refused": ["a"]}


def test_after_a_sync_nothing_is_to_be_done() -> None:
    found = plan(parsed(thing(image="x")), live(lived(thing(), replicas=3)), known(thing()), BOTH)
    document = found.update[0].document
    assert document is not None
    assert plan(parsed(document), live(lived(document)), known(document), BOTH).is_noop


def test_what_is_known_to_be_settled_is_compared_only_when_its_document_changed() -> None:
    old, settled = thing(), {identity_of(thing())}
    drifted = live(lived(thing(), replicas=3))
    assert acts(plan(parsed(old), drifted, known(old))) == {"update": ["a"]}
    assert acts(plan(parsed(old), drifted, known(old), settled=settled)) == {"unchanged": ["a"]}
    assert acts(plan(parsed(thing(image="x")), drifted, known(old), settled=settled)) == {"update": ["a"]}


@pytest.mark.row(48)
def test_what_another_sync_owns_is_refused_and_it_is_named() -> None:
    owners = {identity_of(thing()): "GitSync bank/other"}
    found = plan(parsed(thing(replicas=2)), live(lived(thing())), {}, owners=owners)
    assert acts(found) == {"refused": ["a"]}
    assert found.refused[0].reason == "belongs to GitSync bank/other"
    taken = plan(parsed(thing("b")), live(lived(thing())), known(thing()), owners=owners)
    assert acts(taken) == {"create": ["b"], "forget": ["a"]}
    assert acts(plan(parsed(), live(lived(thing())), {}, BOTH, owners=owners)) == {}


def test_what_a_sync_may_not_touch_is_refused() -> None:
    found = plan(parsed(thing()), {}, {}, refuse=lambda identity: f"{identity.kind} is not allowed")
    assert found.refused[0].reason == "Thing is not allowed"


@pytest.mark.row(48)
@pytest.mark.parametrize("where", ["live", "git"])
def test_an_annotation_keeps_what_is_gone_from_git(where: str) -> None:
    document = thing()
    kept = thing()
    kept["metadata"]["annotations"] = {PRUNE: "false"}
    system = lived(kept if where == "live" else document)
    found = plan(parsed(thing("b")), live(system), known(kept if where == "git" else document))
    assert acts(found) == {"create": ["b"], "keep": ["a"]}


def test_objects_of_controllers_are_not_written_to_git() -> None:
    owned = lived(thing())
    owned["metadata"]["ownerReferences"] = [{"kind": "Thing", "name": "b"}]
    assert acts(plan(parsed(), live(owned), {}, BOTH)) == {}
    root = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kube-root-ca.crt", "namespace": "shop"},
        "spec": {},
    }
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "x", "namespace": "shop"}, "spec": {}}
    assert acts(plan(parsed(), live(lived(root), lived(event)), {}, BOTH)) == {}


def test_a_new_file_has_the_shape_of_its_kind_and_a_path_of_its_own() -> None:
    hub = lived(thing())
    hub["metadata"] |= {"project": "shop", "annotations": {"hub.trimtab.dev/lineage": "x", "a": "b"}}
    found = plan(parsed(), live(hub, lived(thing("b"))), {}, BOTH, taken=["shop/thing/A.yaml"])
    assert [edit.path for edit in found.write_back] == ["shop/thing/a-2.yaml", "shop/thing/b.yaml"]
    first, second = (edit.document for edit in found.write_back)
    assert first is not None
    assert second is not None
    assert list(first) == ["apiVersion", "kind", "metadata", "spec"]
    assert first["metadata"] == {"name": "a", "project": "shop", "annotations": {"a": "b"}}
    assert second["metadata"] == {"name": "b", "namespace": "shop"}


def secret(value: str) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"k": value}, "spec": {}}


def test_secrets_are_neither_written_to_git_nor_shown() -> None:
    new = plan(parsed(), live(lived(secret("x"))), {}, BOTH)
    assert acts(new) == {"refused": ["a"]}
    changed = plan(parsed(secret("x")), live(lived(secret("y"))), known(secret("x")), BOTH)
    assert acts(changed) == {"refused": ["a"]}
    both = plan(parsed(secret("VALUE1")), live(lived(secret("VALUE2"))), known(secret("VALUE3")), BOTH)
    fields = both.conflicts[0].fields
    assert fields[0].path == "data.k"
    assert b"VALUE" not in msgspec.json.encode(fields)
    assert "VALUE" not in told(both)


def test_hidden_fields_are_not_shown_and_ignored_ones_stay() -> None:
    arguments = (parsed(thing(replicas=2)), live(lived(thing(), replicas=3)), known(thing()), BOTH)
    found = plan(*arguments, hidden=lambda identity, path: path == "spec.replicas")
    assert found.conflicts[0].fields[0].git == "(not shown)"
    assert acts(plan(*arguments, ignored=lambda identity, path: path == "spec.replicas")) == {"unchanged": ["a"]}


# --- guards


def many(count: int) -> list[dict[str, Any]]:
    return [thing(f"t{n:02}") for n in range(count)]


@pytest.mark.row(48)
def test_a_source_that_is_empty_deletes_nothing_until_somebody_says_so() -> None:
    found = plan(parsed(), live(lived(thing())), known(thing()))
    assert acts(found) == {"guards": ["EmptySource"], "held": ["a"]}
    word = found.guards[0].confirmation
    assert found.guards[0].message == "the source has no documents: 1 document would be deleted"
    assert acts(plan(parsed(), live(lived(thing())), known(thing()), Options(confirmed=word))) == {"prune": ["a"]}
    assert plan(parsed(), live(lived(thing())), known(thing()), Options(confirmed="other")).prune == ()


@pytest.mark.row(48)
@pytest.mark.parametrize(
    ("total", "gone", "options", "held"),
    [
        (20, 6, Options(), False),  # 30 %
        (20, 7, Options(), True),
        (10, 5, Options(), False),  # five are few
        (10, 5, Options(max_deletes=0), True),
        (100, 10, Options(max_delete_percent=0), True),
        (100, 10, Options(), False),
    ],
)
def test_many_deletions_at_once_are_held(total: int, gone: int, options: Options, held: bool) -> None:
    documents = many(total)
    found = plan(parsed(*documents[gone:]), live(*map(lived, documents)), known(*documents), options)
    assert len(found.unchanged) == total - gone
    assert (len(found.held), len(found.prune)) == ((gone, 0) if held else (0, gone))
    if held:
        assert found.guards[0].reason == "MassDelete"
        word = found.guards[0].confirmation
        sure = msgspec.structs.replace(options, confirmed=word)
        again = plan(parsed(*documents[gone:]), live(*map(lived, documents)), known(*documents), sure)
        assert len(again.prune) == gone
        more = plan(parsed(*documents[gone + 1 :]), live(*map(lived, documents)), known(*documents), sure)
        assert more.prune == ()  # another deletion needs another word


def test_a_server_that_says_it_has_nothing_does_not_empty_git() -> None:
    documents = many(10)
    found = plan(parsed(*documents), {}, known(*documents), BOTH)
    assert acts(found) == {"guards": ["MassDelete"], "held_edits": [f"t{n:02}" for n in range(10)]}
    assert "would be deleted from Git" in found.guards[0].message


def test_nothing_is_deleted_while_a_problem_stands() -> None:
    problem = (Problem("x.yaml", 3, "is not YAML"),)
    found = plan(parsed(thing("b"), problems=problem), live(lived(thing())), known(thing()))
    assert acts(found) == {"create": ["b"], "guards": ["Problems"], "held": ["a"]}
    assert found.guards[0].confirmation == ""
    assert acts(plan(parsed(problems=problem), live(lived(thing())), {}, BOTH)) == {}


# --- showing


def test_a_plan_is_told_in_aligned_lines_with_its_deletions() -> None:
    found = plan(
        parsed(thing("new"), thing("b", replicas=2), thing("c", replicas=2)),
        live(lived(thing("b")), lived(thing("old-one")), lived(thing("c"), replicas=3)),
        known(thing("b"), thing("old-one"), thing("c")),
        BOTH,
    )
    assert told(found) == (
        "+ create    g/Thing shop/new      new.yaml      is new in Git\n"
        "~ update    g/Thing shop/b        b.yaml        changed in Git\n"
        "- prune     g/Thing shop/old-one  old-one.yaml  is gone from Git\n"
        "! conflict  g/Thing shop/c        c.yaml        spec.replicas\n"
        "1 to create, 1 to update, 1 to delete, 1 in conflict\n"
    )
    held = told(plan(parsed(), live(lived(thing())), known(thing())))
    assert (
        "EmptySource: the source has no documents: 1 document would be deleted\n  `trimtab git confirm` lets it pass (plan "
        in held
    )
    assert summary(Plan()) == "nothing to do"


def test_the_digest_is_of_what_is_done() -> None:
    system = live(lived(thing("a")), lived(thing("b")))
    one = plan(parsed(thing("a", 2), thing("b", 2)), system, known(thing("a"), thing("b")))
    same = plan(parsed(thing("b", 2), thing("a", 2)), system, known(thing("b"), thing("a")))
    other = plan(parsed(thing("a", 2), thing("b", 3)), system, known(thing("a"), thing("b")))
    assert one.digest == same.digest != other.digest


def test_five_thousand_settled_documents_are_planned_quickly() -> None:
    documents = [thing(f"t{n}", image="nginx", ports=[80, 443], labels={"a": "b"}) for n in range(5000)]
    source, system, synced = parsed(*documents), live(*map(lived, documents)), known(*documents)
    gc.collect()
    begun = time.process_time()
    found = plan(source, system, synced, BOTH)
    took = time.process_time() - begun
    print(f"5,000 settled documents planned in {took * 1000:.0f} ms")
    assert found.is_noop
    assert took < 1.0


def test_places_of_many_new_documents_are_found_in_time() -> None:
    """Nothing else runs meanwhile."""
    there = [f"other/file-{number}.yaml" for number in range(20_000)]
    new = live(*(lived(thing(f"t{number}")) for number in range(2000)))
    start = time.process_time()
    found = plan(parsed(), new, {}, BOTH, taken=there)
    assert len({edit.path for edit in found.write_back}) == 2000
    assert time.process_time() - start < 2
