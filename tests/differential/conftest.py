"""Both servers with our two kinds installed."""

import os
from collections.abc import Iterator

import pytest

from trimtab.testing.cluster import RealCluster

from .compare import Pair
from .prepare import prepared


@pytest.fixture(scope="session")
def pair(
    request: pytest.FixtureRequest, real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """The real server and ours; TRIMTAB_DIFFERENTIAL_PEER=kubernetes compares two real ones, to test the comparison."""
    if os.environ.get("TRIMTAB_DIFFERENTIAL_PEER") == "kubernetes":
        with RealCluster(tmp_path_factory.mktemp("peer")) as peer, prepared(real_cluster, peer) as both:
            yield both
    else:
        with prepared(real_cluster, request.getfixturevalue("trimtab_server")) as both:
            yield both
