"""A plan for people: one line a document, deletions among them, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.systems.gitops.planning.plan import Plan

Line = tuple[str, str, str, str]


def told(plan: Plan, *, unchanged: bool = False, show: Callable[[str], str] = str) -> str:
    """Aligned lines: what happens, to what, where it is in Git, why. `show` makes names of others fit to be seen."""
    lines: list[Line] = []
    for sign, steps in (("+", plan.create), ("~", plan.update), ("=", plan.adopt), ("-", plan.prune)):
        lines += [(f"{sign} {s.action.value}", str(s.identity), s.path, s.reason) for s in steps]
    lines += [("~ upload", str(f.identity), f.path, f.reason) for f in plan.uploads]
    lines += [(f"> git {e.action}", str(e.identity), e.path, e.reason) for e in plan.write_back]
    lines += [("! held", str(s.identity), s.path, s.reason) for s in plan.held]
    lines += [("! held", str(e.identity), e.path, e.reason) for e in plan.held_edits]
    lines += [("! conflict", str(c.identity), c.path, _fields(c.fields)) for c in plan.conflicts]
    lines += [("! refused", str(r.identity), r.path, r.reason) for r in plan.refused]
    lines += [(f"  {s.action.value}", str(s.identity), s.path, s.reason) for s in (*plan.keep, *plan.forget)]
    if unchanged:
        lines += [("  unchanged", str(s.identity), s.path, "") for s in plan.unchanged]
    lines = [(sign, show(name), show(path), show(why)) for sign, name, path, why in lines]
    widths = [max((len(line[n]) for line in lines), default=0) for n in range(3)]
    text = [
        "  ".join((*(word.ljust(w) for word, w in zip(line, widths, strict=False)), line[3])).rstrip() for line in lines
    ]
    for guard in plan.guards:
        text.append(f"{guard.reason}: {guard.message}")
        if guard.confirmation:
            text.append(f"  `trimtab git confirm` lets it pass (plan {guard.confirmation})")
    text.append(summary(plan))
    return "\n".join(text) + "\n"


def summary(plan: Plan) -> str:
    """One line of counts; what is zero is not said, but for a plan of nothing."""
    counts = [
        (len(plan.create), "to create"),
        (len(plan.update), "to update"),
        (len(plan.adopt), "to adopt"),
        (len(plan.prune), "to delete"),
        (len(plan.uploads), "files to upload" if len(plan.uploads) > 1 else "file to upload"),
        (len(plan.write_back), "to write to Git"),
        (len(plan.held) + len(plan.held_edits), "held"),
        (len(plan.conflicts), "in conflict"),
        (len(plan.refused), "refused"),
        (len(plan.keep), "kept"),
        (len(plan.unchanged), "unchanged"),
    ]
    said = [f"{count} {word}" for count, word in counts if count]
    return ", ".join(said) if said else "nothing to do"


def _fields(fields: tuple[object, ...]) -> str:
    names = [getattr(field, "path", "") or "deleted on one side, changed on the other" for field in fields]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
