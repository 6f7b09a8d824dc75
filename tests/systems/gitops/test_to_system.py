"""From Git to the system: what is applied, pruned, held back and refused."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import UNSET

from tests.runtime.widgets import until_gone
from tests.systems.gitops.desk import Desk, config, message, reason
from trimtab.client.protocol import Query, Ref
from trimtab.lab.git import run as git_run
from trimtab.model.conditions import get_condition
from trimtab.model.document import convert
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubMeta
from trimtab.model.kubernetes import ConfigMap, Event
from trimtab.model.scheme import Untyped
from trimtab.systems.gitops.kinds import GitSync, GitSyncSpec, Repository
from trimtab.systems.gitops.kinds.fields import CONFIRM
from trimtab.systems.gitops.ordering import DEPENDS_ON


@pytest.mark.row(48)
async def test_documents_of_a_revision_are_applied_and_those_that_go_are_pruned(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", color="red"), "deep/b.yaml": config("b", color="blue")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        assert await desk.names() == ["a", "b"]
        desk.git.commit("team", {"a.yaml": config("a", color="green"), "deep/b.yaml": None})
        await desk.again()
        await desk.ready()
        assert await desk.names() == ["a"]
        live = await desk.live("a")
        assert live is not None
        assert live["data"] == {"color": "green"}


async def test_nothing_of_a_revision_with_a_problem_is_applied(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", color="red"), "b.yaml": "kind: [\n"})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        sync = await desk.reason("InvalidDocuments")
        assert "b.yaml" in message(sync)
        assert await desk.names() == []


async def test_words_that_yaml_takes_for_truths_and_numbers_are_to_be_quoted(desk: Desk) -> None:
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {m: n, price: 1.10}\n"
    other = (
        "apiVersion: hub.trimtab.dev/v3\nkind: Repository\nmetadata: {name: b}\nspec: {endpoint: no, insecure: 'no'}\n"
    )
    desk.git.create("team", {"a.yaml": settings, "b.yaml": other})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        sync = await desk.reason("InvalidDocuments")
        told = {problem.message.partition(":")[0]: problem.message for problem in sync.status.documents}
        for field in ("data.m", "data.price", "spec.endpoint"):
            assert told.pop(field).endswith("; quote it, if it is meant as text")
        assert "quote" not in str(told)


async def test_a_sync_does_not_delete_what_it_works_with(desk: Desk) -> None:
    """Where Git is, and the sync itself, may be in Git, too. When they are gone there, they are somebody's mistake."""
    head = "apiVersion: hub.trimtab.dev/v3\nkind: "
    documents = {
        "team.yaml": f"{head}Repository\nmetadata: {{name: team}}\nspec: {{endpoint: '{desk.url()}'}}\n",
        "fleet.yaml": f"{head}GitSync\nmetadata: {{name: fleet}}\nspec: {{repository: team}}\n",
        "other.yaml": f"{head}Repository\nmetadata: {{name: other}}\nspec: {{endpoint: '{desk.url()}'}}\n",
    }
    desk.git.create("team", {**documents, "a.yaml": config("a", x="1")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", dict.fromkeys(documents))
        await desk.again()
        await desk.ready()
        left = await desk.client.list(Repository, Query(namespace=desk.namespace))
        assert [item.name for item in left.items] == ["team"]


async def test_drift_is_undone_and_objects_that_were_deleted_come_back(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", color="red"), "b.yaml": config("b", color="blue")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        held = await desk.client.get(ConfigMap, "a", desk.namespace)
        await desk.client.patch(held, held.replace(data={"color": "pink", "mine": "yes"}))
        await desk.client.delete(Ref(ConfigMap, "b", desk.namespace))
        await desk.again()
        live = await desk.live("a")
        assert live is not None
        assert live["data"] == {"color": "red", "mine": "yes"}  # what Git never said stays
        assert await desk.names() == ["a", "b"]


async def test_no_value_of_a_secret_is_in_what_is_told_of_its_mistakes(desk: Desk) -> None:
    wrong = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: door}\ndata: {key: hunter2}\nstringData: {pin: {x: hunter3}}\n"
    )
    desk.git.create("team", {"a.yaml": wrong})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        sync = await desk.reason("InvalidDocuments")
        told = json.dumps(sync.raw) + json.dumps([e.raw for e in (await desk.client.list(Event, Query())).items])
    assert "hunter" not in told
    assert "data.key: Invalid value: (not shown): []uint8; it must be base64, or under stringData" in message(sync)


@pytest.mark.row(48)
async def test_fields_that_git_says_no_more_go_even_when_others_own_them_too(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", color="red", size="small")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": desk.namespace}}
        await desk.client.apply(Untyped({**mine, "data": {"size": "small"}}), manager="somebody", force=True)
        desk.git.commit("team", {"a.yaml": config("a", color="red")})
        await desk.again()
        live = await desk.live("a")
        assert live is not None
        assert live["data"] == {"color": "red"}


