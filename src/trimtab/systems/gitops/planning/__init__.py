"""What a sync would do: `plan` decides, `told` shows it."""

from trimtab.systems.gitops.planning.deciding import plan
from trimtab.systems.gitops.planning.filing import Files, Names, filed
from trimtab.systems.gitops.planning.guarding import EMPTY, blamed, confirmation
from trimtab.systems.gitops.planning.judging import Known, written
from trimtab.systems.gitops.planning.plan import (
    ACTS,
    PRUNE,
    Action,
    Conflict,
    FileEdit,
    FileStep,
    Guard,
    Options,
    Plan,
    Refusal,
    Step,
)
from trimtab.systems.gitops.planning.telling import summary, told

__all__ = [
    "ACTS",
    "EMPTY",
    "PRUNE",
    "Action",
    "Conflict",
    "FileEdit",
    "FileStep",
    "Files",
    "Guard",
    "Known",
    "Names",
    "Options",
    "Plan",
    "Refusal",
    "Step",
    "blamed",
    "confirmation",
    "filed",
    "plan",
    "summary",
    "told",
    "written",
]
