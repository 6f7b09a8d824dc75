"""Where repositories are and who gets in, whose commits are trusted, where changes go, and what starts a run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.needs import needs
from tests.runtime.git.conftest import run_gpg
from tests.runtime.widgets import until_found
from tests.systems.gitops.desk import Desk, config, message
from tests.systems.gitops.test_both_ways import BOTH, edit, started
from trimtab.lab.git import run as git_run
from trimtab.lab.git_http import GitHttp
from trimtab.lab.git_ssh import GitSsh, key_pair
from trimtab.model.conditions import get_condition
from trimtab.model.kubernetes import ConfigMap
from trimtab.systems.gitops.kinds import Repository
from trimtab.systems.gitops.kinds.fields import SecretName
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

ONE = {"a.yaml": config("a", x="1")}


def read(path: Path) -> str:
    return path.read_text()


async def repository_is(desk: Desk, truth: str, name: str = "team") -> Repository:
    def holds(found: Repository) -> bool:
        ready = get_condition(found.status.conditions, "Ready") if found.status else None
        return ready is not None and ready.status == truth

    return await until_found(desk.client, Repository, name, desk.namespace, holds)


async def log_in(desk: Desk, secret: str) -> None:
    """By this Secret from now on."""
    held = await desk.client.get(Repository, "team", desk.namespace)
    await desk.client.patch(held, held.replace(spec=held.spec.replace(secret_ref=SecretName(name=secret))))


@pytest.mark.row(52)
async def test_a_token_gets_in_and_a_wrong_one_is_told_without_showing_it(desk: Desk, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with GitHttp(tmp_path / "http", port, username="lab", token="s3cr3t-t0ken") as server:
        server.repositories.create("team", ONE)
        await desk.secret("wrong", username="lab", token="n0t-this-0ne")
        await desk.secret("right", username="lab", token="s3cr3t-t0ken")
        async with desk.working():
            await desk.repository(endpoint=server.url("team"), secretRef={"name": "wrong"})
            refused = await repository_is(desk, "False")
            assert "n0t-this" not in str(refused.raw)
            await desk.sync()
            sync = await desk.reason("GitAuthFailed")
            assert "n0t-this" not in str(sync.raw)
            await log_in(desk, "right")
            await repository_is(desk, "True")
            await desk.until(lambda sync: sync.status.last_applied_revision == server.repositories.head())


@pytest.mark.row(52)
async def test_a_server_is_believed_when_its_authority_is_given_or_it_may_be_anybody(
    desk: Desk, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    pair, (port,) = authority.server("git"), free_ports(1)
    with GitHttp(tmp_path / "https", port, token="t0ken", certificate=pair.certificate, key=pair.key) as server:
        server.repositories.create("team", ONE)
        await desk.secret("without", token="t0ken")
        await desk.secret("with", token="t0ken", **{"ca.crt": read(authority.certificate)})
        async with desk.working():
            await desk.repository(endpoint=server.url("team"), secretRef={"name": "without"})
            await desk.sync()
            await unknown_host(desk, "give the CA that signed it")
            await log_in(desk, "with")
            await desk.until(lambda sync: sync.status.last_applied_revision == server.repositories.head())
            await repository_is(desk, "True")
            await desk.repository("any", endpoint=server.url("team"), secretRef={"name": "without"}, insecure=True)
            await repository_is(desk, "True", "any")


@pytest.mark.row(52)
async def test_ssh_keys_get_in_when_the_host_is_known(desk: Desk, tmp_path: Path) -> None:
    needs("sshd")
    private, public = key_pair(tmp_path / "key")
    _, other = key_pair(tmp_path / "other")
    (port,) = free_ports(1)
    with GitSsh(tmp_path / "ssh", port, authorized=[public]) as server:
        server.repositories.create("team", ONE)
        await desk.secret("wrong", identity=read(private), known_hosts=f"[127.0.0.1]:{port} {other}\n")
        await desk.secret("login", identity=read(private), known_hosts=server.known_hosts)
        await desk.repository(endpoint=server.url("team"), secretRef={"name": "wrong"})
        async with desk.working():
            await desk.sync()
            await unknown_host(desk, "is not in known_hosts")
            await log_in(desk, "login")
            await desk.until(lambda sync: sync.status.last_applied_revision == server.repositories.head())
            found = await repository_is(desk, "True")
            assert found.status.revision == server.repositories.head()


async def unknown_host(desk: Desk, words: str) -> None:
    """The Repository and its sync say so, in these words, and nothing is applied."""
    found = await repository_is(desk, "False")
    ready = get_condition(found.status.conditions, "Ready")
    assert ready is not None
    assert (ready.reason, words in ready.message) == ("HostKeyUnknown", True)
    assert words in message(await desk.reason("GitHostKeyUnknown"))
    assert await desk.names() == []


class Ann(msgspec.Struct, frozen=True):
    """A person with a key: as Secrets have it, and as her Git is set up to sign and to verify."""

    form: str
    public: str
    private: str
    settings: tuple[str, ...]


@pytest.fixture(params=["ssh", "pgp"])
def ann(request: pytest.FixtureRequest, tmp_path: Path) -> Ann:
    if request.param == "pgp":
        home = request.getfixturevalue("gpg")
        program = tmp_path / "gpg"
        program.write_text(f'#!/bin/sh\nexec gpg --homedir {home} "$@"\n')
        program.chmod(0o755)
        public, private = (run_gpg(home, "--armor", word).decode() for word in ("--export", "--export-secret-keys"))
        return Ann("pgp", public, private, (f"gpg.program={program}", "user.signingkey=ann@example.com"))
    needs("ssh-keygen")
    key, public = key_pair(tmp_path / "key")
    allowed = tmp_path / "allowed"
    allowed.write_text(f"ann@example.com {public}\n")
    settings = ("gpg.format=ssh", f"user.signingkey={key}", f"gpg.ssh.allowedSignersFile={allowed}")
    return Ann("ssh", read(allowed), read(key), settings)


async def test_only_commits_of_allowed_signers_are_applied(desk: Desk, ann: Ann) -> None:
    await desk.secret("allowed", signers=ann.public)
    desk.git.create("team", ONE)
    await desk.repository()
    async with desk.working():
        await desk.sync(verify={ann.form: {"name": "allowed"}})
        assert "is not signed" in message(await desk.reason("Untrusted"))
        assert await desk.names() == []
        sign(desk, ann)
        await desk.again()
        await desk.ready()
        assert await desk.names() == ["a"]
        desk.git.commit("team", {"b.yaml": config("b", x="1")})
        await desk.again()
        assert "is not signed" in message(await desk.reason("Untrusted"))
        assert await desk.names() == ["a"], "each commit is looked at, not only the first"


async def test_our_commits_are_signed_by_the_key_that_is_given_and_git_itself_verifies_them(
    desk: Desk, ann: Ann
) -> None:
    await desk.secret("allowed", signers=ann.public)
    await desk.secret("sign", identity=ann.private)
    desk.git.create("team", ONE)
    sign(desk, ann)
    await desk.repository()
    async with desk.working():
        await desk.sync(**BOTH, verify={ann.form: {"name": "allowed"}}, sign={"secretRef": {"name": "sign"}})
        await desk.ready()
        await edit(desk, "a", x="2")
        await desk.until(lambda sync: b"2" in desk.git.read()["a.yaml"])
        await desk.ready()
        git_as(ann, desk, "verify-commit", "main")


@pytest.mark.parametrize("ann", ["ssh"], indirect=True)
async def test_our_commit_in_a_destination_vouches_for_nothing_that_others_put_there(desk: Desk, ann: Ann) -> None:
    """Whoever may push and has no key lets us commit upon theirs, and moves the branch that is synced there."""
    await desk.secret("allowed", signers=ann.public)
    desk.git.create("team", ONE)
    sign(desk, ann)
    await desk.repository()
    folder, live = str(desk.git.path()), {"repository": "team", "revision": "live", "path": ""}
    async with desk.working():
        await desk.sync(**BOTH, verify={ann.form: {"name": "allowed"}}, destination=live)
        await desk.ready()
        git_run("-C", folder, "update-ref", "refs/heads/live", "main")
        desk.git.commit("team", {"evil.yaml": config("evil", x="1")}, branch="live")
        await edit(desk, "a", x="2")
        await desk.until(lambda sync: sync.status.last_pushed_revision == desk.git.head("team", "live"))
        git_run("-C", folder, "update-ref", "refs/heads/main", "refs/heads/live")
        await desk.again()
        assert "is not signed" in message(await desk.reason("Untrusted"))
        assert await desk.names() == ["a"]


def sign(desk: Desk, ann: Ann) -> None:
    """Sign what the branch is at, as a person does."""
    tree = git_as(ann, desk, "rev-parse", "main^{tree}")
    git_as(
        ann,
        desk,
        "update-ref",
        "refs/heads/main",
        git_as(ann, desk, "commit-tree", "-S", "-p", "main", "-m", "x", tree),
    )


def git_as(ann: Ann, desk: Desk, *words: str) -> str:
    settings = (word for setting in ann.settings for word in ("-c", setting))
    return git_run("-C", str(desk.git.path()), *settings, *words).decode().strip()


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