async def test_a_confirmation_counts_once_also_when_the_same_names_come_and_go_again(desk: Desk) -> None:
    documents = {"a.yaml": config("a"), "b.yaml": config("b")}
    desk.git.create("team", {"README": "two", **documents})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        for _ in range(2):
            desk.git.commit("team", dict.fromkeys(documents))
            await desk.ask()
            sync = await desk.reason("EmptySource")
            assert await desk.names() == ["a", "b"]
            await desk.change(annotations={CONFIRM: sync.status.held.plan})
            await desk.ready()
            assert await desk.names() == []
            desk.git.commit("team", dict(documents))
            await desk.ask()
            await desk.ready()


@pytest.mark.row(48)
async def test_many_deletions_wait_until_a_person_confirms_them(desk: Desk) -> None:
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(9)})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        gone: dict[str, bytes | str | None] = {f"{n}.yaml": None for n in range(7)}
        whole = desk.git.head("team")
        held = desk.git.commit("team", {**gone, "new.yaml": config("new", a="1")})
        await desk.ask()
        sync = await desk.reason("MassDelete")
        assert len(await desk.names()) == 10  # what is new is applied all the same
        assert sync.status.held
        assert (sync.status.held.count, sync.status.held.revision) == (7, held)
        assert (sync.status.last_applied_revision, sync.status.last_attempted_revision) == (whole, held)
        synced = get_condition(sync.status.conditions, "Synced")
        assert synced
        assert (synced.status, synced.reason) == ("False", "MassDelete")
        await desk.change(annotations={CONFIRM: "another"})
        await desk.again()
        assert len(await desk.names()) == 10
        await desk.change(annotations={CONFIRM: sync.status.held.plan})
        await desk.ready()
        assert await desk.names() == ["c7", "c8", "new"]


async def test_what_is_held_is_told_by_one_event_however_often_it_is_looked_at(desk: Desk) -> None:
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(12)})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {f"{n}.yaml": None for n in range(7)})
        await desk.again()
        await desk.again()
        desk.git.commit("team", {"new.yaml": config("new", a="1")})  # something is done, and the same is held
        await desk.again()
    async with desk.working("two"):
        await desk.again()
        assert [(event.reason, event.type, count(event)) for event in await told(desk, "MassDelete")] == [
            ("MassDelete", "Warning", 1)
        ]
        assert "`trimtab git confirm fleet` lets it pass" in str((await told(desk, "MassDelete"))[0].note)
        desk.git.commit("team", {"7.yaml": None})  # another hold, with others in it
        await desk.again()
    assert sum(count(event) for event in await told(desk, "MassDelete")) == 2


