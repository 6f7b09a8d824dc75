"""What webhooks said at a point of a run, and what follows from it. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.systems.delivery.kinds.analysis import Hook

Meaning = Literal["Go", "Wait", "Fail", "RollBack"]
"""Go on; ask again later; a failed check; roll back."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`agreed` are names of webhooks. `refused` and `failed` say which and why, fit to be shown; who failed gave no
    answer at all."""

    agreed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether nobody objects; nobody does where nobody is asked."""
        return not self.refused and not self.failed

    @property
    def message(self) -> str:
        """Who objects, for a status or an event."""
        return "; ".join((*self.refused, *self.failed))[:LONGEST]


LONGEST = 1024


def meaning(point: Hook, answer: Answer) -> Meaning:
    """A gate stays shut until it is opened; who watches the rollout can fail it; who is told of its end cannot."""
    match point:
        case "ConfirmRollout" | "ConfirmTrafficIncrease" | "ConfirmPromotion":
            return "Go" if answer.allowed else "Wait"
        case "PreRollout" | "Rollout":
            return "Go" if answer.allowed else "Fail"
        case "Rollback":  # the one question where yes is the bad news: one is enough, and silence is none
            return "RollBack" if answer.agreed else "Go"
        case "PostRollout":
            return "Go"
