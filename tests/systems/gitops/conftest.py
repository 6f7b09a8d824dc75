"""Both homes, with the kinds of Git sync defined as CRDs: `desk` has the system, and a real Git daemon."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.needs import needs
from tests.runtime.conftest import client, scheme
from tests.runtime.git.conftest import gpg
from trimtab.client.api import ApiClient
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.gitops.kinds import GitSync, Repository, SyncConflict
from trimtab.testing.ports import free_ports

if TYPE_CHECKING:
    from tests.systems.gitops.desk import Desk

__all__ = ["client", "gpg", "scheme"]

KINDS = (Repository, GitSync, SyncConflict)


@pytest.fixture
async def namespace(client: ApiClient) -> str:
    """One of the test's own."""
    name = f"gitops-{uuid.uuid4().hex[:12]}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


@pytest.fixture
async def defined(client: ApiClient, scheme: Scheme) -> ApiClient:
    """The kinds are served. On a cluster they stay: tests are apart by namespace."""
    for kind in KINDS:
        scheme.register(kind)
    await prepare(client, (System(name="gitops", kinds=KINDS),), rights=False)
    return client


@pytest.fixture(scope="session")
def git_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitDaemon]:
    """One for all; each test has repositories of its own."""
    needs("git")
    (port,) = free_ports(1)
    with GitDaemon(tmp_path_factory.mktemp("git"), port) as daemon:
        yield daemon


@pytest.fixture
def desk(defined: ApiClient, namespace: str, tmp_path: Path, git_daemon: GitDaemon) -> Desk:
    """Git sync, ready to work in a namespace of its own."""
    from tests.systems.gitops.desk import Desk

    return Desk(defined, namespace, tmp_path, git_daemon)
