"""What the machine is told: how the world is, what has just been asked of it, and what it answers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.systems.delivery.kinds import CanaryDeploymentSpec, CanaryDeploymentStatus, Check, Counters, Evidence


class Pods(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two Deployments. `ok`: it is as wanted, and enough of its pods are ready."""

    exists: bool = False
    ok: bool = False
    ready: int = 0
    wanted: int = 0
    failed: bool = False
    """It has given up: its own deadline is over."""
    message: str = ""
    excused: bool = False
    """That none is ready is not its own doing: its machine ended, or was started anew."""
    crashes: int = 0
    """How often its containers ended by themselves."""


class Order(enum.Enum):
    """What its ReleaseGroup says to a member."""

    FREE = "it is in none"
    WAIT = "the others are not so far"
    PROMOTE = "it is its turn"
    ROLL_BACK = "one of them failed"
    HOLD = "one of them failed, and those after it go back first"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The world, as one reconcile sees it. `live`: the routes are as wanted, and the data plane has them; else look again
    after `wait` seconds. `drifted`: someone had changed routes or the canary, and it was just put back."""

    now: datetime
    generation: int
    spec: CanaryDeploymentSpec
    annotations: Mapping[str, str]
    target: str
    stable: Pods
    canary: Pods
    live: bool
    wait: float | None = None
    drifted: bool = False
    routes: int = 0
    """The generation of the VirtualService."""
    drifts: tuple[str, ...] = ()
    """What others changed and was not put back, because nothing may be touched now."""
    order: Order = Order.FREE
    order_revision: str = ""
    """With ROLL_BACK: what was stable before the release."""
    earlier: tuple[str, ...] = ()
    """Revisions that were stable once, newest first."""
    fighting: bool = False
    """Others change our objects again and again: hold still."""


class Need(enum.Enum):
    """What must be asked before the machine can go on."""

    NOTHING = ""
    CONFIRM_ROLLOUT = "ConfirmRollout"
    PRE_ROLLOUT = "PreRollout"
    CHECK = "check"
    POST_ROLLOUT = "PostRollout"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. Of a check: its verdict, what it counted, and whether who is asked before an increase or a
    promotion said yes."""

    allowed: bool = True
    message: str = ""
    check: Check | None = None
    settled: Literal["Advance", "Stay", "Rollback", "Freeze"] = "Stay"
    reason: str = ""
    counters: Counters = Counters()
    evidence: tuple[Evidence, ...] = ()
    moved: bool = True
    """Whether the window is used up; a window that held too little is kept, and grows."""
    pause: float = 0.0
    """Seconds to the next check; 0 is the interval."""
    record: str | UnsetType = UNSET
    crashes: int = 0
    """Of its pods, up to this check."""


class Said(msgspec.Struct, frozen=True):
    """An event for people."""

    warning: bool
    reason: str
    note: str


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """Where it goes: the status to write before anything is done about it, and when to look again (None: at a change)."""

    status: CanaryDeploymentStatus
    said: tuple[Said, ...] = ()
    after: float | None = None
    remove: bool = False
    """The canary's Deployment may go: no traffic reaches it."""