async def test_documents_that_wait_for_each_other_are_applied_together_and_told(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": after("b", "a"), "c.yaml": after("c", "b")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        assert await told(desk, "Cycle") == []
        desk.git.commit("team", {"a.yaml": after("a", "c")})  # the others stay as they are
        await desk.again()
        await desk.ready()
        [event] = await told(desk, "Cycle")
        assert event.type == "Warning"
        for name in "abc":
            assert f"ConfigMap {desk.namespace}/{name} ({name}.yaml)" in str(event.note)
        live = await desk.live("a")
        assert live is not None
        assert live["metadata"]["annotations"][DEPENDS_ON] == "ConfigMap/c"
        desk.git.commit("team", {"d.yaml": after("d", "a")})  # in no cycle itself
        await desk.again()
        await desk.ready()
        assert sum(count(event) for event in await told(desk, "Cycle")) == 1


def after(name: str, other: str) -> str:
    annotated = {"name": name, "annotations": {DEPENDS_ON: f"ConfigMap/{other}"}}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": annotated})


async def told(desk: Desk, reason: str) -> list[Event]:
    listing = await desk.client.list(Event, Query(namespace=desk.namespace))
    return [item for item in listing.items if item.reason == reason]


def count(event: Event) -> int:
    return event.series.count if event.series else 1


async def test_a_branch_that_is_gone_is_told_and_deletes_nothing(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        git_run("-C", str(desk.git.path()), "update-ref", "-d", "refs/heads/main")
        await desk.again()
        sync = await desk.reason("GitNoSuchRef")
        assert sync.status.held is UNSET
        assert await desk.names() == ["a"]


async def test_a_source_without_documents_deletes_nothing(desk: Desk) -> None:
    desk.git.create("team", {"fleet/a.yaml": config("a", color="red")})
    await desk.repository()
    async with desk.working():
        await desk.sync(path="fleet")
        await desk.ready()
        desk.git.commit("team", {"fleet/a.yaml": None, "README.md": "moved"})
        await desk.ask()
        sync = await desk.reason("EmptySource")
        assert await desk.names() == ["a"]
        assert sync.status.last_applied_revision != desk.git.head("team")
        assert sync.status.held
        await desk.change(annotations={CONFIRM: sync.status.held.plan})
        sync = await desk.ready()
        assert message(sync).endswith('which has no folder "fleet"')
        assert await desk.names() == []


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


WRONG = {
    "duplicates": ({"a.yaml": config("a", x="1"), "b.yaml": config("a", x="2")}, "is in a.yaml:1 too"),
    "group": (
        {"a.yaml": "apiVersion: shop.example.com/v1\nkind: Cart\nmetadata: {name: a}\n"},
        "is not served; there are",
    ),
    "kind": ({"a.yaml": "apiVersion: v1\nkind: ConfigMapp\nmetadata: {name: a}\n"}, "ConfigMap"),
    "field": ({"a.yaml": config("a", x="1").replace("\ndata:", "\ndta:")}, "dta: unknown field"),
    "type": ({"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: [1]\n"}, "data"),
    "namespace": ({"a.yaml": config("a", x="1").replace("name: a", "name: a\n  namespace: other")}, 'is in "other"'),
    "rights": (
        {"a.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\nrules: []\n"},
        "could give rights",
    ),
    "account": (
        {
            "a.yaml": "apiVersion: hub.trimtab.dev/v3\nkind: GitSync\nmetadata: {name: a}\n"
            "spec: {repository: team, serviceAccount: admin}\n"
        },
        "would act as another account",
    ),
    "cluster": ({"a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"}, "of the whole cluster"),
    "bomb": ({"a.yaml": BOMB}, "a.yaml"),
    "deep": ({"a.yaml": "[" * 3000}, "a.yaml"),
    "foreign": ({"a.yaml": "key: value\n"}, "is no document"),
}


@pytest.mark.row(2)
async def test_what_is_wrong_in_a_revision_is_told_by_document_and_nothing_is_applied(desk: Desk) -> None:
    files = {f"{name}/{path}": text for name, (found, _) in WRONG.items() for path, text in found.items()}
    desk.git.create("team", {**files, **{f"{name}/good.yaml": config(f"good-{name}", x="1") for name in WRONG}})
    await desk.repository()
    async with desk.working():
        for name in WRONG:
            await desk.sync(name, path=name)
        for name, (_, words) in WRONG.items():
            sync = await desk.reason("InvalidDocuments", name)
            assert words in " ".join(problem.message for problem in sync.status.documents) + message(sync), name
            assert sync.status.problems
            if name in ("group", "kind"):  # not also of the whole cluster, which nobody knows
                assert len(sync.status.documents) == 1, name
        assert await desk.names() == []


async def test_a_rewritten_branch_is_followed_and_told(desk: Desk) -> None:
    first = desk.git.create("team", {"a.yaml": config("a", x="1")})
    desk.git.commit("team", {"a.yaml": config("a", x="2")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {"a.yaml": config("a", x="3")}, force_from=first)
        await desk.again()
        await desk.ready()
        live = await desk.live("a")
        assert live is not None
        assert live["data"] == {"x": "3"}
    assert "HistoryRewritten" in await desk.events()


async def test_a_rewritten_branch_that_cannot_be_applied_is_told_of_once(desk: Desk) -> None:
    first = desk.git.create("team", {"a.yaml": config("a", x="1")})
    desk.git.commit("team", {"a.yaml": config("a", x="2")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {"a.yaml": "key: value"}, force_from=first)
        for _ in range(3):
            await desk.again()
        await desk.reason("InvalidDocuments")
    assert sum(count(event) for event in await told(desk, "HistoryRewritten")) == 1


@pytest.mark.row(50)
async def test_include_and_exclude_lists_choose_kinds_and_may_not_contradict(desk: Desk) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1"), "s.yaml": secret})
    await desk.repository()
    async with desk.working():
        await desk.sync(include=["ConfigMap"], exclude=["ConfigMap/b"])
        await desk.ready()
        assert await desk.names() == ["a"]
        assert await desk.live("s", "Secret") is None
    with pytest.raises(StatusError, match="both included and excluded"):
        await desk.sync("other", include=["ConfigMap"], exclude=["ConfigMap"])


@pytest.mark.row(53)
async def test_status_tells_of_each_document_that_the_server_refuses(desk: Desk) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 99999}]}\n"
    desk.git.create("team", {"a.yaml": config("a", x="1"), "s.yaml": service})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        sync = await desk.reason("ApplyFailed")
        (problem,) = sync.status.documents
        assert (problem.path, problem.object.split()[0]) == ("s.yaml", "Service")
        assert "port" in problem.message
        assert sync.status.history[0].outcome == "Failed"
        desk.git.commit("team", {"s.yaml": service.replace("99999", "80")})
        await desk.again()
        sync = await desk.ready()
        assert not sync.status.documents
        assert sync.status.inventory.count == 2


async def test_objects_of_another_sync_are_left_alone_whoever_says_so(desk: Desk) -> None:
    """The lineage of a hub kind is its owner's word; a document in Git that forges one does not count."""
    forged = (
        "apiVersion: hub.trimtab.dev/v3\nkind: Repository\nmetadata:\n  name: other\n"
        "  annotations: {hub.trimtab.dev/lineage: 'x/y@z'}\nspec: {endpoint: 'https://git.example.com/a.git'}\n"
    )
    desk.git.create("team", {"other.yaml": forged})
    desk.git.create("second", {"other.yaml": forged.replace("a.git", "b.git")})
    await desk.repository()
    await desk.repository("second")
    async with desk.working():
        await desk.sync()
        await desk.ready()
        held = await desk.client.get(Repository, "other", desk.namespace)
        lineage = (held.metadata.annotations or {})["hub.trimtab.dev/lineage"]
        assert lineage.startswith(f"{desk.namespace}/fleet@")
        await desk.sync("second", repository="second")
        sync = await desk.reason("Refused", "second")
        assert f"belongs to the sync {desk.namespace}/fleet" in message(sync)
        held = await desk.client.get(Repository, "other", desk.namespace)
        assert held.spec.endpoint.endswith("a.git")


OTHER = (
    "apiVersion: hub.trimtab.dev/v3\nkind: Repository\nmetadata: {name: other}\n"
    "spec: {endpoint: 'https://git.example.com/a.git'}\n"
)


@pytest.mark.parametrize("name", ["fleet", "heir"])
async def test_what_a_deleted_sync_left_is_for_the_next_to_have(desk: Desk, name: str) -> None:
    """Of the same name or of another: the lineage is of a GitSync that is no more."""
    desk.git.create("team", {"other.yaml": OTHER})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        await desk.client.delete(Ref(GitSync, "fleet", desk.namespace))
        await until_gone(desk.client, GitSync, "fleet", desk.namespace)
        made = await desk.sync(name)
        await desk.ready(name)
        held = await desk.client.get(Repository, "other", desk.namespace)
        lineage = (held.metadata.annotations or {})["hub.trimtab.dev/lineage"]
        assert lineage == f"{desk.namespace}/{name}@{made.metadata.uid}"


async def test_an_owner_of_another_namespace_is_asked_for_there(desk: Desk) -> None:
    """Controllers that follow one namespace have no cache of the others."""
    elsewhere = f"{desk.namespace}-too"
    await desk.client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}}))
    spec = convert({"repository": "team"}, GitSyncSpec)
    owner = await desk.client.create(GitSync(metadata=HubMeta(name="fleet", namespace=elsewhere), spec=spec))
    document = msgspec.yaml.decode(OTHER)
    lineage = {"hub.trimtab.dev/lineage": f"{elsewhere}/fleet@{owner.metadata.uid}"}
    document["metadata"] |= {"namespace": desk.namespace, "annotations": lineage}
    await desk.client.create(Untyped(document))
    desk.git.create("team", {"other.yaml": OTHER})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        assert f"belongs to the sync {elsewhere}/fleet" in message(await desk.reason("Refused"))


