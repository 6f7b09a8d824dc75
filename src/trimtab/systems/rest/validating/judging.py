"""The verdict on a spec of a generated kind, with the hooks that have a say in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.errors import FieldError
from trimtab.model.scheme import Untyped
from trimtab.systems.rest.hooks import HookContext, Hooks
from trimtab.systems.rest.model import CONTROL, Model
from trimtab.systems.rest.state import Policy
from trimtab.systems.rest.validating import control
from trimtab.systems.rest.validating.changes import Changes, check_control
from trimtab.systems.rest.validating.finding import Found
from trimtab.systems.rest.validating.shape import Walk

Document = Mapping[str, Any]


class Judgement(msgspec.Struct, frozen=True):
    """What is wrong, and what only should be said."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def problems(
    model: Model,
    new: Document,
    old: Document | None = None,
    *,
    exists: bool = False,
    policy: Policy | None = None,
    name: str = "",
    observed: Any = None,
    parameters: Mapping[str, str] | None = None,
) -> list[FieldError]:
    """All that is wrong with a spec. `old` is the one before, for an update; `exists` is whether the resource is there;
    `policy` is the new spec's own unless given; `name` the object's; `observed` what the service said last; `parameters`
    what the RestService gives."""
    given = parameters or {}
    return _found(model, new, old, exists=exists, policy=policy, name=name, observed=observed, parameters=given).errors


def warnings(
    model: Model,
    new: Document,
    old: Document | None = None,
    *,
    exists: bool = False,
    policy: Policy | None = None,
    observed: Any = None,
) -> list[str]:
    """What its writer should know, though it is taken."""
    return _found(model, new, old, exists=exists, policy=policy, name="", observed=observed, parameters={}).warnings


async def judged(
    model: Model, hooks: Hooks, new: Untyped, old: Untyped | None = None, parameters: Mapping[str, str] | None = None
) -> Judgement:
    """An object as it is to be written; `parameters` are what the RestService gives. What the hook `default` fills counts
    as given; the hook `validate` may add and take away."""
    ctx = HookContext(model=model, object=new, resource_id=_status(new).get("resourceID", ""))
    spec = dict(new.raw.get("spec") or {})
    before = None if old is None else dict(old.raw.get("spec") or {})
    status = {} if old is None else _status(old)
    if hooks.has("default"):
        spec = await hooks.run("default", ctx, _same, spec)
        before = None if before is None else await hooks.run("default", ctx, _same, before)
    said: list[str] = []

    async def own(_old: Document | None, spec: Document) -> list[FieldError]:
        found = _found(
            model,
            spec,
            before,
            exists=there(status),
            policy=None,
            name=new.name,
            observed=status.get("observed"),
            parameters=parameters or {},
        )
        said.extend(found.warnings)
        return found.errors

    errors = await hooks.run("validate", ctx, own, before, spec)
    return Judgement(tuple(errors), tuple(said))


def there(status: Document) -> bool:
    """Whether the resource is there, as far as its object knows."""
    sync = status.get("sync")
    return bool(status.get("resourceID")) and isinstance(sync, Mapping) and bool(sync.get("created"))


def _found(
    model: Model,
    new: Document,
    old: Document | None,
    *,
    exists: bool,
    policy: Policy | None,
    name: str,
    observed: Any,
    parameters: Mapping[str, str],
) -> Found:
    found = Found()
    control.check(model, new, found, name=name, parameters=parameters)
    body = _body(new)
    Walk(model, found, lenient=bool(new.get("resourceID"))).body(body)
    if old is not None:
        check_control(new, old, found, exists=exists)
        if exists:
            Changes(model, policy or control.policy_of(new), found).body(body, _body(old), observed)
    return found


def _body(spec: Document) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in CONTROL}


def _status(obj: Untyped) -> Document:
    status = obj.raw.get("status")
    return status if isinstance(status, Mapping) else {}


async def _same(spec: Document) -> Document:
    return spec
