"""Servers that tests share: a real control plane and `trimtab up`, each started once a run, when first asked for."""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.needs import TOOLS
from trimtab.testing.cluster import BinariesMissing, RealCluster
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer

if shutil.which("terraform") is None:  # OpenTofu then, by the same name
    os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(TOOLS)))

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # of who started us in the background: programs under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "trimtab",
    deadline=None,  # a busy machine is no failure
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),  # what lands is judged by the same examples each time
)
settings.load_profile("trimtab")


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A real kube-apiserver with its controllers; TRIMTAB_REQUIRE_CLUSTER=1 makes its absence fail, not skip."""
    try:
        cluster = RealCluster(tmp_path_factory.mktemp("kubernetes"))
    except BinariesMissing as missing:
        if os.environ.get("TRIMTAB_REQUIRE_CLUSTER"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def trimtab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    """`trimtab up` on an empty data directory."""
    with TrimtabServer(tmp_path_factory.mktemp("trimtab")) as server:
        yield server


@pytest.fixture(scope="session", params=["kubernetes", "trimtab"])
def api_server(request: pytest.FixtureRequest) -> ApiServer:
    """Each of the two in turn, for what must hold on both."""
    server: ApiServer = request.getfixturevalue("real_cluster" if request.param == "kubernetes" else "trimtab_server")
    return server
