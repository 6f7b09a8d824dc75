"""Refusals of the server as a Terraform user can use them: with the attribute they are about, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import Diagnostics, Failed
from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.kinds.api import ApiError, Unreachable
from trimtab.terraform.kinds.converting import BadValue
from trimtab.terraform.kinds.definition import KEYED, LIST, MAP, OBJECT, Definition
from trimtab.terraform.kinds.hiding import hidden
from trimtab.terraform.kinds.patience import Interrupted
from trimtab.terraform.kinds.secrets import is_secret

_STEP = re.compile(
    r"""\[(?P<index>\d+)\]|\[["']?(?P<key>[^\]"']*)["']?\]|\[(?P<item>[^\]]*)\]|\.?(?P<name>[^.\[\]]+)"""
)

_ADVICE = (
    (
        re.compile(
            r"immutable|may not be changed|neither set nor removed|updates? .*(forbidden|may not change)", re.IGNORECASE
        ),
        "`terraform apply -replace=<address>` makes a new object, and deletes this one.",
    ),
    (
        re.compile(r"^(field not declared in schema|expected \w+, got )"),
        "The kind has changed since the list of kinds here was made: `trimtab terraform install --schema-only`.",
    ),
)
"""What to do about some refusals."""

CONFLICT = "FieldManagerConflict"
DOUBT = " Whether it did what it was asked is not known: the next plan tells."


class Telling:
    """While it is entered, what the API and a user's values raise becomes what the user is told."""

    def __init__(self, definition: Definition, what: str, context: Context) -> None:
        self._definition, self._what, self._context = definition, what, context
        self.body: Any = None
        """What was sent, once it is."""

    def __enter__(self) -> Telling:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ApiError | Unreachable | Interrupted):
            raise told(error, self._what, self._definition, self.body, self._context.diagnostics) from error
        if isinstance(error, BadValue):
            raise Failed(self._what, f"{error}.", error.path) from error


def told(error: Exception, what: str, definition: Definition, body: Any, diagnostics: Diagnostics) -> Failed:
    """The failure to raise. Where the server names several fields, the others are told of on the way."""
    if isinstance(error, Interrupted):
        return Failed(f"Interrupted: {what}", str(error))
    if isinstance(error, Unreachable):
        return Failed(f"The server cannot be reached: {what}", f"{error}.{DOUBT if error.doubtful else ''}")
    if not isinstance(error, ApiError):
        return Failed(what, str(error))
    whole = hidden(definition.root, None, error.message, body)
    if error.code in (401, 403):
        return Failed(f"Not allowed: {what}", f"{whole.rstrip('.')}. Check the provider's token or kubeconfig.")
    if error.code == 404 and not error.missing and error.reason in ("", "NotFound") and not error.causes:
        return Failed(
            f"The server does not serve {definition.kind} of {definition.api_version}: {what}",
            "This version is no longer served, and the objects are all there: `trimtab terraform install --schema-only` "
            "takes the version that is. Or the definition was deleted, and its objects with it, or this is another "
            "server. `trimtab terraform check` tells what has changed; `terraform state rm` is only for what is gone.",
        )
    causes = [(field, message) for field, message, _ in error.causes if field] or list(_untyped(error))
    if not causes:
        return Failed(what, whole)
    faults = [_fault(definition, field, message, body) for field, message in causes]
    for path, message in faults[:-1]:
        diagnostics.error(what, message, path)
    path, message = faults[-1]
    return Failed(what, message, path)


def _fault(definition: Definition, field: str, message: str, body: Any) -> tuple[Path | None, str]:
    """Where it is, and what: with the field's name where no line of the configuration can be pointed at."""
    path = located(definition, field, body)
    text = hidden(definition.root, path, message, body)
    if path is None or is_secret(definition) or not _is_sent(field, body):
        text = f"{field.lstrip('.')}: {text}"
    for pattern, advice in _ADVICE:
        if pattern.search(message):
            return path, f"{text}{'' if text.endswith('.') else '.'} {advice}"
    return path, text


