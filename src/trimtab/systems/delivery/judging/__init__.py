"""What the numbers mean, and what follows from it. Pure: no clock, no network."""

from trimtab.systems.delivery.judging.budget import Outcome, pause, settle
from trimtab.systems.delivery.judging.judges import Judged, combine, judge, judge_all, problem

__all__ = ["Judged", "Outcome", "combine", "judge", "judge_all", "pause", "problem", "settle"]