async def test_a_repository_that_is_not_there_is_told(desk: Desk) -> None:
    async with desk.working():
        await desk.sync()
        assert 'no Repository "team"' in message(await desk.reason("RepositoryMissing"))
        desk.git.create("team", {"a.yaml": config("a", x="1")})
        await desk.repository()
        await desk.ready()


async def test_a_folder_that_is_not_in_the_branch_is_told(desk: Desk) -> None:
    desk.git.create("team", {"fleet/a.yaml": config("a", x="1")})
    await desk.repository()
    async with desk.working():
        await desk.sync(path="flet")
        assert 'no folder "flet"' in message(await desk.reason("PathMissing"))
        await desk.change(path="fleet")
        await desk.ready()
        assert await desk.names() == ["a"]


async def test_a_confined_sync_does_not_tell_one_with_an_account_what_to_follow_and_whom_to_trust(desk: Desk) -> None:
    evil = "apiVersion: hub.trimtab.dev/v3\nkind: Repository\nmetadata: {name: trusted}\nspec: {endpoint: git://127.0.0.1/evil.git}\n"
    signers = "apiVersion: v1\nkind: Secret\nmetadata: {name: signers}\nstringData: {eve: ssh-ed25519 AAAA}\n"
    desk.git.create("team", {"a.yaml": evil, "b.yaml": signers, "c.yaml": config("c")})
    await desk.repository()
    await desk.repository("trusted")
    await desk.sync(
        "boss", repository="trusted", serviceAccount="admin", suspend=True, verify={"ssh": {"name": "signers"}}
    )
    async with desk.working():
        await desk.sync()
        sync = await desk.reason("Refused")
        assert "the GitSync boss, which acts as another account, goes by it" in message(sync)
        assert sync.status.problems == 2
        assert await desk.names() == ["c"]
        assert (await desk.client.get(Repository, "trusted", desk.namespace)).spec.endpoint == desk.url("trusted")
        assert await desk.live("signers", "Secret") is None
        own = "apiVersion: hub.trimtab.dev/v3\nkind: GitSync\nmetadata: {name: own}\nspec: {repository: team, suspend: true}\n"
        desk.git.commit("team", {"a.yaml": None, "b.yaml": None, "own.yaml": own})
        await desk.again()
        await desk.ready()
        await desk.change("own", serviceAccount="admin")
        desk.git.commit("team", {"own.yaml": own.replace("team", "evil")})
        await desk.again(how="webhook")
        assert (await desk.client.get(GitSync, "own", desk.namespace)).spec.repository == "team"


