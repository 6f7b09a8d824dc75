"""What is remembered of one object of a generated kind: its status. `sync` is the reconciler's own memory.

It is in the status because annotations are reverted by GitOps tools and end at 256 KiB. Losing it must be harmless: an
object without it is adopted as it is, never written blindly.

Secrets are never here: where a body has one, `last_applied` has its HMAC (`syncing.secrets`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.resource import Spec

Time = str


class Operation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A long-running operation that is followed."""

    verb: str  # create, update, patch, delete
    method: str  # of the request that began it
    url: str  # to poll; "" is the resource itself
    style: str  # status (a body that says how far), location (202 until done), resource (its provisioningState), gone
    # (until it is not there), lost (the resource, since there is nothing to ask how far it is),
    # result (done, and what a POST made is fetched)
    started: Time
    next_poll: Time = ""
    polls: int = 0
    failures: int = 0
    deadline: Time = ""
    generation: int = 0  # that it was begun for
    percent: float | None = None
    id: str = ""
    result: str = ""  # of a POST: where what it made is, once it is done


class Pending(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A write that was about to be sent, recorded before it. If it is still here afterwards, nobody knows whether it was."""

    verb: str
    method: str
    digest: str  # of the body
    started: Time
    key: str = ""  # the idempotency key


class Sync(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The reconciler's memory."""

    created: bool = False  # it was there once, by our hand or adopted
    model: str = ""
    last_applied: str = ""
    """The desired body of the last settled success, as JSON: a patch of the status would lose its nulls. "": none yet."""
    known_differences: dict[str, str] = {}
    """Path → what the service answered instead, right after that, as JSON; "" is that it answered nothing."""
    removals: dict[str, int] = {}
    """Path → which way to remove it was tried last."""
    etag: str = ""
    failed: Time = ""  # since when the service calls it failed, or when it was last written again for that
    applying: str = ""
    """The desired body of a write that is not settled yet, as JSON: what it set is ours, whether or not it arrived."""
    recreating: str = ""  # why it is being deleted only to be made again
    operation: Operation | None = None
    pending: Pending | None = None
    corrected: dict[str, tuple[Time, ...]] = {}
    """Path → when drift of it was last corrected."""
    exported: str = ""  # digest of what was last exported
    references: str = ""  # digest of what the spec's references led to when it was last compared
    woken: str = ""  # the word of a change (its annotation) that was last looked into


class Policy(Spec):
    """What may be done to the resource."""

    drift: Literal["correct", "report", "ignore"] = "correct"
    create_only: Literal["block", "recreate"] = "block"
    deletion: Literal["delete", "detach"] = "delete"
    missing: Annotated[
        Literal["recreate", "report"], Meta(description="What to do when someone else has deleted it.")
    ] = "recreate"
    adopt: Annotated[
        Literal["never", "adopt", "overwrite"],
        Meta(description="What to do when it exists already: refuse; take it as it is; take it and apply the spec."),
    ] = "never"
    mode: Annotated[Literal["manage", "plan"], Meta(description="plan writes status.plan and nothing else.")] = "manage"
    paused: bool = False
    refresh: (
        Annotated[str, Meta(max_length=64, pattern=r"^(never|([0-9]+(\.[0-9]+)?(ms|s|m|h|d|w))+)$")] | UnsetType
    ) = UNSET


class Parent(Spec):
    """The object that this one is a part of: by name in the same namespace, or by the ID of what no object stands for."""

    name: Annotated[str, Meta(max_length=253)] | UnsetType = UNSET
    resource_id: Annotated[str, Meta(max_length=2048)] | UnsetType = msgspec.field(default=UNSET, name="resourceID")


class Change(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One line of a plan."""

    path: str
    why: str  # set, changed, removed, drifted, create-only
    old: Any = None
    new: Any = None


class Plan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    action: str  # create, patch, update, recreate, delete, none
    method: str = ""
    url: str = ""
    changes: tuple[Change, ...] = ()
    generation: int = 0


class Joined(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a join gave."""

    value: Any = None
    at: Time = ""
    error: str = ""


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The status of an object of a generated kind."""

    conditions: Conditions | UnsetType = UNSET
    observed_generation: int | UnsetType = UNSET
    resource_id: str = msgspec.field(default="", name="resourceID")
    observed: Any = UNSET
    joined: dict[str, Joined] | UnsetType = UNSET
    plan: Plan | UnsetType = UNSET
    sync: Sync = Sync()
