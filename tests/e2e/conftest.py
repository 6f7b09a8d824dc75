"""A server that all black-box tests of this folder share, with the examples' kind in it, and a namespace for each test."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, newest
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer

_numbers = itertools.count()


@pytest.fixture(scope="session")
def ground(trimtab_server: TrimtabServer, tmp_path_factory: pytest.TempPathFactory) -> TrimtabServer:
    """The shared server with the examples' kind established."""
    establish_beacons(trimtab_server, tmp_path_factory.mktemp("home"))
    return trimtab_server


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    words = re.sub(r"[^a-z0-9]+", "-", request.function.__name__.removeprefix("test_"))
    return f"{words[:40].strip('-')}-{next(_numbers)}"


@pytest.fixture
def kubectl_of(ground: TrimtabServer, namespace: str, tmp_path: Path) -> Callable[[str], Kubectl]:
    """kubectl of a version in the namespace of this test."""

    def bind(version: str) -> Kubectl:
        kubectl = Kubectl(version, ground, namespace, tmp_path)
        kubectl("create", "namespace", namespace)
        return kubectl

    return bind


@pytest.fixture
def kubectl(kubectl_of: Callable[[str], Kubectl]) -> Kubectl:
    """The newest kubectl in the namespace of this test."""
    return kubectl_of(newest())


def establish_beacons(server: ApiServer, home: Path) -> None:
    kubectl = Kubectl(newest(), server, "default", home)
    kubectl("apply", "-f", "crd.yaml")
    kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/beacons.ground.example.com")
