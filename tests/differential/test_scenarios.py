"""Every scenario gets the same answers from both servers, but for the differences that are accepted."""

import pytest

from .compare import Pair, Scenario, script
from .scenarios import SCENARIOS

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_both_servers_answer_alike(scenario: Scenario, pair: Pair) -> None:
    found = pair.differences(scenario) and pair.differences(scenario)  # what does not repeat is a matter of time
    if found:
        pytest.fail(script(scenario, found), pytrace=False)
