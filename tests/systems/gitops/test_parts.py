"""The small parts: kinds and their rules, authors, messages, what is hidden, what is left over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from msgspec import UNSET, UnsetType

from tests.systems.gitops.desk import Desk
from trimtab.model import kubernetes
from trimtab.model.document import convert
from trimtab.model.errors import StatusError
from trimtab.model.hub import File, HubMeta, HubResource
from trimtab.model.markers import Keyed, Ref, Sensitive
from trimtab.model.resource import Spec
from trimtab.model.scheme import Scheme
from trimtab.systems.gitops.acting import forbidden
from trimtab.systems.gitops.applying import defined_kinds
from trimtab.systems.gitops.artifacts import readable
from trimtab.systems.gitops.authors import author_of, together
from trimtab.systems.gitops.exporting import hidden, message_of
from trimtab.systems.gitops.kinds import Committer, GitSync, GitSyncSpec, Repository
from trimtab.systems.gitops.kinds.fields import AUTHOR
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.leftovers import leftovers
from trimtab.systems.gitops.parsing import Identity, Parsed, Problem
from trimtab.systems.gitops.planning import Action, FileEdit, Plan, Step
from trimtab.systems.gitops.reading import Snapshot, normal_root
from trimtab.systems.gitops.run.asking import options_of
from trimtab.systems.gitops.run.checking import check
from trimtab.systems.gitops.run.tools import Memory
from trimtab.systems.gitops.run.verdicts import Stop


class PartSpec(Spec):
    name: Annotated[str, Ref("Part")]


class ThingSpec(Spec):
    repository: Annotated[str, Ref("Repository")] | UnsetType = UNSET
    password: Annotated[str, Sensitive()] | UnsetType = UNSET
    parts: Annotated[tuple[PartSpec, ...], Keyed("name")] = ()
    files: Annotated[tuple[File, ...], Keyed("name")] = ()


class Thing(HubResource, group="infra", version="v3"):
    """A kind with all that the sync asks classes for."""

    spec: ThingSpec

    def files(self) -> tuple[File, ...]:
        return self.spec.files

    def trigger_internal(self) -> None: ...


@pytest.fixture
def knowledge() -> Knowledge:
    scheme = kubernetes.register(Scheme())
    scheme.register(Repository)
    scheme.register(Thing)
    return Knowledge(scheme)


THING: dict[str, Any] = {
    "apiVersion": "infra.trimtab.dev/v3",
    "kind": "Thing",
    "metadata": {"name": "a", "namespace": "team"},
    "spec": {
        "repository": "code",
        "password": "hunter2",
        "parts": [{"name": "x"}, {"name": "*"}],
        "files": [{"name": "a/b.yaml", "digest": "sha256:" + "0" * 64}],
    },
}


@pytest.mark.row(46)
@pytest.mark.row(47)
def test_classes_tell_references_files_secrets_and_triggers(knowledge: Knowledge) -> None:
    own = Identity("infra.trimtab.dev", "Thing", "team", "a")
    assert set(knowledge.references(own, THING)) == {
        Identity("hub.trimtab.dev", "Repository", "team", "code"),
        Identity("infra.trimtab.dev", "Part", "team", "x"),
    }
    assert set(knowledge.references(own, {**THING, "apiVersion": "infra.acme.example/v3"})) == {
        Identity("hub.acme.example", "Repository", "team", "code"),
        Identity("infra.acme.example", "Part", "team", "x"),
    }, "names of a white label are of its groups"
    assert knowledge.file_names(THING) == ["a/b.yaml"]
    assert knowledge.sensitive("infra.trimtab.dev/v3", "Thing") == (("spec", "password"),)
    assert "digest" not in str(knowledge.clean(THING))
    assert knowledge.is_triggering("infra.trimtab.dev/v3", "Thing")
    assert knowledge.is_triggering("x.example.com/v1", "Other", ["git"])
    assert not knowledge.is_triggering("v1", "ConfigMap")
    assert knowledge.lineage_key("infra.trimtab.dev/v3", "Thing") == "hub.trimtab.dev/lineage"
    assert knowledge.lineage_key("infra.acme.example/v3", "Thing") == "hub.acme.example/lineage"
    assert not knowledge.lineage_key("v1", "ConfigMap")
    assert knowledge.keeps_lineage("/apis/infra.trimtab.dev/v3/namespaces/team/things/a")
    assert knowledge.keeps_lineage("/apis/infra.acme.example/v3/namespaces/team/things/a")
    assert not knowledge.keeps_lineage("/api/v1/namespaces/team/configmaps/a")


@pytest.mark.row(49)
@pytest.mark.parametrize("name", [".github/workflows/ci.yml", ".trimtabignore", ".git/config", "../x"])
def test_a_document_that_could_not_be_read_again_is_not_written(knowledge: Knowledge, name: str) -> None:
    """Git would have it, and nothing of the whole revision would be applied any more."""
    spec = {**THING["spec"], "files": [{"name": name}]}
    identity, other = Identity("infra.trimtab.dev", "Thing", "team", "a"), Identity("", "ConfigMap", "team", "b")
    edits = [
        FileEdit(identity, "create", "a.yaml", document={**THING, "spec": spec}),
        FileEdit(other, "create", "b.yaml", document={"apiVersion": "v1", "kind": "ConfigMap"}),
    ]
    plan = readable(Plan(write_back=tuple(edits), unchanged=(Step(identity, Action.UNCHANGED),)), knowledge)
    assert [edit.identity for edit in plan.write_back] == [other]
    assert plan.unchanged == ()
    (refused,) = plan.refused
    assert (refused.identity, refused.path) == (identity, "a.yaml")
    assert name in refused.reason


def test_sensitive_and_read_only_fields_are_not_written(knowledge: Knowledge) -> None:
    identity = Identity("infra.trimtab.dev", "Thing", "team", "a")
    made = hidden(FileEdit(identity, "create", "a.yaml", document=THING), knowledge)
    assert made.document is not None
    assert "hunter2" not in str(made.document)
    assert "sha256" not in str(made.document)
    before = {**THING, "spec": {**THING["spec"], "password": "(sealed)"}}
    changed = hidden(FileEdit(identity, "update", "a.yaml", before=before, document=THING), knowledge)
    assert changed.document is not None
    assert changed.document["spec"]["password"] == "(sealed)"


@pytest.mark.row(49)
@pytest.mark.parametrize(
    ("metadata", "author"),
    [
        ({"annotations": {AUTHOR: "Ann Lee <ann@example.com>"}}, ("Ann Lee", "ann@example.com")),
        ({"annotations": {AUTHOR: "ann@example.com"}}, ("ann", "ann@example.com")),
        ({"annotations": {AUTHOR: "a\n<b>"}}, ("ab", "ab@users.invalid")),
        ({"annotations": {AUTHOR: "... <b@x>"}}, ("b", "b@x")),
        (
            {
                "managedFields": [
                    {"manager": "gitops", "time": "2026-01-03T00:00:00Z"},
                    {"manager": "kubectl-edit", "time": "2026-01-02T00:00:00Z"},
                    {"manager": "controller", "time": "2026-01-04T00:00:00Z", "subresource": "status"},
                ]
            },
            ("kubectl-edit", "kubectl-edit@users.invalid"),
        ),
        ({"managedFields": [{"manager": "gitops"}]}, None),
        ({}, None),
    ],
)
def test_the_author_is_who_changed_the_object(metadata: dict[str, Any], author: tuple[str, str] | None) -> None:
    assert author_of({"metadata": metadata}) == author


def test_several_authors_are_named_beside_the_committer() -> None:
    ann, bob = ("Ann", "ann@x"), ("Bob", "bob@x")
    assert together([ann, None, ann], Committer()) == (ann, [])
    author, trailers = together([ann, bob], Committer(name="us", email="us@x"))
    assert author == ("us", "us@x")
    assert trailers == ["Co-authored-by: Ann <ann@x>", "Co-authored-by: Bob <bob@x>"]


def test_commit_messages_name_what_changed() -> None:
    one = FileEdit(Identity("", "ConfigMap", "team", "a"), "update", "a.yaml")
    two = FileEdit(Identity("", "ConfigMap", "team", "b"), "delete", "b.yaml")
    assert message_of([one], "team/fleet") == "Change ConfigMap a\n\nSynced-By: team/fleet\n"
    assert message_of([one, two], "team/fleet").splitlines()[0] == "Change 2 documents"
    assert "Remove ConfigMap team/b" in message_of([one, two], "team/fleet")


def test_what_git_says_no_more_is_taken_away_by_name() -> None:
    before = {"spec": {"a": 1, "b": {"c": 1, "d": 1}}, "metadata": {"namespace": "x", "labels": {"l": "1"}}}
    after = {"spec": {"b": {"d": 1}}, "metadata": {"labels": {}}}
    answer = {"spec": {"a": 1, "b": {"c": 1, "d": 1}, "e": 1}, "metadata": {"namespace": "x", "labels": {"l": "1"}}}
    expected = {"spec": {"a": None, "b": {"c": None}}, "metadata": {"labels": {"l": None}}}
    assert leftovers(before, after, answer) == expected
    assert leftovers(before, before, answer) == {}
    assert leftovers(before, after, {"metadata": {}}) == {}


@pytest.mark.parametrize(
    ("before", "after", "answer", "expected"),
    [
        ({"labels": {"a": "1"}}, {}, {"labels": {"a": "1"}}, {"labels": None}),
        ({"labels": {"a": "1"}}, {}, {"labels": {"b": "2"}}, {}),
        ({"labels": {"a": "1"}}, {}, {"labels": {"a": "1", "b": "2"}}, {"labels": {"a": None}}),
        ({"probe": {"path": "/"}}, {}, {"probe": {"path": "/", "period": 10}}, {"probe": None}),
        ({"kind": "x"}, {}, {"kind": "x"}, {"kind": None}),
        ({"l": [1, 2]}, {"l": [1]}, {"l": [1, 2]}, {}),
        ({"l": [{"name": "a"}, {"name": "b"}]}, {"l": [{"name": "a"}]}, {"l": [{"name": "a"}]}, {}),
        (
            {"l": [{"name": "a", "env": [{"name": "x"}]}, {"name": "b"}]},
            {"l": [{"name": "a", "env": []}]},
            {"l": [{"name": "c"}, {"name": "a", "env": [{"name": "x"}, {"name": "y"}], "on": 1}, {"name": "b"}]},
            {"l": [{"name": "c"}, {"name": "a", "env": [{"name": "y"}], "on": 1}]},
        ),
    ],
)
def test_what_others_have_stays(before: Any, after: Any, answer: Any, expected: Any) -> None:
    assert leftovers({"spec": before}, {"spec": after}, {"spec": answer}) == ({"spec": expected} if expected else {})


def test_definitions_in_a_revision_name_their_kinds() -> None:
    crd = {"kind": "CustomResourceDefinition", "spec": {"group": "g.example.com", "names": {"kind": "Cart"}}}
    assert defined_kinds([crd, {"kind": "CustomResourceDefinition", "spec": 3}, {}]) == {("g.example.com", "Cart")}


def test_a_confined_sync_gives_no_rights() -> None:
    def why(group: str, kind: str, namespace: str = "team", **document: Any) -> str:
        return forbidden(Identity(group, kind, namespace, "a"), document, "team")

    assert why("", "ConfigMap") == ""
    assert "keeps to" in why("", "ConfigMap", "other")
    assert "whole cluster" in why("", "Node", "")
    for group, kind in [
        ("rbac.authorization.k8s.io", "Role"),
        ("", "ServiceAccount"),
        ("", "ResourceQuota"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("apiextensions.k8s.io", "X"),
    ]:
        assert "could give rights" in why(group, kind)
    assert "token of an account" in why("", "Secret", type="kubernetes.io/service-account-token")
    assert why("", "Secret", type="Opaque") == ""


def test_folders_stay_in_the_repository() -> None:
    assert normal_root("./a//b/") == "a/b"
    with pytest.raises(ValueError, match="leaves the repository"):
        normal_root("a/../../b")


@pytest.mark.row(50)
@pytest.mark.row(52)
async def test_the_api_refuses_what_cannot_be_meant(desk: Desk) -> None:
    place = {"repository": "other", "revision": "main"}
    for spec, words in (
        ({"exclude": ["*"]}, "both included and excluded"),
        ({"destination": place, "sourceAsDestination": True}, "destination"),
        ({"sourceAsDestination": False}, "destination"),
        ({"verify": {}}, "exactly one of"),
        ({"committer": {"name": "x", "email": "nobody"}}, "email"),
        ({"conflictPolicy": "both"}, "conflictPolicy"),
    ):
        with pytest.raises((StatusError, ValueError), match=words):
            await desk.sync(**spec)
    await desk.sync("good", destination=place)
    for period in ("0", "0s", "1ms", "0.5s", "999ms", "0d"):
        with pytest.raises(StatusError, match=r"spec\.triggers\.interval: Invalid value.*must be 1s at least"):
            await desk.sync(triggers={"interval": period})
        with pytest.raises(StatusError, match=r"spec\.timeout: Invalid value.*must be 1s at least"):
            await desk.sync(timeout=period)
        with pytest.raises(StatusError, match=r"spec\.interval: Invalid value.*must be 1s at least"):
            await desk.repository(interval=period)
    for number, period in enumerate(("1s", "1500ms", "0.5h", "1d", "2w3d")):
        await desk.sync(f"good-{number}", triggers={"interval": period})
    for endpoint in ("file:///etc", "ext::sh -c true", "/etc", "ftp://x/y"):
        with pytest.raises(StatusError, match="endpoint"):
            await desk.repository(endpoint=endpoint)
    for endpoint in ("https://ann:hush@x/y.git", "ssh://git:hush@x/y", "https://:hush@x:8443/y", "git://a:hush@b@x/y"):
        with pytest.raises(StatusError, match=r"spec\.endpoint: .*must not carry a password") as refused:
            await desk.repository(endpoint=endpoint)
        assert "hush" not in str(refused.value)
    for number, endpoint in enumerate(("https://org@x:8443/a:b@c.git", "ssh://git@x:22/y", "git@x:a/b:c@d")):
        await desk.repository(f"good-{number}", endpoint=endpoint)


OTHER = {"repository": "other", "revision": "main"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"revision": "a..b"}, "spec.revision: 'a..b'"),
        ({"revision": "--upload-pack=touch x"}, "spec.revision: '--upload-pack"),
        ({"revision": "HEAD", "systemToGit": True}, "spec.revision: 'HEAD'"),
        ({"path": ".git/hooks"}, "spec.path: "),
        ({"destination": {**OTHER, "revision": "a..b"}}, "spec.destination.revision: 'a..b'"),
        ({"destination": {**OTHER, "path": ".git/hooks"}}, "spec.destination.path: "),
        ({"destination": {**OTHER, "path": "../x"}}, "spec.destination.path: "),
    ],
)
def test_branches_and_folders_that_git_could_not_have_are_named_by_their_field(spec: Any, field: str) -> None:
    asked = GitSync(metadata=HubMeta(name="fleet"), spec=convert({"repository": "team", **spec}, GitSyncSpec))
    with pytest.raises(Stop) as stopped:
        options_of(asked)
    assert stopped.value.verdict.reason == "InvalidSpec"
    assert stopped.value.verdict.message.startswith(field)


@pytest.mark.parametrize("spec", [{"revision": "HEAD"}, {"revision": "0" * 40}, {"revision": "v1.0/a"}, {"path": ".x"}])
def test_branches_tags_commits_and_hidden_folders_may_be_synced(spec: Any) -> None:
    asked = GitSync(metadata=HubMeta(name="fleet"), spec=convert({"repository": "team", **spec}, GitSyncSpec))
    options_of(asked)


def test_problems_of_a_folder_that_is_no_commit_are_said_to_be_in_the_folder(knowledge: Knowledge) -> None:
    asked = GitSync(metadata=HubMeta(name="fleet"), spec=GitSyncSpec(repository="team"))
    snapshot = Snapshot("", "", {}, Parsed(problems=(Problem("a.yaml", 3, "is not YAML"),)))
    with pytest.raises(Stop, match=r"^1 problem in the folder, so nothing of it is applied: a\.yaml:3: is not YAML$"):
        check(snapshot, asked, SimpleNamespace(knowledge=knowledge), Memory())  # type: ignore[arg-type]
