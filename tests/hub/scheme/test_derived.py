"""What follows from a registration by itself: list kinds, and groups under each suffix, wherever they are shown."""

from __future__ import annotations

import pytest

from tests.hub.kit import Plan
from trimtab.hub.scheme import HubConfig, HubScheme
from trimtab.model.crd import crd
from trimtab.model.scheme import Scheme


@pytest.mark.row(12)
def test_a_class_alone_is_a_registration() -> None:
    scheme = HubScheme()
    scheme.add(HubConfig(cls=Plan))
    registered = scheme.by_plural("plans")
    assert registered.kind.list_kind == "PlanList"
    assert registered.config.defaulter is None
    assert scheme.new("infra.trimtab.dev/v3", "Plan")["spec"]["replicas"] == 1, "the schema has defaults, too"


@pytest.mark.row(10)
def test_a_definition_is_of_the_group_that_the_suffix_makes() -> None:
    made = crd(Plan, scheme=Scheme("acme.io"))
    assert (made["metadata"]["name"], made["spec"]["group"]) == ("plans.infra.acme.io", "infra.acme.io")
