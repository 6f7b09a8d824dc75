"""Where repositories are and who gets in, whose commits are trusted, where changes go, and what starts a run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.needs import needs
from tests.runtime.widgets import until_found
from tests.systems.gitops.desk import Desk, config, message
from tests.systems.gitops.test_both_ways import BOTH, edit, started
from trimtab.lab.git import run as git_run
from trimtab.lab.git_http import GitHttp
from trimtab.lab.git_ssh import GitSsh, key_pair
from trimtab.model.conditions import get_condition
from trimtab.model.kubernetes import ConfigMap
from trimtab.systems.gitops.kinds import Repository
from trimtab.testing.ports import free_ports

ONE = {"a.yaml": config("a", x="1")}


def read(path: Path) -> str:
    return path.read_text()


async def repository_is(desk: Desk, truth: str, name: str = "team") -> Repository:
    def holds(found: Repository) -> bool:
        ready = get_condition(found.status.conditions, "Ready") if found.status else None
        return ready is not None and ready.status == truth

    return await until_found(desk.client, Repository, name, desk.namespace, holds)


@pytest.mark.row(52)
async def test_a_token_gets_in_and_a_wrong_one_is_told_without_showing_it(desk: Desk, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with GitHttp(tmp_path / "http", port, username="lab", token="s3cr3t-t0ken") as server:
        server.repositories.create("team", ONE)
        await desk.secret("wrong", username="lab", token="n0t-this-0ne")
        await desk.secret("right", username="lab", token="s3cr3t-t0ken")
        async with desk.working():
            made = await desk.repository(endpoint=server.url("team"), secretRef={"name": "wrong"})
            refused = await repository_is(desk, "False")
            assert "n0t-this" not in str(refused.raw)
            await desk.sync()
            sync = await desk.reason("GitAuthFailed")
            assert "n0t-this" not in str(sync.raw)
            held = await desk.client.get(Repository, "team", desk.namespace)
            spec = held.spec.replace(secret_ref=type(made.spec.secret_ref)(name="right"))
            await desk.client.patch(held, held.replace(spec=spec))
            await repository_is(desk, "True")
            await desk.until(lambda sync: sync.status.last_applied_revision == server.repositories.head())


@pytest.mark.row(52)
@pytest.mark.slow
async def test_ssh_keys_get_in_when_the_host_is_known(desk: Desk, tmp_path: Path) -> None:
    needs("sshd")
    private, public = key_pair(tmp_path / "key")
    (port,) = free_ports(1)
    with GitSsh(tmp_path / "ssh", port, authorized=[public]) as server:
        server.repositories.create("team", ONE)
        await desk.secret("login", identity=read(private), known_hosts=server.known_hosts)
        await desk.repository(endpoint=server.url("team"), secretRef={"name": "login"})
        async with desk.working():
            await desk.sync()
            await desk.until(lambda sync: sync.status.last_applied_revision == server.repositories.head())
            found = await repository_is(desk, "True")
            assert found.status.revision == server.repositories.head()


async def test_only_commits_of_allowed_signers_are_applied(desk: Desk, tmp_path: Path) -> None:
    needs("ssh-keygen")
    private, public = key_pair(tmp_path / "key")
    await desk.secret("allowed", signers=f"ann@example.com {public}\n")
    await desk.secret("sign", identity=read(private))
    desk.git.create("team", ONE)
    await desk.repository()
    async with desk.working():
        await desk.sync(verify={"ssh": {"name": "allowed"}})
        assert "is not signed" in message(await desk.reason("Untrusted"))
        assert await desk.names() == []
        sign(desk, private)
        await desk.again()
        await desk.ready()
        assert await desk.names() == ["a"]
        desk.git.commit("team", {"b.yaml": config("b", x="1")})
        await desk.again()
        assert "is not signed" in message(await desk.reason("Untrusted"))
        assert await desk.names() == ["a"], "each commit is looked at, not only the first"
        desk.git.commit("team", {"b.yaml": None})
        sign(desk, private)
        await desk.again()
        await desk.change(**BOTH, sign={"secretRef": {"name": "sign"}})
        await desk.ready()
        await edit(desk, "a", x="2")
        await desk.until(lambda sync: b"2" in desk.git.read()["a.yaml"])
        await desk.ready()
        said = git_run("-C", str(desk.git.path()), "cat-file", "commit", "main")
        assert b"BEGIN SSH SIGNATURE" in said


async def test_our_commit_in_a_destination_vouches_for_nothing_that_others_put_there(
    desk: Desk, tmp_path: Path
) -> None:
    """Whoever may push and has no key lets us commit upon theirs, and moves the branch that is synced there."""
    needs("ssh-keygen")
    private, public = key_pair(tmp_path / "key")
    await desk.secret("allowed", signers=f"ann@example.com {public}\n")
    desk.git.create("team", ONE)
    sign(desk, private)
    await desk.repository()
    folder, live = str(desk.git.path()), {"repository": "team", "revision": "live", "path": ""}
    async with desk.working():
        await desk.sync(**BOTH, verify={"ssh": {"name": "allowed"}}, destination=live)
        await desk.ready()
        git_run("-C", folder, "update-ref", "refs/heads/live", "main")
        desk.git.commit("team", {"evil.yaml": config("evil", x="1")}, branch="live")
        await edit(desk, "a", x="2")
        await desk.until(lambda sync: sync.status.last_pushed_revision == desk.git.head("team", "live"))
        git_run("-C", folder, "update-ref", "refs/heads/main", "refs/heads/live")
        await desk.again()
        assert "is not signed" in message(await desk.reason("Untrusted"))
        assert await desk.names() == ["a"]


def sign(desk: Desk, key: Path) -> None:
    """Sign what the branch is at, as a person does."""
    folder = str(desk.git.path())
    signing = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={key}")
    tree = git_run("-C", folder, "rev-parse", "main^{tree}").decode().strip()
    made = git_run("-C", folder, *signing, "commit-tree", "-S", "-p", "main", "-m", "signed", tree).decode().strip()
    git_run("-C", folder, "update-ref", "refs/heads/main", made)


@pytest.mark.row(50)
async def test_changes_may_go_to_another_repository_than_documents_come_from(desk: Desk) -> None:
    desk.git.create("mirror", {"README.md": "what the system has"})
    await desk.repository("mirror")
    place = {"repository": "mirror", "revision": "main", "path": "live"}
    async with desk.working():
        await started(desk, ONE, destination=place, gitToSystem=True)
        before = desk.git.head()
        await edit(desk, "a", x="2")
        await desk.until(lambda sync: "live/a.yaml" in desk.git.read("mirror"))
        assert b"'2'" in desk.git.read("mirror")["live/a.yaml"] or b'"2"' in desk.git.read("mirror")["live/a.yaml"]
        assert desk.git.head() == before
        again = len(desk.git.history("mirror"))
        for _ in range(3):
            await desk.again()
        assert len(desk.git.history("mirror")) == again


@pytest.mark.row(51)
async def test_an_interval_finds_new_commits_and_drift_without_a_word(desk: Desk) -> None:
    desk.git.create("team", ONE)
    await desk.repository()
    async with desk.working():
        await desk.sync(triggers={"interval": "1s"})
        await desk.ready()
        desk.git.commit("team", {"a.yaml": config("a", x="2")})
        await desk.ready()
        held = await desk.client.get(ConfigMap, "a", desk.namespace)
        await desk.client.patch(held, held.replace(data={"x": "drifted"}))
        await until_found(desk.client, ConfigMap, "a", desk.namespace, lambda found: found.data == {"x": "2"})


@pytest.mark.row(51)
async def test_a_cron_line_starts_runs_and_a_wrong_one_is_told(desk: Desk) -> None:
    desk.git.create("team", ONE)
    await desk.repository()
    async with desk.working():
        await desk.sync(triggers={"interval": "1h", "cron": ["every day"]})
        sync = await desk.reason("InvalidSchedule")
        assert "spec.triggers.cron[0]" in message(sync)
        await desk.change(triggers={"interval": "1h", "cron": ["@daily"], "timeZone": "Mars/Olympus"})
        await desk.until(lambda sync: message(sync).startswith("spec.triggers.timeZone: "))
        conductor = desk.controller.conductor if desk.controller else None
        assert conductor is not None
        await desk.change(triggers={"interval": "1h", "cron": ["* * * * *"]})
        sync = await desk.ready()
        due = conductor._cron_due(sync)
        assert due is not None
        assert 0 <= due <= 60


async def test_a_repository_that_moved_is_synced_at_once(desk: Desk) -> None:
    desk.git.create("team", ONE)
    other = desk.git.create("other", {"b.yaml": config("b", x="1")})
    made = await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        held = await desk.client.get(Repository, made.name, desk.namespace)
        spec = msgspec.structs.replace(held.spec, endpoint=desk.url("other"))
        await desk.client.patch(held, held.replace(spec=spec))
        await desk.ready(revision=other)
        assert await desk.names() == ["b"]


async def test_new_secrets_are_not_taken_up_even_when_they_are_named(desk: Desk) -> None:
    desk.git.create("team", ONE)
    await desk.repository()
    await desk.secret("login", password="hunter2")
    async with desk.working():
        await desk.sync(systemToGit=True, include=["*", "Secret", "ServiceAccount"])
        await desk.reason("Synced")
        assert not any("secrets" in path or "serviceaccounts" in path for path in desk.git.read("team"))


async def test_a_key_that_cannot_sign_is_told_and_nothing_is_pushed(desk: Desk) -> None:
    await desk.secret("sign", identity="no key at all")
    async with desk.working():
        await started(desk, ONE, sign={"secretRef": {"name": "sign"}})
        await edit(desk, "a", x="2")
        sync = await desk.reason("CredentialsMissing")
        assert "the signing key cannot be read" in message(sync)
        assert sync.status.history[0].reason == "CredentialsMissing"
        assert len(desk.git.history()) == 1
