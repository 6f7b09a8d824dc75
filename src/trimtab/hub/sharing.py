"""Who may use a resource: the three ways to say it, each with exactly one spelling.

owner only    {enabled: false}
everybody     {enabled: true, projects: [{name: "*"}]}
some          {enabled: true, projects: [{name: a}, {name: b}]}    sorted, none twice, the owner not among them
"""

from __future__ import annotations

from typing import Any

from trimtab.hub.contract import Refused
from trimtab.model.hub import EVERYONE

FIELD = "spec.sharing"


def canonical(sharing: Any, owner: str) -> dict[str, Any]:
    """The one spelling of what a document says; twice is once. Refused when it says two things at once."""
    if sharing is None:
        return {"enabled": False}
    names, enabled = _read(sharing)
    if not enabled:
        return {"enabled": False}
    if not names:
        raise Refused(
            [(f"{FIELD}.projects", 'sharing is enabled with no project: name projects, or "*" for all of them')]
        )
    others = sorted(names - {owner})
    if not others:
        return {"enabled": False}
    if EVERYONE in others and len(others) > 1:
        also = ", ".join(name for name in others if name != EVERYONE)
        raise Refused([(f"{FIELD}.projects", f'"*" means all projects, so {also} cannot be named beside it')])
    return {"enabled": True, "projects": [{"name": name} for name in others]}


def problems(sharing: Any, owner: str) -> tuple[tuple[str, str], ...]:
    """What is wrong with a document's sharing."""
    try:
        canonical(sharing, owner)
    except Refused as refused:
        return refused.problems
    return ()


def _read(sharing: Any) -> tuple[set[str], bool]:
    if not isinstance(sharing, dict):
        raise Refused([(FIELD, "must be an object with the fields enabled and projects")])
    enabled = sharing.get("enabled", False)
    if not isinstance(enabled, bool):
        raise Refused([(f"{FIELD}.enabled", "must be true or false")])
    projects = sharing.get("projects")
    if not isinstance(projects, list | None):
        raise Refused([(f"{FIELD}.projects", "must be a list of objects with a name")])
    names: set[str] = set()
    for index, project in enumerate(projects or ()):
        name = project.get("name") if isinstance(project, dict) else None
        if not isinstance(name, str) or not name:
            raise Refused([(f"{FIELD}.projects[{index}].name", 'must be the name of a project, or "*"')])
        names.add(name)
    return names, enabled