async def test_a_confined_sync_writes_no_login_and_no_decision_of_one_with_an_account(desk: Desk) -> None:
    def secret(name: str) -> str:
        return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{token: eve}}\n"

    decision = (
        "{apiVersion: hub.trimtab.dev/v3, kind: SyncConflict, metadata: {name: boss-0123456789}, spec: {gitSync: boss, "
    )
    decision += "resolution: git, object: {apiVersion: v1, kind: ConfigMap, name: c}}}\n"
    logins = ("login", "mirror-login", "signing")
    desk.git.create(
        "team", {"d.yaml": decision, "c.yaml": config("c"), **{f"{each}.yaml": secret(each) for each in logins}}
    )
    await desk.repository()
    await desk.repository("trusted", secretRef={"name": "login"})
    await desk.repository("mirror", secretRef={"name": "mirror-login"})
    place = {"repository": "mirror", "revision": "main"}
    signing = {"secretRef": {"name": "signing"}}
    boss = {"repository": "trusted", "serviceAccount": "admin", "suspend": True, "destination": place, "sign": signing}
    await desk.sync("boss", **boss)
    async with desk.working():
        await desk.sync()
        sync = await desk.reason("Refused")
        assert sorted(each.path for each in sync.status.documents) == sorted(["d.yaml", *(f"{e}.yaml" for e in logins)])
        assert await desk.names() == ["c"]
        assert [await desk.live(each, "Secret") for each in logins] == [None, None, None]
        assert await desk.conflicts() == []


