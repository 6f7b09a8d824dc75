"""Random sequences of requests get the same answers from both servers.

TRIMTAB_DIFFERENTIAL_EXAMPLES says how many; TRIMTAB_DIFFERENTIAL_SEED chooses others, the same ones for the same seed.
A failing sequence is made as short as it can be and printed with both answers.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from .compare import Pair, Scenario, script
from .exchange import Request
from .sequences import sequences

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@seed(int(os.environ.get("TRIMTAB_DIFFERENTIAL_SEED", "1")))
@settings(
    max_examples=int(os.environ.get("TRIMTAB_DIFFERENTIAL_EXAMPLES", "40")),
    deadline=None,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
@given(requests=sequences())
def test_both_servers_answer_alike(requests: tuple[Request, ...], pair: Pair) -> None:
    scenario = Scenario("a random sequence", requests)
    found = pair.differences(scenario) and pair.differences(scenario)  # what does not repeat is a matter of time
    if found:
        pytest.fail(script(scenario, found), pytrace=False)
