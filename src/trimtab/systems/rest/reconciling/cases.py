"""What an object's situation is, before anything is compared: a table of what is there and what is remembered. Pure."""

from __future__ import annotations

import enum
from datetime import datetime

import msgspec

from trimtab.model.clock import parse_time
from trimtab.systems.rest.reconciling.subject import Subject


class Case(enum.Enum):
    COMPARE = "it is there and we know what we last applied"
    CONFIRM = "it is there, and it is our own creation that was not confirmed"
    ADOPT = "it is there and is to be taken as it is"
    OVERWRITE = "it is there and is to be made what the spec says"
    FOREIGN = "it is there, and nobody said that it may be taken"
    CREATE = "it is not there and is to be made"
    NOT_THERE = "the ID that was given leads to nothing"
    LOST = "it was there, and someone deleted it"
    EARLY = "a creation was sent a moment ago, and may still arrive"
    UNCERTAIN = "a creation was sent, and nobody can tell what came of it"


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    exists: bool
    applied: bool  # a last applied body is remembered
    created: bool  # it was there once
    creating: bool  # a write was announced that may have made it, and not its end
    recent: bool  # that was a moment ago
    forgotten: bool  # we hold the object by our finalizer, and nothing is remembered
    given: bool  # the spec names the ID
    findable: bool  # whether a lost creation could be found again
    recreating: bool
    adopt: str  # the policy
    missing: str  # the policy


def case(now: Situation) -> Case:
    if now.exists:
        return _there(now)
    if (now.creating or now.forgotten) and not now.findable and not now.given:
        return Case.UNCERTAIN
    if now.creating and now.recent:
        return Case.EARLY
    if now.recreating:
        return Case.CREATE
    if now.created:
        return Case.CREATE if now.missing == "recreate" else Case.LOST
    if now.given:
        return Case.NOT_THERE
    return Case.CREATE


def _there(now: Situation) -> Case:
    if now.applied:
        return Case.COMPARE
    if now.creating or now.created:
        return Case.CONFIRM
    if now.given or now.forgotten or now.adopt == "adopt":
        return Case.ADOPT
    return Case.OVERWRITE if now.adopt == "overwrite" else Case.FOREIGN


def situation(
    subject: Subject, *, claimed: bool, server: bool, exists: bool, findable: bool, now: datetime, grace: float
) -> Situation:
    """`server`: the server chooses IDs, so that a write that got lost may have made something under any name. `grace`:
    seconds within which one that was sent may still take effect there."""
    sync, control = subject.sync, subject.control
    pending = sync.pending if claimed else None  # what was announced is sent only when it is claimed
    creating = pending is not None and (server or pending.verb == "create")
    return Situation(
        exists=exists,
        applied=bool(sync.last_applied),
        created=sync.created,
        creating=creating,
        recent=server and pending is not None and (now - parse_time(pending.started)).total_seconds() < grace,
        forgotten=claimed and not (sync.created or sync.pending or sync.last_applied or sync.operation),
        given=bool(control.resource_id),
        findable=findable,
        recreating=bool(sync.recreating),
        adopt=control.policy.adopt,
        missing=control.policy.missing,
    )