def _untyped(error: ApiError) -> Iterator[tuple[str, str]]:
    """The fields that an apply could not read, which a server of Kubernetes tells in its message alone."""
    if error.message.startswith("failed to create typed patch object"):
        _, _, told = error.message.partition("): ")
        for line in told.splitlines():
            field, found, message = line.strip().partition(": ")
            if found and field.startswith("."):
                yield field, message


def _is_sent(field: str, body: Any) -> bool:
    """Whether there is a value, which somebody gave."""
    value, left = body, field.replace('\\"', '"')
    while left and isinstance(value, dict | list):
        step, left = next_step(left, value)
        if isinstance(value, list):
            value = value[int(step)] if step.isdigit() and int(step) < len(value) else None
        else:
            value = value.get(step)
    return value is not None and not left


def conflicts(error: ApiError) -> list[tuple[str, str]]:
    """Fields that others manage, each with its manager as the server names it."""
    return [(field, _manager(message)) for field, message, reason in error.causes if reason == CONFLICT]


def conflicted(error: ApiError, what: str, definition: Definition, body: Any, diagnostics: Diagnostics) -> Failed:
    """The failure for fields that others manage."""
    advice = "Leave the attribute out, or set `force_conflicts = true` to take it over."
    failures = [
        Failed(what, f"{field.lstrip('.')} is managed by {manager}. {advice}", located(definition, field, body))
        for field, manager in conflicts(error)
    ] or [Failed(what, error.message)]
    for failure in failures[:-1]:
        diagnostics.items.append(failure.diagnostic)
    return failures[-1]


def located(definition: Definition, field: str, body: Any) -> Path | None:
    """Where a field of the API is in the configuration; as near as can be told, None for the whole."""
    path, _ = traced(definition, field, body)
    return path if path.steps else None


def traced(definition: Definition, field: str, body: Any) -> tuple[Path, str]:
    """As near to the field as the configuration has attributes, and what of its name leads further."""
    path, shape, value, left = ROOT, definition.root, body, field.replace('\\"', '"')
    while left:
        step, rest = next_step(left, value)
        if shape.form == OBJECT:
            inner = shape.field("namespace" if step == "project" and definition.hub and len(path.steps) == 1 else step)
            if inner is None:
                break
            path, shape = path.name(inner.name), inner.shape
            value = value.get(step) if isinstance(value, dict) else None
        elif shape.items is not None and shape.form == MAP:
            path, shape = path.key(step), shape.items
            value = value.get(step) if isinstance(value, dict) else None
        elif shape.items is not None and shape.form in (KEYED, LIST):
            at = _place(step, value, shape.keys)
            if at is None:
                break
            item = value[at]
            keyed = shape.form == KEYED and isinstance(item, dict)
            path = path.key(str(item.get(shape.keys[0]))) if keyed else path.index(at)
            shape, value = shape.items, item
        else:
            break
        left = rest
    return path, left


def next_step(field: str, value: Any) -> tuple[str, str]:
    """The first step of a field's name, and the rest. Keys may have dots in them: the longest that `value` has is meant."""
    bare = field.removeprefix(".")
    if isinstance(value, dict):
        keys = [
            key for key in value if key and bare.startswith(key) and bare[len(key) : len(key) + 1] in ("", ".", "[")
        ]
        if keys:
            key = max(keys, key=len)
            return key, bare[len(key) :]
    found = _STEP.match(field)
    if found is None:
        return field, ""
    return next(group for group in found.groups() if group is not None), field[found.end() :]


def _place(step: str, value: Any, keys: tuple[str, ...]) -> int | None:
    """An index, or `name="web"` as conflicts name an item."""
    if not isinstance(value, list):
        return None
    if step.isdigit():
        return int(step) if int(step) < len(value) else None
    wanted = dict(re.findall(r'(\w+)="?([^",]*)"?', step))
    for at, item in enumerate(value):
        if wanted and isinstance(item, dict) and all(str(item.get(key)) == wanted.get(key) for key in keys):
            return at
    return None


def _manager(message: str) -> str:
    found = re.search(r'conflict with (".*?")', message)
    return found[1] if found else message
