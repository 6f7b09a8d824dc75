"""Long-running operations: what an answer begins, and one look at how far it is.

`begin` reads the answer to a write; what it gives is kept in the status, so that a restart goes on where it was. `poll`
asks once and gives the operation as it is now, `Done` or `Failed`; it is for the caller to come back at `next_poll`.

The rules, in order (ARM's, which fit most others): a header Operation-Location or Azure-AsyncOperation names a monitor
whose body has a status; a 202 with a Location names one that answers 202 until it is done; a body whose
provisioningState is not final means the resource itself; a 202 with none of them too, and after a DELETE until it is not
there any more. An API with rules of its own declares locators instead (`Model.polling`).

One thing to know: a monitor with a status that answers 4xx or 5xx failed to tell; the operation did not fail. A Location
that answers 4xx is the operation's own answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from trimtab.model.backoff import Chance
from trimtab.model.clock import format_micro_time, parse_time
from trimtab.model.redacted import Redacted
from trimtab.runtime.outbound.retry import retry_after
from trimtab.systems.rest.calling.bodies import at
from trimtab.systems.rest.calling.contract import Answer, Caller, CallError, ErrorClass, Request
from trimtab.systems.rest.calling.endpoint import resolved
from trimtab.systems.rest.calling.errors import Problem, classify, described, problem_of
from trimtab.systems.rest.calling.states import ended_badly, located, provisioning_state, succeeded
from trimtab.systems.rest.model import Call, Model
from trimtab.systems.rest.state import Operation

SHORTEST, LONGEST = 1.0, 600.0  # seconds of a Retry-After that are kept to
FIRST, MOST = 15.0, 60.0  # seconds between polls where there is none
FIRST_DECLARED = 1.0
UNREADABLE = 5  # polls in a row that may tell nothing


class Done(msgspec.Struct, frozen=True):
    """It succeeded. `answer` is the last one; read the resource for what is true now."""

    answer: Answer | None = None


class Failed(msgspec.Struct, frozen=True):
    """It failed, or cannot be followed: then the error is `uncertain`, and the resource tells what came of it."""

    error: CallError


def begin(
    model: Model,
    call: Call,
    answer: Answer,
    *,
    now: datetime,
    verb: str = "",
    generation: int = 0,
    deadline: datetime | None = None,
    secrets: tuple[Redacted, ...] = (),
) -> Operation | None:
    """What the answer to a write began; None when it is done. CallError when the answer says that it failed already, in
    a text without the secrets."""
    method = call.method.upper()
    verb = verb or _VERBS.get(method, "update")
    found = _declared(model, method, answer) if _declares(model) else _found(method, answer)
    if found is None:
        state = "" if method == "DELETE" else provisioning_state(answer.body)
        if ended_badly(state):
            raise _error(model, verb, method, answer, state, secrets)
        return None
    style, url = found
    ends = deadline or now + timedelta(seconds=model.polling.deadline)
    elsewhere = method == "POST" and style == "status" and not _declares(model)
    result = answer.headers.get("location", "") if elsewhere else ""
    operation = Operation(
        verb=verb,
        method=method,
        url=resolved(answer.url, url) if url else "",
        style=style,
        started=format_micro_time(now),
        deadline=format_micro_time(ends),
        generation=generation,
        id=_last_segment(url),
        result=resolved(answer.url, result) if result not in ("", url) else "",
    )
    return replace(operation, next_poll=_next(model, operation, answer.headers, now, None))


async def poll(
    caller: Caller,
    model: Model,
    operation: Operation,
    *,
    resource: str = "",
    now: datetime,
    chance: Chance,
    secrets: tuple[Redacted, ...] = (),
) -> Operation | Done | Failed:
    """One look. `resource` is the URL that reads the resource, for an operation that is followed there. Where there is
    none (the service chooses the ID, or reads by lists only), there is nothing to ask, and the next look at all tells.
    `secrets` were sent, and no error repeats them."""
    url = operation.url or resource
    if not url:
        return Done()
    overlay = model.overlay
    request = Request(
        verb="poll", method="GET", url=url, envelope=overlay.envelope, rules=overlay.errors, secrets=secrets
    )
    operation = replace(operation, polls=operation.polls + 1)
    try:
        answer = await caller.call(request)
    except CallError as error:
        after = _unanswered(model, operation, error, now, chance)
    else:
        after = _answered(model, operation, answer, now, chance, secrets)
    if isinstance(after, Operation) and after.deadline and now >= parse_time(after.deadline):
        said = f"it did not end until {after.deadline}; {after.polls} polls"
        return Failed(
            CallError(
                ErrorClass.TRANSIENT,
                described(request, said),
                code="OperationTimedOut",
                uncertain=True,
                request=request,
            )
        )
    return after


def due(operation: Operation, now: datetime) -> float:
    """Seconds until the next poll; 0 when it is time."""
    return max(0.0, (parse_time(operation.next_poll) - now).total_seconds()) if operation.next_poll else 0.0


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_MONITORS = ("operation-location", "azure-asyncoperation")


def _found(method: str, answer: Answer) -> tuple[str, str] | None:
    """Style and URL."""
    state = provisioning_state(answer.body)
    monitor = _monitor(answer.headers)
    if method == "PATCH" and answer.status == 200 and succeeded(state):
        return None  # a PATCH that goes on answers 202 or 201; the header is a leftover
    if monitor:
        return "status", monitor  # whatever the body says: it may be what was there before
    if answer.status == 202 and answer.headers.get("location"):
        return "location", answer.headers["location"]
    if method == "DELETE":
        waiting = answer.status == 202 or (state and not succeeded(state) and not ended_badly(state))
        return ("gone", "") if waiting else None
    if state and not ended_badly(state) and not succeeded(state):
        return "resource", ""
    return ("resource", "") if answer.status == 202 and not state else None


def _declares(model: Model) -> bool:
    return bool(model.polling.url or model.polling.status)


def _declared(model: Model, method: str, answer: Answer) -> tuple[str, str] | None:
    """By the locators: a monitor, or without one the resource itself, whose body says how far it is."""
    polling = model.polling
    if not polling.url:
        waiting = str(located(polling.status, answer)) in polling.pending
        return ("resource", "") if waiting and method != "DELETE" else _found(method, answer)
    url = located(polling.url, answer)
    if not isinstance(url, str) or not url:
        return None
    return ("status" if polling.status else "location"), url


def _answered(
    model: Model,
    operation: Operation,
    answer: Answer,
    now: datetime,
    chance: Chance,
    secrets: tuple[Redacted, ...],
) -> Operation | Done | Failed:
    if operation.style == "gone":
        gone = model.overlay.gone
        if gone and all(at(answer.body, path) == value for path, value in gone.items()):
            return Done(answer)
        return _going_on(model, operation, answer, now, chance)
    if operation.style == "result":
        return Done(answer)
    if operation.style == "location":
        return _at_location(model, operation, answer, now, chance, secrets)
    if operation.style == "status":
        state = _status(model, answer)
        if state is None:
            if answer.status == 204:
                return Done(answer)
            if answer.status == 202:
                return _going_on(model, operation, answer, now, chance)
            error = CallError(ErrorClass.TRANSIENT, _about(operation, "it tells no status"), code="Unreadable")
            return _told_nothing(model, operation, error, now, chance)
    elif _is_declared(model, operation):
        state = _status(model, answer) or ""
    else:
        state = provisioning_state(answer.body) or "Succeeded"
    if _declared_success(model, operation, state) or (not _is_declared(model, operation) and succeeded(state)):
        if operation.result:  # the monitor is done, and what was made is elsewhere
            moved = replace(operation, style="result", url=operation.result, result="", failures=0)
            return replace(moved, next_poll=format_micro_time(now))
        return Done(answer)
    if _failed(model, operation, state):
        return Failed(_error(model, operation.verb, operation.method, answer, state, secrets))
    return _going_on(model, operation, answer, now, chance)


def _at_location(
    model: Model,
    operation: Operation,
    answer: Answer,
    now: datetime,
    chance: Chance,
    secrets: tuple[Redacted, ...],
) -> Operation | Done | Failed:
    if answer.status == 202:
        return _going_on(model, operation, answer, now, chance)
    state = provisioning_state(answer.body)
    if ended_badly(state):
        return Failed(_error(model, operation.verb, operation.method, answer, state, secrets))
    if state and not succeeded(state) and operation.verb != "delete" and operation.method != "POST":
        return _going_on(model, replace(operation, style="resource", url=""), answer, now, chance)
    return Done(answer)


def _going_on(model: Model, operation: Operation, answer: Answer, now: datetime, chance: Chance) -> Operation:
    """The next look may be elsewhere: a service may send a new address each time."""
    moved = ""
    if operation.style == "status" and not _declares(model):
        moved = _monitor(answer.headers)
    elif operation.style == "location":
        moved = answer.headers.get("location", "")
    percent = at(answer.body, "percentComplete")
    operation = replace(
        operation,
        url=resolved(answer.url, moved) if moved else operation.url,
        failures=0,
        percent=float(percent) if isinstance(percent, int | float) else operation.percent,
    )
    return replace(operation, next_poll=_next(model, operation, answer.headers, now, chance))


def _unanswered(
    model: Model, operation: Operation, error: CallError, now: datetime, chance: Chance
) -> Operation | Done | Failed:
    """What an error means at the place that was asked."""
    if model.polling.status == "code" and str(error.status) in model.polling.success:
        return Done()
    if operation.style == "result" and error.kind not in (ErrorClass.TRANSIENT, ErrorClass.THROTTLED):
        return Done()  # it succeeded; not all of them have something to fetch
    if error.kind is ErrorClass.GONE:
        if operation.style == "gone":
            return Done()
        if operation.style == "lost":
            return _told_nothing(model, operation, error, now, chance)
        if operation.style == "resource":  # not there yet
            return _later(model, operation, error, now, chance)
        style = "gone" if operation.verb == "delete" else "lost"
        moved = replace(operation, style=style, url="", result="", failures=0)
        return replace(moved, next_poll=format_micro_time(now))
    if error.code == "NotAllowed":
        return Failed(_unsure(error))
    if error.code == "Unreadable":
        return _told_nothing(model, operation, error, now, chance)
    if error.kind in (ErrorClass.TRANSIENT, ErrorClass.THROTTLED):
        return _later(model, operation, error, now, chance)
    if operation.style == "location":
        return Failed(error)
    return _told_nothing(model, operation, error, now, chance)


def _told_nothing(
    model: Model, operation: Operation, error: CallError, now: datetime, chance: Chance
) -> Operation | Failed:
    if operation.failures + 1 >= UNREADABLE:
        return Failed(_unsure(error))
    return _later(model, operation, error, now, chance)


def _later(model: Model, operation: Operation, error: CallError, now: datetime, chance: Chance) -> Operation:
    headers = {"retry-after": str(int(error.retry_after))} if error.retry_after is not None else {}
    next_poll = _next(model, operation, headers, now, chance)
    return replace(operation, failures=operation.failures + 1, next_poll=next_poll)


def _unsure(error: CallError) -> CallError:
    error.uncertain = True
    return error


def _next(model: Model, operation: Operation, headers: Mapping[str, str], now: datetime, chance: Chance | None) -> str:
    wish = retry_after(headers.get("retry-after"), now)
    if wish is not None:
        seconds = min(max(wish, SHORTEST), LONGEST)
    else:
        first = FIRST_DECLARED if _declares(model) else FIRST
        seconds = min(first * 1.5 ** min(operation.polls, 20), MOST)
        seconds *= chance.uniform(1.0, 1.1) if chance is not None else 1.0
    return format_micro_time(now + timedelta(seconds=seconds))


def _status(model: Model, answer: Answer) -> str | None:
    """What a monitor says. Some monitors are the resource itself, with one parameter more."""
    if model.polling.status:
        state = located(model.polling.status, answer)
    else:
        state = at(answer.body, "status") or provisioning_state(answer.body)
    return str(state) if isinstance(state, str | int) and state != "" else None


def _is_declared(model: Model, operation: Operation) -> bool:
    """Whether the declared status is what tells at the place that is asked."""
    there = operation.style == "status" if model.polling.url else operation.style in ("resource", "lost")
    return there and bool(model.polling.status and model.polling.success)


def _declared_success(model: Model, operation: Operation, state: str) -> bool:
    return _is_declared(model, operation) and state in model.polling.success


def _failed(model: Model, operation: Operation, state: str) -> bool:
    if _is_declared(model, operation) and model.polling.pending:
        return state not in model.polling.pending
    return ended_badly(state)


def _error(
    model: Model, verb: str, method: str, answer: Answer, state: str, secrets: tuple[Redacted, ...]
) -> CallError:
    """Of an operation that ended badly, by what it says itself."""
    said = located(model.polling.error, answer) if model.polling.error else None
    if said is None and isinstance(answer.body, Mapping):
        said = answer.body.get("error") or at(answer.body, "properties.error")
    problem = problem_of(said) if said else Problem()
    status = int(problem.code) if problem.code.isdigit() and len(problem.code) == 3 else 400
    kind = classify(status, problem, verb=verb, rules=model.overlay.errors)
    if not problem.codes and "cancel" in state.lower():
        kind = ErrorClass.CONFLICT  # by someone else
    request = Request(verb=verb, method=method, url=answer.url, secrets=secrets)
    text = ": ".join(part for part in (f"the operation ended as {state}", problem.code, problem.message) if part)
    return CallError(kind, described(request, text), status=answer.status, code=problem.code or state, request=request)


def _about(operation: Operation, said: str) -> str:
    return described(Request(verb="poll", method="GET", url=operation.url), said)


def _monitor(headers: Mapping[str, str]) -> str:
    return next((headers[name] for name in _MONITORS if headers.get(name)), "")


def _last_segment(url: str) -> str:
    return url.partition("?")[0].rstrip("/").rpartition("/")[2][:128]
