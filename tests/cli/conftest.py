"""The program, run as people run it: in a process of its own, through `zygote.py`; `installed` runs it from its file."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.model.scheme import Untyped
from trimtab.model.yaml import load
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleIPRange, Target, TargetConnectionProfile
from trimtab.systems.images.kinds import SBOM, DiscoveryJob, Image, Registry, VEXSource, VulnerabilityReport
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer

KINDS = (DiscoveryRule, DiscoveryRuleIPRange, Target, TargetConnectionProfile)
IMAGES = (Registry, DiscoveryJob, Image, SBOM, VulnerabilityReport, VEXSource)
PROGRAM = str(Path(sys.executable).with_name("trimtab"))

_numbers = itertools.count(1)


class Ran(msgspec.Struct, frozen=True):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """The words of a table, without its header."""
        return [line.split() for line in self.lines[1:]]


class Program:
    """`trimtab …` in a folder of its own, for one namespace of one server."""

    def __init__(self, folder: Path, env: dict[str, str], zygote: Zygote, namespace: str = "") -> None:
        self.folder = folder
        self.env = env
        self.namespace = namespace
        self._zygote = zygote

    def __call__(self, *words: str, stdin: str = "") -> Ran:
        ran = self._zygote.run({"words": words, "folder": str(self.folder), "env": self.env, "stdin": stdin})
        assert "Traceback" not in ran.err, ran.err
        return ran

    def installed(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        settings: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "cwd": self.folder, "env": self.env}
        return subprocess.Popen([PROGRAM, *words], **{**settings, **more})

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name


class Zygote:
    """A process that has the program imported and runs it on demand."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, asked: dict[str, Any]) -> Ran:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Ran(**json.loads(self._process.stdout.readline()))

    def stop(self) -> None:
        self._process.communicate(timeout=10)


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.stop()


@pytest.fixture
def bare(tmp_path: Path, zygote: Zygote) -> Program:
    """Without a server."""
    return Program(tmp_path, environment(), zygote)


@pytest.fixture(params=["trimtab_server", pytest.param("real_cluster", marks=pytest.mark.cluster)])
def trimtab(request: pytest.FixtureRequest, tmp_path: Path, zygote: Zygote) -> Program:
    """With a server, ours and a real one in turn, and an empty namespace as the default one."""
    server: ApiServer = request.getfixturevalue(request.param)
    namespace = f"cli-{next(_numbers)}"
    document = load(server.kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(document))
    program = Program(tmp_path, environment(KUBECONFIG=str(kubeconfig)), zygote, namespace)
    manifest = f'{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{namespace}"}}}}'
    assert program("apply", "-f", "-", stdin=manifest).code == 0
    assert program("wait", "cm/kube-root-ca.crt", "sa/default", "--for", "create").code == 0
    return program


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "TRIMTAB_DATA_DIR")}
    return {**kept, "HOME": "/nonexistent", **more}


def config_map(name: str, data: str = "{}", **metadata: str) -> str:
    extra = "".join(f", {key}: {value}" for key, value in metadata.items())
    return f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{extra}}}\ndata: {data}\n"


@pytest.fixture(scope="session")
def quiet_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    """`trimtab up` without any system: the test itself is the controller."""
    with TrimtabServer(tmp_path_factory.mktemp("quiet"), flags=("--systems", "none")) as server:
        yield server


@pytest.fixture(params=["quiet_server", pytest.param("real_cluster", marks=pytest.mark.cluster)])
def discovery_server(request: pytest.FixtureRequest) -> ApiServer:
    """Where nobody acts on the kinds of a system."""
    found: ApiServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def discovery_client(discovery_server: ApiServer) -> AsyncIterator[ApiClient]:
    """With the kinds of discovery defined."""
    reached = connect(discovery_server.kubeconfig)
    try:
        await prepare(reached, (System(name="discovery", kinds=KINDS),), rights=False)
        yield reached
    finally:
        await reached.close()


@pytest.fixture
async def discovery(
    discovery_client: ApiClient, discovery_server: ApiServer, tmp_path: Path, zygote: Zygote
) -> Program:
    """The program, with a namespace of its own as the default one."""
    return await in_namespace(f"discovery-{next(_numbers)}", discovery_client, discovery_server, tmp_path, zygote)


@pytest.fixture
async def images_client(discovery_server: ApiServer) -> AsyncIterator[ApiClient]:
    """With the kinds of image discovery defined, and nobody to act on them."""
    reached = connect(discovery_server.kubeconfig)
    try:
        await prepare(reached, (System(name="images", kinds=IMAGES),), rights=False)
        yield reached
    finally:
        await reached.close()


@pytest.fixture
async def images(images_client: ApiClient, discovery_server: ApiServer, tmp_path: Path, zygote: Zygote) -> Program:
    """The program, with a namespace of its own as the default one, and a folder of blobs beside its kubeconfig."""
    (tmp_path / "blobs").mkdir()
    return await in_namespace(f"images-{next(_numbers)}", images_client, discovery_server, tmp_path, zygote)


async def in_namespace(namespace: str, client: ApiClient, server: ApiServer, folder: Path, zygote: Zygote) -> Program:
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
    document = load(server.kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(document))
    return Program(folder, environment(KUBECONFIG=str(kubeconfig)), zygote, namespace)
