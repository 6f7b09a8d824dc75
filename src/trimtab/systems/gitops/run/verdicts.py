"""How a run ended, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.systems.gitops.applying import Acts, Failure
from trimtab.systems.gitops.kinds import DocumentProblem
from trimtab.systems.gitops.planning import Plan
from trimtab.systems.gitops.telling import Verdict, cut, first


class Stop(Exception):  # noqa: N818 - it reads as what it is
    """The run ends here."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict


def verdict_of(plan: Plan, acts: Acts, documents: tuple[DocumentProblem, ...], *, revision: str, name: str) -> Verdict:
    """Of a run that came to its end. `name` is the GitSync's."""
    if acts.failures:
        message = f"{several(len(acts.failures))} could not be applied: {first(failures_of(acts.failures))}"
        if acts.untried:
            message += f"; not tried after that: {several(len(acts.untried))}"
        return Verdict(False, "ApplyFailed", message, documents=documents)
    if plan.guards:
        return Verdict(False, plan.guards[0].reason, held_words(plan, name), patient=True, held=True)
    if plan.conflicts:
        were = "object was" if len(plan.conflicts) == 1 else "objects were"
        message = f"{len(plan.conflicts)} {were} changed on both sides"
        return Verdict(False, "Conflicts", message, patient=True, documents=documents)
    if plan.refused:
        message = f"{several(len(plan.refused))} left alone: {first(documents)}"
        return Verdict(False, "Refused", message, patient=True)
    return Verdict(True, "Synced", f"in sync with {revision[:12] or 'an empty branch'}")


def path_missing(folder: str, revision: str, *, was_there: bool) -> Verdict:
    """Of a revision without the folder. One that never had it is hardly what was meant; one that has it no more may be."""
    if was_there:
        return Verdict(True, "Synced", f'in sync with {revision[:12]}, which has no folder "{folder}"')
    return Verdict(False, "PathMissing", f'spec.path: there is no folder "{folder}" in {revision[:12]}', patient=True)


def held_words(plan: Plan, name: str) -> str:
    """Of deletions that wait for a person."""
    said = "; ".join(guard.message for guard in plan.guards)
    return f"{said}: `trimtab git confirm {name}` lets it pass"


def failures_of(failures: Iterable[Failure]) -> tuple[DocumentProblem, ...]:
    """In the order of the files: whoever failed first, the same failures read the same."""
    return tuple(
        DocumentProblem(path=cut(f.path), object=str(f.identity)[:600], reason=f.reason[:63], message=f.message)
        for f in sorted(failures, key=lambda f: (f.path, f.identity))
    )


def counts_of(plan: Plan, acts: Acts) -> dict[str, int]:
    """What the history keeps of a run, without what is 0: what was done, whatever was planned."""
    counts = {
        "created": sum(step.identity in acts.applied for step in plan.create),
        "updated": sum(step.identity in acts.applied for step in (*plan.update, *plan.adopt)),
        "deleted": len(acts.deleted),
        "written": len(plan.write_back),
        "conflicts": len(plan.conflicts),
        "held": len(plan.held) + len(plan.held_edits),
        "failed": len(acts.failures),
        "untried": len(acts.untried),
    }
    return {name: count for name, count in counts.items() if count}


def several(count: int) -> str:
    return "1 document" if count == 1 else f"{count} documents"
