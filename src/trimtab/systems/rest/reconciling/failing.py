"""What an error of the service means for an object: which conditions, and when it is tried again."""

from __future__ import annotations

from trimtab.runtime.controller import Result
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.calling.errors import retry_delay
from trimtab.systems.rest.reconciling import telling
from trimtab.systems.rest.reconciling.creating import recreate
from trimtab.systems.rest.reconciling.session import Session
from trimtab.systems.rest.reconciling.telling import Word

AT_ONCE = 5
"""Conflicts in a row that are nobody's business."""
SOON = 0.2
READS = ("read", "list")


async def failed(session: Session, error: CallError, attempt: int) -> Result | None:
    """Say it in the conditions, and come again when that makes sense."""

    async def own(raised: CallError) -> ErrorClass:
        return raised.kind

    kind: ErrorClass = await session.place.hooks.run("classify_error", session.context, own, error)
    if kind in (ErrorClass.UNKNOWN, ErrorClass.TERMINAL) and error.request is not None and error.request.verb in READS:
        kind = ErrorClass.TRANSIENT  # no change of the spec would make it readable: it is for the service to come round
    session.place.measures.failed(session.model.service, session.model.kind, kind.value)
    if kind in (ErrorClass.CONFLICT, ErrorClass.PRECONDITION, ErrorClass.EXISTS) and attempt < AT_ONCE:
        return Result(requeue_after=SOON * (attempt + 1))
    policy = session.subject.control.policy
    if kind is ErrorClass.IMMUTABLE and policy.create_only == "recreate" and not session.subject.deleting:
        return await recreate(session, str(error))
    await session.save(words_for(session, kind, str(error)), must=True)
    if kind not in (ErrorClass.THROTTLED, ErrorClass.DEPENDENCY):
        session.place.events.warning(session.object, _REASONS[kind], str(error))
    if session.subject.deleting and kind in (ErrorClass.TERMINAL, ErrorClass.UNKNOWN):
        kind = ErrorClass.AUTH  # what does not go is tried again sooner: nothing else will change it
    return Result(requeue_after=retry_delay(kind, attempt, error.retry_after, session.place.chance))


def words_for(session: Session, kind: ErrorClass, message: str) -> tuple[Word, ...]:
    reason = _REASONS[kind]
    if kind in (ErrorClass.TRANSIENT, ErrorClass.THROTTLED):
        return telling.unknown(session.status, reason, message)
    if kind in (ErrorClass.TERMINAL, ErrorClass.IMMUTABLE) and not session.subject.deleting:
        return telling.stalled(reason, message)
    return telling.waiting(reason, message)


_REASONS = {
    ErrorClass.TERMINAL: "Refused",
    ErrorClass.UNKNOWN: "Refused",
    ErrorClass.IMMUTABLE: "ImmutableChanged",
    ErrorClass.DEPENDENCY: "DependencyNotReady",
    ErrorClass.CONFLICT: "Conflict",
    ErrorClass.PRECONDITION: "Conflict",
    ErrorClass.THROTTLED: "Throttled",
    ErrorClass.AUTH: "Unauthorized",
    ErrorClass.TRANSIENT: "Unreachable",
    ErrorClass.GONE: "NotFound",
    ErrorClass.EXISTS: "AlreadyExists",
}