async def test_a_folder_of_documents_that_became_a_link_is_told_and_deletes_nothing(desk: Desk) -> None:
    desk.git.create("team", {"apps/a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        moved = {"apps/a.yaml": None, "apps": "other", "other/A": config("a", x="1")}
        desk.git.commit("team", moved, modes={"apps": "120000"})
        sync = await desk.again()
        assert reason(sync) == "InvalidDocuments"
        assert "apps: is a symlink, and was a folder with documents" in message(sync)
        assert await desk.names() == ["a", "b"]
        desk.git.commit("team", {".trimtabignore": "/apps\n"})
        await desk.again()
        await desk.ready()
        assert await desk.names() == ["b"]


LONG = "/".join(["d" * 100] * 12)


@pytest.mark.parametrize(
    ("path", "said"),
    [(f"{LONG}/bad.yaml", "is not YAML"), (r'"caf\351.yaml"', "has a name that is not UTF-8")],
)
async def test_problems_of_files_with_names_that_no_status_holds_are_told(desk: Desk, path: str, said: str) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {path: "a: [\n"})
        await desk.again()
        sync = await desk.reason("InvalidDocuments")
        assert said in message(sync)
        assert len(sync.status.documents[0].path) <= 1024


@pytest.mark.parametrize(
    "schema",
    ["[1]", "{openAPIV3Schema: {type: object, properties: many}}", "{openAPIV3Schema: {type: object, required: 7}}"],
)
async def test_a_definition_of_another_shape_is_a_problem_of_its_document(desk: Desk, schema: str) -> None:
    definition = f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{plural: things, kind: Thing}}
  versions: [{{name: v1, served: true, storage: true, schema: {schema}}}]
"""
    thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: thing\nspec: 1\n"
    desk.git.create("team", {"definition.yaml": definition, "thing.yaml": thing})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        sync = await desk.reason("InvalidDocuments")
        assert "definition.yaml" in {document.path for document in sync.status.documents}
        assert any("schema" in document.message for document in sync.status.documents)
