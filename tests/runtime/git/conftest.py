"""Real Git servers on loopback, one of each kind for the whole run; each test has repositories of its own there."""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.needs import needs
from trimtab.lab.git import GitServer
from trimtab.lab.git_daemon import GitDaemon
from trimtab.lab.git_http import GitHttp
from trimtab.lab.git_ssh import GitSsh, key_pair
from trimtab.model.redacted import Redacted
from trimtab.runtime.git import Access, Limits, Mirror, Person, Remote
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

ME = Person(name="Trimtab", email="trimtab@example.com")
_numbers = itertools.count()


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A repository at a server, and how to reach it."""

    name: str
    repositories: GitServer
    remote: Remote
    folder: Path
    port: int

    def mirror(self, name: str = "mirror", *, limits: Limits | None = None, **access: Any) -> Mirror:
        remote = self.remote
        if access:
            remote = msgspec.structs.replace(remote, access=msgspec.structs.replace(remote.access, **access))
        return Mirror(self.folder / name, remote, limits=limits)

    def through(self, port: int, name: str = "mirror", *, limits: Limits | None = None) -> Mirror:
        """The same by way of another port."""
        url = self.remote.url.replace(f":{self.port}/", f":{port}/")
        access = self.remote.access
        hosts = access.known_hosts.replace(f":{self.port} ", f":{port} ")
        access = msgspec.structs.replace(access, known_hosts=hosts)
        return Mirror(self.folder / name, Remote(url=url, access=access), limits=limits)

    def head(self, branch: str = "main") -> str:
        return self.repositories.head(self.name, branch)

    def content(self, revision: str = "main") -> dict[str, bytes]:
        return self.repositories.read(self.name, revision)

    def commit(self, changes: dict[str, Any], **more: Any) -> str:
        return self.repositories.commit(self.name, changes, **more)


Made = tuple[GitServer, Callable[[str], str], Access, int]


@pytest.fixture(scope="session")
def git_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    needs("git")
    with GitDaemon(tmp_path_factory.mktemp("daemon"), free_ports(1)[0]) as server:
        yield server.repositories, server.url, Access(), server.port


@pytest.fixture(scope="session")
def git_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    needs("git")
    folder = tmp_path_factory.mktemp("http")
    with GitHttp(folder, free_ports(1)[0], username="ann", password="pass-of-ann") as server:
        access = Access(username="ann", password=Redacted("pass-of-ann"))
        yield server.repositories, server.url, access, server.port


@pytest.fixture(scope="session")
def git_https(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    needs("git")
    folder = tmp_path_factory.mktemp("https")
    authority = Authority(folder)
    pair = authority.server("git")
    with GitHttp(
        folder / "server", free_ports(1)[0], token="token-of-ann", certificate=pair.certificate, key=pair.key
    ) as server:
        access = Access(token=Redacted("token-of-ann"), ca=authority.certificate.read_text())
        yield server.repositories, server.url, access, server.port


@pytest.fixture(scope="session")
def git_ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    needs("git", "sshd", "ssh", "ssh-keygen")
    folder = tmp_path_factory.mktemp("ssh")
    private, public = key_pair(folder / "key")
    locked, public_of_locked = key_pair(folder / "locked", passphrase="open sesame")
    with GitSsh(folder / "server", free_ports(1)[0], authorized=[public, public_of_locked]) as server:
        access = Access(key=Redacted(private.read_bytes()), known_hosts=server.known_hosts)
        (server.repositories.folder / "locked-key").write_bytes(locked.read_bytes())
        yield server.repositories, server.url, access, server.port


SSH = pytest.param("git_ssh", marks=pytest.mark.slow)
"""A connection by ssh takes a second; logins by it are in test_access, not marked."""
TRANSPORTS = ("git_daemon", "git_https", SSH)


@pytest.fixture(params=TRANSPORTS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A repository with two files, by each transport in turn."""
    return made(request, request.param, tmp_path)


@pytest.fixture(params=["git_daemon", pytest.param("git_https", marks=pytest.mark.slow), SSH])
def bumpy_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The same, for what goes wrong on the way."""
    return made(request, request.param, tmp_path)


def made(request: pytest.FixtureRequest, transport: str, folder: Path) -> Place:
    repositories, url, access, port = request.getfixturevalue(transport)
    name = f"team-{next(_numbers)}"
    repositories.create(name, {"a.yaml": "a: 1\n", "apps/b.yaml": "b: 2\n"})
    return Place(
        name=name, repositories=repositories, remote=Remote(url=url(name), access=access), folder=folder, port=port
    )


@pytest.fixture
def daemon_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return made(request, "git_daemon", tmp_path)


@pytest.fixture
def gpg() -> Iterator[Path]:
    """A home of gpg with a key of Ann's; in a short path, for the sake of its socket."""
    needs("gpg")
    with tempfile.TemporaryDirectory(prefix="ann-", ignore_cleanup_errors=True) as place:
        home = Path(place)
        run_gpg(home, "--passphrase", "", "--quick-generate-key", "Ann <ann@example.com>", "ed25519", "sign")
        yield home
        subprocess.run(["gpgconf", "--homedir", place, "--kill", "all"], check=False, capture_output=True)


def run_gpg(home: Path, *words: str) -> bytes:
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    command = ["gpg", "--homedir", str(home), "--batch", "--pinentry-mode", "loopback", *words]
    return subprocess.run(command, check=True, capture_output=True, env=env, stdin=subprocess.DEVNULL).stdout
