"""Code of users' own at the points where APIs differ.

A hook is an object (a module will do) that an entry point of the group `trimtab.rest.hooks` names; a RestDefinition lists
the names in `overlay.hooks`, and they are called in that order, the first outermost. It defines functions for the points
it cares about. Each gets the context, the point's own arguments, and `following`, which calls the next hook and at last
what Trimtab does by itself:

    async def modify_request(ctx, request, following):
        request = await following(request)
        return msgspec.structs.replace(request, headers={**request.headers, "X-Team": "blue"})

Points, with what they take and give:
    modify_request(request) → Request            classify_error(error: CallError) → ErrorClass
    normalize_live(live) → live                  compare(path, wanted, live) → bool  (not async)
    pre_check() → Verdict                        post_check(live) → Verdict
    find_existing() → resource ID or ""          extract_id(answer) → resource ID
    delete() → None                              poll(operation) → Operation, Done or Failed
    joins(live) → {name: value}                  export(live) → {key: value}
    import_filter(document) → document or None   validate(old, new) → list of FieldError
    default(spec) → spec

Whatever a hook raises ends the reconcile, and shows in the conditions: a CallError as an error of the service, all else as
the hook's own (`HookFailed`).
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

import msgspec

from trimtab.model.scheme import Untyped
from trimtab.systems.rest.calling.contract import Caller, CallError
from trimtab.systems.rest.model import Model

GROUP = "trimtab.rest.hooks"
MOST_SAID = 300

Following = Callable[..., Awaitable[Any]]


class HookContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook may look at."""

    model: Model
    object: Untyped | None = None
    caller: Caller | None = None
    resource_id: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Of a check: go on, or wait with a reason (CamelCase) and a message for the condition."""

    proceed: bool = True
    reason: str = ""
    message: str = ""
    retry_after: float | None = None


class NoHook(Exception):  # noqa: N818 - it reads as what happened
    """A definition names a hook that is not installed."""


class HookFailed(Exception):  # noqa: N818 - it reads as what happened
    """A hook raised something that is no answer of the service."""

    def __init__(self, point: str, error: Exception) -> None:
        said = " ".join(str(error).split())[:MOST_SAID]
        super().__init__(f"a hook for {point} raised {type(error).__name__}{f': {said}' if said else ''}")


class Hooks:
    """The hooks of one definition."""

    def __init__(self, installed: Sequence[Any] = ()) -> None:
        self._installed = tuple(installed)

    def has(self, point: str) -> bool:
        return any(hasattr(hook, point) for hook in self._installed)

    async def run(self, point: str, ctx: HookContext, own: Following, *arguments: Any) -> Any:
        """Through the hooks of a point to what we do ourselves. Raises HookFailed, and what we raise ourselves."""
        if not self.has(point):
            return await own(*arguments)
        ours: list[Exception] = []

        async def last(*given: Any) -> Any:
            try:
                return await own(*given)
            except Exception as error:
                ours.append(error)
                raise

        call: Following = last
        for hook in reversed(self._installed):
            if hasattr(hook, point):
                call = functools.partial(getattr(hook, point), ctx, following=call)
        try:
            return await call(*arguments)
        except CallError:
            raise
        except Exception as error:
            if any(error is each for each in ours):
                raise
            raise HookFailed(point, error) from error

    def same(self, ctx: HookContext, own: Callable[[str, Any, Any], bool]) -> Callable[[str, Any, Any], bool]:
        """The comparison with the hooks' in front."""
        call = own
        for hook in reversed(self._installed):
            if hasattr(hook, "compare"):
                call = functools.partial(getattr(hook, "compare"), ctx, following=call)  # noqa: B009

        def same(path: str, wanted: Any, live: Any) -> bool:
            try:
                return call(path, wanted, live)
            except Exception as error:
                raise HookFailed("compare", error) from error

        return same


def installed(names: Sequence[str]) -> Hooks:
    """By the entry points' names. Raises NoHook."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    missing = [name for name in names if name not in found]
    if missing:
        there = ", ".join(sorted(found)) or "none"
        raise NoHook(f"no hook {', '.join(missing)} is installed; there are: {there}")
    return Hooks([found[name].load() for name in names])
