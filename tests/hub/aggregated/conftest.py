import os
from collections.abc import Iterator

import pytest

from tests.hub.aggregated.behind import aggregating
from tests.needs import needs
from trimtab.testing.cluster import BinariesMissing, RealCluster


@pytest.fixture(scope="session")
def aggregator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A real API server that others may be behind; TRIMTAB_REQUIRE_CLUSTER=1 makes its absence fail, not skip."""
    needs("kubectl")
    try:
        cluster = aggregating(tmp_path_factory.mktemp("aggregator"))
    except BinariesMissing as missing:
        if os.environ.get("TRIMTAB_REQUIRE_CLUSTER"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    with cluster:
        yield cluster
