"""What follows from what webhooks say, point by point."""

from __future__ import annotations

from typing import get_args

import pytest

from trimtab.systems.delivery.hooks.answers import Answer, Meaning, meaning
from trimtab.systems.delivery.kinds.analysis import Hook

NOBODY, YES = Answer(), Answer(agreed=("a",))
NO, SILENT = Answer(refused=("a: answered 403",)), Answer(failed=("a: no answer within 1s",))
MIXED = Answer(agreed=("a",), refused=("b: answered 403",))


@pytest.mark.parametrize(
    ("point", "nobody", "yes", "no", "silent", "mixed"),
    [
        ("ConfirmRollout", "Go", "Go", "Wait", "Wait", "Wait"),
        ("ConfirmTrafficIncrease", "Go", "Go", "Wait", "Wait", "Wait"),
        ("ConfirmPromotion", "Go", "Go", "Wait", "Wait", "Wait"),
        ("PreRollout", "Go", "Go", "Fail", "Fail", "Fail"),
        ("Rollout", "Go", "Go", "Fail", "Fail", "Fail"),
        ("PostRollout", "Go", "Go", "Go", "Go", "Go"),
        ("Rollback", "Go", "RollBack", "Go", "Go", "RollBack"),
    ],
)
def test_what_an_answer_means_at_a_point(
    point: Hook, nobody: Meaning, yes: Meaning, no: Meaning, silent: Meaning, mixed: Meaning
) -> None:
    said = [meaning(point, answer) for answer in (NOBODY, YES, NO, SILENT, MIXED)]
    assert said == [nobody, yes, no, silent, mixed]


def test_every_point_has_a_meaning() -> None:
    assert all(meaning(point, NOBODY) == "Go" for point in get_args(Hook))


def test_a_message_fits_a_status() -> None:
    long = Answer(refused=tuple(f"hook-{i}: answered 403: {'x' * 256}" for i in range(16)))
    assert len(long.message) == 1024
