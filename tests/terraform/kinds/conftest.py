"""`trimtab up`, its kinds as Terraform sees them, and the real Terraform with our provider attached to it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terraform.kinds import water
from tests.terraform.kinds.terraforming import Terraform, attached
from trimtab.terraform.kinds.access import Settings, access
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.precomputing import taken
from trimtab.terraform.kinds.snapshot import Snapshot, write_snapshot
from trimtab.terraform.shipped import shipped_hints
from trimtab.testing.embedded import TrimtabServer

_numbers = itertools.count()


@pytest.fixture(scope="session")
def api(trimtab_server: TrimtabServer) -> Iterator[Api]:
    made = Api(access(Settings(kubeconfig=str(trimtab_server.kubeconfig)), {}))
    yield made
    made.close()


@pytest.fixture(scope="session")
def snapshot(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path = tmp_path_factory.mktemp("kinds") / "kinds"
    write_snapshot(path, taken(api.get, shipped_hints()))
    return Snapshot(path)


@pytest.fixture
def project(request: pytest.FixtureRequest, api: Api) -> str:
    """A project, and its namespace, of this test alone."""
    words = re.sub(r"[^a-z0-9]+", "-", request.function.__name__.removeprefix("test_"))[:36].strip("-")
    name = f"{words}-{next(_numbers)}"
    make_project(api, name)
    return name


@pytest.fixture
def tf(tmp_path: Path, snapshot: Snapshot, trimtab_server: TrimtabServer, project: str) -> Iterator[Terraform]:
    with attached(tmp_path, snapshot, trimtab_server.kubeconfig, project) as running:
        yield running


def make_project(api: Api, name: str) -> None:
    """Its namespace is made first, so that nothing has to be waited for."""
    api.apply(
        f"/api/v1/namespaces/{name}",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
    )
    api.apply(
        f"/apis/hub.trimtab.dev/v3/projects/{name}",
        {
            "apiVersion": "hub.trimtab.dev/v3",
            "kind": "Project",
            "metadata": {"name": name},
            "spec": {"adopt": True, "deletion": "Cascade"},
        },
    )


class Waters:
    """A server of its own with a kind of a user's own, and its snapshot."""

    def __init__(self, server: TrimtabServer, folder: Path) -> None:
        self.kubeconfig = server.kubeconfig
        self.api = Api(access(Settings(kubeconfig=str(server.kubeconfig)), {}))
        before = taken(self.api.get)
        write_snapshot(folder / "before", before)
        self.before = Snapshot(folder / "before")
        water.define(self.api, water.BUOYS)
        write_snapshot(folder / "kinds", taken(self.api.get))
        self.kinds = Snapshot(folder / "kinds")


@pytest.fixture(scope="session")
def waters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waters]:
    folder = tmp_path_factory.mktemp("waters")
    with TrimtabServer(folder, flags=("--systems", "discovery")) as server:
        made = Waters(server, folder)
        yield made
        made.api.close()


@pytest.fixture
def sea(tmp_path: Path, waters: Waters) -> Iterator[Terraform]:
    with attached(tmp_path, waters.kinds, waters.kubeconfig, "default") as running:
        yield running
