"""Which credential may be tried now on one device, so that no device ever locks us out.

Flow: `choose` names a credential or says until when to wait. `attempted` is noted, durably, before the credential is
sent; then exactly one of `succeeded`, `failed` and `dropped` tells what came of it.

Guarantees, for devices that lock after three failures or more within the window:
- After a refusal nothing is tried by that protocol within the window: neither the same credential nor another.
- A device gets at most two tries within the window that it may have counted against us, over all its protocols and
  addresses (`others`), whatever crashes.
- An attempt that nobody told the end of is taken for a refusal. It is forgiven for the credential that worked last, and
  where the device broke off before it judged: then it is a try that the device may have counted, no more.
- A clock that goes back unlocks nothing early, and locks for one window more at most, if `noticed` is stored.

Assumptions: a note is stored before the act; one device is asked by one at a time. Caveat: a clock that is set forward
ends a window early; nobody can tell that from time that passed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import msgspec

STRIKES = 2
"""Tries that a device may count against us within a window. Three is where the strictest usual devices lock."""

MAX_FAILED = 16
"""Credentials whose refusals are remembered; a rule names nine at most."""


class LoginRecord(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """What one device did with our credentials, by one protocol. Credentials are known by the names of Secrets."""

    worked: str = ""
    """The one that was accepted last, unless it was refused since."""
    pending: str = ""
    """The one whose end nobody has told yet."""
    attempted: float = 0
    """When that was sent."""
    failed: dict[str, float] = {}
    """When each was last refused."""
    strikes: tuple[float, ...] = ()
    """Earlier tries that the device may have counted. The last few: no more can be within a window."""
    undecided: bool = False
    """The device broke off before it judged the pending one."""
    back: float = 0
    """When the clock was first seen to be before one of these times; 0 while it is not."""
    presumed: tuple[str, ...] = ()
    """Of those in `failed`, the ones that are only taken for refused: nobody told their end."""


class Use(msgspec.Struct, frozen=True):
    """This credential may be tried now."""

    secret: str


class Cause(enum.Enum):
    """Why a device must wait."""

    REFUSED = "a login was refused"
    NO_END = "a login had no known end, and may have been refused"
    COUNTED = f"{STRIKES} logins were refused or had no known end"
    """By other protocols too, and at the device's other addresses."""


class Wait(msgspec.Struct, frozen=True):
    """None may be tried before this time."""

    until: float
    cause: Cause = Cause.REFUSED


class State(enum.Enum):
    """Of a device, for one protocol."""

    FREE = "free"
    DOUBTFUL = "doubtful"
    """An attempt has no known end, and is forgiven."""
    LOCKED = "locked"
    """A refusal, or what is taken for one, is younger than the window."""


def choose(
    record: LoginRecord, secrets: Sequence[str], now: float, window: float, *, others: Iterable[LoginRecord] = ()
) -> Use | Wait:
    """The credential to try now, of those that the rule names in its order.

    `others` are the records of the same device by other protocols and at its other addresses: accounts are often shared.
    """
    if not secrets:
        raise ValueError("a rule names one credential at least")
    lock = locked(record, now, window)
    if lock is not None:
        return lock
    own = _settled(record)
    counted = sorted(end for each in (own, *map(_settled, others)) for end in _counted(each, now, window))
    if len(counted) >= STRIKES:
        return Wait(counted[-STRIKES], Cause.COUNTED)
    return Use(_best(own, secrets))


def locked(record: LoginRecord, now: float, window: float) -> Wait | None:
    """Until when a refusal, or what is taken for one, forbids this protocol; None when none does."""
    own = _settled(record)
    ends = {secret: _end(own, moment, now, window) for secret, moment in own.failed.items()}
    last = max(ends, key=lambda secret: (ends[secret], secret), default="")
    if not ends or ends[last] <= now:
        return None
    return Wait(ends[last], Cause.NO_END if last in own.presumed else Cause.REFUSED)


def state(record: LoginRecord, now: float, window: float) -> State:
    """Where the device stands, for this protocol alone."""
    if locked(record, now, window) is not None:
        return State.LOCKED
    return State.DOUBTFUL if _settled(record).pending else State.FREE


