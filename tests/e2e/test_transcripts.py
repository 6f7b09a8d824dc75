"""Sessions with kubectl read as they do on a real Kubernetes. With TRIMTAB_RECORD=1 the cluster test writes the files anew."""

import os
from pathlib import Path

import pytest

from tests.e2e.conftest import establish_beacons
from tests.e2e.transcript import FOLDER, parse, replay
from trimtab.testing.cluster import RealCluster
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow

SESSIONS = sorted(path.stem for path in FOLDER.glob("*.txt"))


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_reads_as_it_did_on_kubernetes(session: str, ground: TrimtabServer, tmp_path: Path) -> None:
    steps = parse((FOLDER / f"{session}.txt").read_text())
    assert replay(steps, ground, tmp_path, f"session-{session}") == steps


@pytest.mark.cluster
@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_reads_as_it_does_on_kubernetes_now(session: str, real_ground: RealCluster, tmp_path: Path) -> None:
    path = FOLDER / f"{session}.txt"
    steps = parse(path.read_text())
    answers = replay(steps, real_ground, tmp_path, f"session-{session}")
    if os.environ.get("TRIMTAB_RECORD"):
        path.write_text("".join(map(str, answers)))
    else:
        assert answers == steps


@pytest.fixture(scope="session")
def real_ground(real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> RealCluster:
    establish_beacons(real_cluster, tmp_path_factory.mktemp("home"))
    return real_cluster
