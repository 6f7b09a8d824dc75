"""Getting in, and being told why not: passwords, tokens, keys, certificates, host keys."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.needs import needs
from tests.runtime.git.conftest import ME, Place, made
from trimtab.lab.git import GitServer
from trimtab.lab.git_http import GitHttp
from trimtab.lab.git_ssh import key_pair
from trimtab.lab.sshd import SHARED, UID, Sshd
from trimtab.model.redacted import Redacted
from trimtab.runtime.git import Access, AuthFailed, GitMissing, HostKeyUnknown, Mirror, Refused, Remote, Unreachable
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.row(52)


@pytest.fixture
def http(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return made(request, "git_http", tmp_path)


@pytest.fixture
def https(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return made(request, "git_https", tmp_path)


@pytest.fixture
def ssh(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return made(request, "git_ssh", tmp_path)


async def test_a_password_lets_in_and_a_wrong_one_is_told_without_it(http: Place) -> None:
    assert await http.mirror().heads() == {"main": http.head()}
    for wrong in ({"password": Redacted("guessed-word")}, {"password": None}, {"username": "eve"}):
        with pytest.raises(AuthFailed, match="give credentials") as raised:
            await http.mirror(**wrong).fetch("main")
        assert "guessed-word" not in str(raised.value)
        assert "pass-of-ann" not in str(raised.value)


async def test_a_token_is_the_password_of_a_username_or_of_anybody(https: Place) -> None:
    """The server takes Basic only, as those of GitHub and others do."""
    mirror = https.mirror()
    head = (await mirror.fetch("main"))["main"]
    commit = await mirror.commit(head, {"x": b"x"}, message="X", author=ME, committer=ME)
    await mirror.push(commit, "main", expected=head)
    assert await https.mirror(username="oauth2").heads() == {"main": commit}
    with pytest.raises(AuthFailed):
        await https.mirror(token=Redacted("old")).heads()


async def test_a_repository_that_is_not_there_is_told(http: Place) -> None:
    remote = Remote(url=http.remote.url.replace(http.name, "absent"), access=http.remote.access)
    with pytest.raises(AuthFailed, match="shows no such repository"):
        await Mirror(http.folder / "absent", remote).heads()


async def test_only_the_given_authority_vouches_for_a_server(https: Place, tmp_path: Path) -> None:
    (tmp_path / "another").mkdir()
    another = Authority(tmp_path / "another").certificate.read_text()
    for ca in ("", another):
        with pytest.raises(HostKeyUnknown, match="give the CA"):
            await https.mirror(ca=ca).heads()
    assert await https.mirror(ca="", insecure=True).heads() == {"main": https.head()}


async def test_a_redirect_is_not_followed_so_credentials_stay_where_they_belong(tmp_path: Path, http: Place) -> None:
    for number, target in enumerate((f"http://127.0.0.1:{http.port}", "file:///etc", "https://127.0.0.1:1")):
        folder = tmp_path / str(number)
        with GitHttp(folder, free_ports(1)[0], username="ann", password="pass-of-ann", redirect=target) as server:
            url = f"http://127.0.0.1:{server.port}/moved/{http.name}.git"
            with pytest.raises(Unreachable, match="sends us elsewhere"):
                await Mirror(folder / "mirror", Remote(url=url, access=http.remote.access)).fetch("main")


async def test_a_server_that_repeats_the_secret_does_not_make_us_show_it(tmp_path: Path, http: Place) -> None:
    place = http
    place.repositories.hook(place.name, "pre-receive", "#!/bin/sh\necho no pass-of-ann here >&2\nexit 1\n")
    mirror = place.mirror()
    head = (await mirror.fetch("main"))["main"]
    commit = await mirror.commit(head, {"x": b"x"}, message="X", author=ME, committer=ME)
    with pytest.raises(Refused, match=r"no \[redacted\] here") as raised:
        await mirror.push(commit, "main", expected=head)
    assert "pass-of-ann" not in str(raised.value)


@pytest.mark.parametrize("name", ["my projects", "100%", "'", '"'])
async def test_a_key_lets_in_wherever_it_is_kept(ssh: Place, name: str) -> None:
    """A folder of this machine may have any name; ssh means something by these."""
    mirror = ssh.mirror(name)
    head = (await mirror.fetch("main"))["main"]
    commit = await mirror.commit(head, {"x": b"x"}, message="X", author=ME, committer=ME)
    await mirror.push(commit, "main", expected=head)
    assert ssh.head() == commit


async def test_a_key_with_a_passphrase_lets_in(ssh: Place) -> None:
    key = Redacted((ssh.repositories.folder / "locked-key").read_bytes())
    assert await ssh.mirror(key=key, passphrase=Redacted("open sesame")).heads() == {"main": ssh.head()}
    with pytest.raises(AuthFailed) as raised:
        await ssh.mirror(key=key, passphrase=Redacted("guessed-word")).heads()
    assert "guessed-word" not in str(raised.value)


async def test_another_key_does_not_and_neither_do_the_keys_of_this_account(
    ssh: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_bytes(ssh.remote.access.key.reveal_bytes())  # type: ignore[union-attr]
    (home / ".ssh" / "id_ed25519").chmod(0o600)
    monkeypatch.setenv("HOME", str(home))
    another, _ = key_pair(tmp_path / "another")
    with pytest.raises(AuthFailed):
        await ssh.mirror(key=Redacted(another.read_bytes())).heads()
    with pytest.raises(AuthFailed):
        await ssh.mirror(key=None, password=Redacted("any")).heads()


async def test_a_host_key_that_is_not_known_ends_it_before_anything_is_said(ssh: Place, tmp_path: Path) -> None:
    _, other = key_pair(tmp_path / "host")
    wrong = f"[127.0.0.1]:{ssh.port} {other}"
    elsewhere = ssh.remote.access.known_hosts.replace("127.0.0.1", "127.0.0.2")
    for known in (wrong, elsewhere, "# nothing"):
        with pytest.raises(HostKeyUnknown, match="not in known_hosts"):
            await ssh.mirror(known_hosts=known).fetch("main")
    with pytest.raises(HostKeyUnknown, match="ssh-keyscan"):
        await ssh.mirror(known_hosts="").fetch("main")
    assert await ssh.mirror(known_hosts="", insecure=True).heads() == {"main": ssh.head()}


async def test_the_scp_form_and_the_username_of_the_credentials_are_used(ssh: Place) -> None:
    url = ssh.remote.url.replace(f"{getpass.getuser()}@", "")
    access = msgspec.structs.replace(ssh.remote.access, username=getpass.getuser())
    assert await Mirror(ssh.folder / "plain", Remote(url=url, access=access)).heads() == {"main": ssh.head()}


async def test_a_password_lets_in_by_ssh(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    needs("sshd", "ssh", "unshare", root=True)
    folder = tmp_path_factory.mktemp("password")
    server = GitServer(folder / "repositories")
    head = server.create("team", {"a": "a"})
    serve = folder / "repositories" / "serve"
    serve.write_text(
        f"#!/bin/sh\nexport GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'\n"
        f'cd {SHARED}/repositories && exec git-shell -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    serve.chmod(0o755)
    for path in (folder / "repositories").rglob("*"):
        os.chown(path, UID, UID)
    os.chown(folder / "repositories", UID, UID)
    port = free_ports(1)[0]
    shared = {"repositories": folder / "repositories"}
    with Sshd(
        folder / "sshd", port, password="word of lab", shared=shared,
        settings=[f"ForceCommand {SHARED}/repositories/serve"],
    ) as sshd:  # fmt: skip
        hosts = f"[127.0.0.1]:{port} {sshd.host_keys[0].export_public_key().decode()}"
        access = Access(username="lab", password=Redacted("word of lab"), known_hosts=hosts)
        remote = Remote(url=f"ssh://127.0.0.1:{port}{SHARED}/repositories/team.git", access=access)
        mirror = Mirror(tmp_path / "mirror", remote)
        assert await mirror.fetch("main") == {"main": head}
        wrong = msgspec.structs.replace(access, password=Redacted("guess"))
        with pytest.raises(AuthFailed):
            await Mirror(tmp_path / "wrong", Remote(url=remote.url, access=wrong)).heads()


async def test_nothing_of_the_account_s_git_configuration_is_used(
    daemon_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration that would send every URL elsewhere, and hooks that would leave a trace."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        '[url "git://127.0.0.1:1/"]\n\tinsteadOf = git://127.0.0.1\n[core]\n\tpager = touch /nonexistent\n'
        f"[core]\n\thooksPath = {home}\n[user]\n\tname = Nobody\n[init]\n\tdefaultBranch = other\n"
    )
    (home / "pre-push").write_text(f"#!/bin/sh\ntouch {home}/ran\nexit 1\n")
    (home / "pre-push").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_DIR", str(home))
    monkeypatch.setenv("GIT_SSH_COMMAND", "false")
    mirror = daemon_place.mirror()
    head = (await mirror.fetch("main"))["main"]
    commit = await mirror.commit(head, {"x": b"x"}, message="X", author=ME, committer=ME)
    await mirror.push(commit, "main", expected=head)
    assert not (home / "ran").exists()


async def test_no_key_is_left_behind_and_none_is_among_the_arguments(ssh: Place) -> None:
    mirror = ssh.mirror()
    await mirror.fetch("main")
    secret = ssh.remote.access.key.reveal_bytes()  # type: ignore[union-attr]
    left = [path for path in mirror.folder.rglob("*") if path.is_file() and secret.strip() in path.read_bytes()]
    assert left == []
    assert not list((mirror.folder / "repository").glob("run-*"))


async def test_a_machine_without_git_is_told_what_to_install(
    daemon_place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(GitMissing, match="install the package 'git'"):
        await daemon_place.mirror().fetch("main")


def test_who_only_names_a_remote_does_not_carry_libgit2() -> None:
    code = "import sys, trimtab.runtime.git; print(*{'pygit2', 'cryptography', 'aiohttp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