def counts(record: LoginRecord, now: float, window: float) -> bool:
    """Whether the device may count something of it against us still."""
    return locked(record, now, window) is not None or bool(_counted(_settled(record), now, window))


def attempted(record: LoginRecord, secret: str, now: float) -> LoginRecord:
    """The note before the credential is sent."""
    own = _settled(record)
    again = own.undecided and own.pending == secret
    strikes = _struck(own, own.attempted) if own.pending else own.strikes
    return _with(own, pending=secret, attempted=now, strikes=strikes, undecided=again, back=0.0)


def succeeded(record: LoginRecord, secret: str, now: float) -> LoginRecord:
    """The device accepted it. Refusals of others are kept: they say which one to try last."""
    refusals = {name: at for name, at in record.failed.items() if name != secret}
    return _with(
        record,
        worked=secret,
        pending="",
        attempted=0.0,
        failed=refusals,
        undecided=False,
        presumed=tuple(name for name in record.presumed if name != secret),
    )


def failed(record: LoginRecord, secret: str, now: float, *, presumed: bool = False) -> LoginRecord:
    """The device refused it. `presumed` when it is only taken for refused."""
    guesses = {*record.presumed, secret} if presumed else {*record.presumed} - {secret}
    refusals = {**record.failed, secret: now}
    if len(refusals) > MAX_FAILED:
        newest = sorted(refusals, key=lambda name: (refusals[name], name))[-MAX_FAILED:]
        refusals = {name: refusals[name] for name in newest}
    return _with(
        record,
        worked="" if record.worked == secret else record.worked,
        pending="",
        attempted=0.0,
        failed=refusals,
        strikes=_struck(record, now),
        undecided=False,
        back=0.0,  # what was waited for before this refusal does not count for it
        presumed=tuple(sorted(guesses & refusals.keys())),
    )


def dropped(record: LoginRecord, *, unsent: bool = False) -> LoginRecord:
    """The device broke off before it judged the credential. `unsent` when it surely never got it. Some devices refuse in
    this way: the second time in a row it is a refusal, unless that credential has worked."""
    if not record.pending:
        return record
    if unsent:
        return _with(record, pending="", attempted=0.0, undecided=False)
    if record.undecided and record.pending != record.worked:
        return failed(record, record.pending, record.attempted, presumed=True)
    return _with(record, undecided=True)


def noticed(record: LoginRecord, now: float) -> LoginRecord:
    """The record with a clock that went back noted; the same one when there is nothing to note. Store it, and a device
    waits for one window by the clock as it is now, not until the clock is where it was."""
    ahead = any(moment > now for moment in (record.attempted, *record.strikes, *record.failed.values()))
    back = _since(record, now) if ahead else 0.0
    return record if back == record.back else _with(record, back=back)


def _settled(record: LoginRecord) -> LoginRecord:
    """With an attempt that must be taken for a refusal made one."""
    if not record.pending or record.undecided or record.pending == record.worked:
        return record
    return failed(record, record.pending, record.attempted, presumed=True)


def _counted(record: LoginRecord, now: float, window: float) -> list[float]:
    """For each try within the window that the device may have counted, when it is no longer within."""
    moments = _struck(record, record.attempted) if record.pending else record.strikes
    return [end for moment in moments if now < (end := _end(record, moment, now, window))]


def _struck(record: LoginRecord, moment: float) -> tuple[float, ...]:
    return (*record.strikes, moment)[-STRIKES:]


def _end(record: LoginRecord, moment: float, now: float, window: float) -> float:
    return (moment if moment <= now else _since(record, now)) + window


def _since(record: LoginRecord, now: float) -> float:
    """From when to count for a moment that the clock has not reached again."""
    return record.back if 0 < record.back <= now else now


def _best(record: LoginRecord, secrets: Sequence[str]) -> str:
    if record.worked in secrets:
        return record.worked
    return min(secrets, key=lambda name: record.failed.get(name, float("-inf")))


def _with(record: LoginRecord, **changes: object) -> LoginRecord:
    return msgspec.structs.replace(record, **changes)
