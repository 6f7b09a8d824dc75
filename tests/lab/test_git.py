"""The lab's Git servers are real ones: the git program, as anybody runs it, gets in and out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import needs
from trimtab.lab.git import GitServer, environment
from trimtab.lab.git_daemon import GitDaemon
from trimtab.lab.git_http import GitHttp
from trimtab.lab.git_ssh import GitSsh, key_pair
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports


def _git(folder: Path, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    every = environment() | (env or {})
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, env=every, check=False)


def _clone_change_push(url: str, folder: Path, *settings: str, env: dict[str, str] | None = None) -> None:
    words = [part for setting in settings for part in ("-c", setting)]
    cloned = _git(folder, *words, "clone", "--quiet", url, "work", env=env)
    assert cloned.returncode == 0, cloned.stderr
    (folder / "work" / "new").write_text("new")
    for command in (["add", "new"], ["commit", "-qm", "New"], ["push", "-q", "origin", "HEAD:main"]):
        done = _git(folder / "work", *words, *command, env=env)
        assert done.returncode == 0, done.stderr


def test_a_folder_of_repositories_is_seeded_changed_and_read(tmp_path: Path) -> None:
    needs("git")
    server = GitServer(tmp_path)
    first = server.create("team", {"a": "1", "b/c": b"\0\xff"})
    second = server.commit("team", {"a": None, "d": "4"}, message="Say more", who="Ann <ann@example.com>")
    assert server.read() == {"b/c": b"\0\xff", "d": b"4"}
    assert server.read("team", first) == {"a": b"1", "b/c": b"\0\xff"}
    assert server.history() == [second, first]
    rewritten = server.commit("team", {"z": "26"}, force_from="")
    assert server.history() == [rewritten]
    assert server.head("team", "absent") == ""


def test_git_daemon_takes_clones_and_pushes(tmp_path: Path) -> None:
    needs("git")
    with GitDaemon(tmp_path / "server", free_ports(1)[0]) as server:
        server.repositories.create("team", {"a": "1"})
        _clone_change_push(server.url(), tmp_path)
        assert server.repositories.read() == {"a": b"1", "new": b"new"}


def test_http_and_https_ask_for_a_login(tmp_path: Path) -> None:
    needs("git")
    pair = Authority(tmp_path).server("git")
    plain = GitHttp(tmp_path / "http", free_ports(1)[0], password="word")
    secure = GitHttp(tmp_path / "https", free_ports(1)[0], token="token", certificate=pair.certificate, key=pair.key)
    with plain, secure:
        for number, (server, word) in enumerate(((plain, "word"), (secure, "token"))):
            server.repositories.create("team", {"a": "1"})
            assert (
                "could not read Username"
                in _git(tmp_path, "-c", "http.sslVerify=false", "ls-remote", server.url()).stderr
            )
            place = tmp_path / str(number)
            place.mkdir()
            url = server.url().replace("://", f"://lab:{word}@")
            _clone_change_push(url, place, f"http.sslCAInfo={tmp_path}/ca.crt", "http.postBuffer=65536")
            assert server.repositories.read() == {"a": b"1", "new": b"new"}


def test_ssh_lets_keys_in_for_git_and_nothing_else(tmp_path: Path) -> None:
    needs("git", "sshd", "ssh", "ssh-keygen")
    private, public = key_pair(tmp_path / "key")
    with GitSsh(tmp_path / "server", free_ports(1)[0], authorized=[public]) as server:
        (tmp_path / "known").write_text(server.known_hosts)
        ssh = f"ssh -F /dev/null -i {private} -o UserKnownHostsFile={tmp_path}/known -o BatchMode=yes"
        server.repositories.create("team", {"a": "1"})
        _clone_change_push(server.url(), tmp_path, env={"GIT_SSH_COMMAND": ssh})
        assert server.repositories.read() == {"a": b"1", "new": b"new"}
        words = [*ssh.split(), "-p", str(server.port), f"{server.username}@127.0.0.1", "id"]
        other = subprocess.run(words, capture_output=True, text=True, check=False)
        assert other.returncode != 0
        assert "uid=" not in other.stdout


@pytest.mark.parametrize("hook", ["pre-receive", "update"])
def test_a_hook_of_the_server_may_refuse(tmp_path: Path, hook: str) -> None:
    needs("git")
    with GitDaemon(tmp_path / "server", free_ports(1)[0]) as server:
        server.repositories.create("team", {"a": "1"})
        server.repositories.hook("team", hook, "#!/bin/sh\necho not today >&2\nexit 1\n")
        with pytest.raises(AssertionError, match="not today"):
            _clone_change_push(server.url(), tmp_path)
