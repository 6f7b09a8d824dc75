"""`trimtab canary check`: what is wrong with manifests, without a server. What only a cluster knows is not looked at."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from trimtab.cli.codes import FAILED, NOT_FOUND, OK, USAGE, Problem, run
from trimtab.cli.manifests import Bad, Manifest, read
from trimtab.cli.tables import shown
from trimtab.model.document import convert
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme
from trimtab.systems.delivery.kinds import CanaryDeployment, MetricTemplate, ReleaseGroup
from trimtab.systems.delivery.problems import group_problems, problems, template_problems, template_warnings, warnings
from trimtab.systems.delivery.problems.metrics import use_problems
from trimtab.systems.delivery.problems.neighbours import group_neighbour_problems, neighbour_problems

KINDS: tuple[type[Resource], ...] = (CanaryDeployment, MetricTemplate, ReleaseGroup)
R = TypeVar("R", bound=Resource)


class Checked(msgspec.Struct, kw_only=True):
    """One document: where it is, what it is called, what it says (None: it cannot be read), and what is wrong with it."""

    where: str
    called: str
    object: Resource | None = None
    errors: list[str]
    unread: tuple[str, ...] = ()
    """Parts of which too little could be read to judge them."""
    warnings: list[str] = []


def check(sources: Sequence[str], *, recursive: bool = False) -> int:
    return run(_check(sources, recursive))


async def _check(sources: Sequence[str], recursive: bool) -> int:
    if not sources:
        raise Problem("name files or folders with -f", USAGE)
    found = [one for each in read(sources, recursive=recursive) if (one := _checked(each)) is not None]
    if not found:
        raise Problem("there is no CanaryDeployment, MetricTemplate or ReleaseGroup in these files", NOT_FOUND)
    _together(found)
    for one in found:
        for text in one.errors:
            print(f"{one.where} {one.called}: error: {shown(text)}")
        for text in one.warnings:
            print(f"{one.where} {one.called}: warning: {shown(text)}")
        if not one.errors and not one.warnings:
            print(f"{one.where} {one.called}: good")
    return FAILED if any(one.errors for one in found) else OK


def _checked(each: Manifest | Bad) -> Checked | None:
    """None for kinds of others."""
    if isinstance(each, Bad):
        return Checked(where=each.where, called="document", errors=[each.problem])
    scheme = Scheme()
    for cls in KINDS:
        kind = scheme.kind_of(cls)
        if (kind.api_version, kind.kind) != (each.api_version, each.kind):
            continue
        name = each.metadata.get("name") or each.metadata.get("generateName")
        one = Checked(where=each.where, called=f"{kind.singular}/{shown(name)}", errors=[])
        document = copy.deepcopy(each.document)
        walked = kind.schema.walk(document)
        one.errors += [str(error) for error in walked.errors]
        one.errors += [f'unknown field "{path}"' for path in walked.unknown]
        # What is of a wrong shape is left out, so that the rest can be judged, too; but not what stands beside it.
        one.unread = tuple(_left_out(document, error.path) for error in walked.errors)
        try:
            one.object = convert(document, cls)
        except msgspec.ValidationError as error:
            if not walked.errors:
                one.errors.append(str(error))
        return one
    return None


def _left_out(document: dict[str, Any], path: str) -> str:
    """Removes the field that the path leads to, or the list that holds it; where what stands beside it begins."""
    steps = [name or int(number) for name, number in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path)]
    while steps and isinstance(steps[-1], int):
        steps.pop()
    inner: Any = document
    for step in steps[:-1]:
        known = step in inner if isinstance(inner, dict) else isinstance(inner, list) and step in range(len(inner))
        inner = inner[step] if known else None
    if isinstance(inner, dict) and steps:
        inner.pop(steps[-1], None)
    beside = steps[:-1] if len(steps) > 2 else steps
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in beside).removeprefix(".")


def _unsure(path: str, unread: Sequence[str]) -> bool:
    """Whether what is said of this field may come from what was left out."""
    return any(f"{path}.".startswith(f"{each}.") or each.startswith(path) for each in unread)


def _together(found: Sequence[Checked]) -> None:
    """What shows in an object itself, and beside those of the same namespace in these files."""
    for one in found:
        made = one.object
        if isinstance(made, CanaryDeployment):
            beside = _all(found, CanaryDeployment, made.namespace)
            templates = {each.name: each for each in _all(found, MetricTemplate, made.namespace)}
            errors = [*problems(made), *neighbour_problems(made, beside), *use_problems(made, templates)]
            one.warnings += warnings(made)
        elif isinstance(made, MetricTemplate):
            errors = template_problems(made)
            one.warnings += template_warnings(made)
        elif isinstance(made, ReleaseGroup):
            errors = [*group_problems(made)]
            errors += group_neighbour_problems(made, _all(found, ReleaseGroup, made.namespace))
        else:
            continue
        one.errors += [str(error) for error in errors if not _unsure(error.path, one.unread)]
        if one.unread:
            one.warnings = []


def _all(found: Sequence[Checked], kind: type[R], namespace: str) -> list[R]:
    return [one.object for one in found if isinstance(one.object, kind) and one.object.namespace == namespace]
