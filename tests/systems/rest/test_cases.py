"""What an object's situation is: a table."""

from __future__ import annotations

import pytest

from trimtab.systems.rest.reconciling.cases import Case, Situation, case

NOTHING = {
    "exists": False,
    "applied": False,
    "created": False,
    "creating": False,
    "recent": False,
    "forgotten": False,
    "given": False,
    "findable": True,
    "recreating": False,
    "adopt": "never",
    "missing": "recreate",
}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({}, Case.CREATE),
        ({"creating": True}, Case.CREATE),
        ({"creating": True, "findable": False}, Case.UNCERTAIN),
        ({"given": True}, Case.NOT_THERE),
        ({"created": True}, Case.CREATE),
        ({"created": True, "missing": "report"}, Case.LOST),
        ({"created": True, "missing": "report", "recreating": True}, Case.CREATE),
        ({"created": True, "applied": True}, Case.CREATE),
        ({"exists": True}, Case.FOREIGN),
        ({"exists": True, "adopt": "adopt"}, Case.ADOPT),
        ({"exists": True, "adopt": "overwrite"}, Case.OVERWRITE),
        ({"exists": True, "given": True}, Case.ADOPT),
        ({"exists": True, "given": True, "adopt": "overwrite"}, Case.ADOPT),
        ({"exists": True, "forgotten": True}, Case.ADOPT),
        ({"forgotten": True}, Case.CREATE),
        ({"forgotten": True, "findable": False}, Case.UNCERTAIN),
        ({"creating": True, "recent": True}, Case.EARLY),
        ({"creating": True, "recent": True, "created": True}, Case.EARLY),
        ({"creating": True, "recent": True, "recreating": True}, Case.EARLY),
        ({"creating": True, "recent": True, "findable": False}, Case.UNCERTAIN),
        ({"exists": True, "creating": True}, Case.CONFIRM),
        ({"exists": True, "created": True}, Case.CONFIRM),
        ({"exists": True, "created": True, "applied": True}, Case.COMPARE),
        ({"exists": True, "creating": True, "applied": True}, Case.COMPARE),
    ],
    ids=str,
)
def test_a_situation_has_one_case(now: dict[str, object], expected: Case) -> None:
    assert case(Situation(**{**NOTHING, **now})) is expected
