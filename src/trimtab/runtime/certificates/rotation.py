"""When webhook certificates change, and how, as a state machine. Pure: no keys are made here, nothing is sent.

    STEADY ──authority ages──▶ ANNOUNCED ──every configuration carries it──▶ CARRIED ──settled──▶ SWITCHED ──▶ STEADY

- STEADY: one authority, trusted and signing.
- ANNOUNCED: the next authority is in the trust bundle, and signs nothing yet.
- CARRIED: every configuration was seen with that bundle. API servers have `settle` to notice.
- SWITCHED: the next authority is the current one and signed the serving certificate. The previous one (its certificate;
  its key is gone) stays trusted until the last certificate that it signed has ended: a replica that has not looked for a
  while may still serve that one.

The invariant: a serving certificate that has not ended was signed by an authority that every configuration trusts. The
serving certificate itself is renewed at two thirds of its life in any state, by the current authority.
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

import msgspec


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate and its key, as PEM, and when it is valid. Its repr shows no key."""

    certificate: str
    key: str
    since: datetime
    until: datetime

    def __repr__(self) -> str:
        return f"Pair({self.since:%Y-%m-%d} to {self.until:%Y-%m-%d})"

    def aged(self, now: datetime) -> bool:
        """Whether two thirds of its life are over."""
        return now >= self.since + (self.until - self.since) * 2 / 3


class Retired(msgspec.Struct, frozen=True):
    """An authority that signs no more, trusted until the last certificate that it signed has ended."""

    certificate: str
    until: datetime


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """All that replicas share."""

    current: Pair
    serving: Pair
    hosts: tuple[str, ...]
    next: Pair | None = None
    carried: datetime | None = None  # since when every configuration carries `next`
    previous: Retired | None = None

    @property
    def trusted(self) -> bytes:
        """The certificates of all authorities that clients must trust now, oldest first: a switch changes nothing."""
        found = (self.previous, self.current, self.next)
        return "".join(one.certificate for one in found if one is not None).encode()


class State(enum.Enum):
    STEADY = "steady"
    ANNOUNCED = "announced"
    CARRIED = "carried"
    SWITCHED = "switched"


class Action(enum.Enum):
    MAKE = "make everything anew"
    RENEW = "renew the serving certificate"
    EXTEND = "renew the serving certificate for more hosts"
    ANNOUNCE = "add the next authority to the trust bundle"
    CARRY = "note that every configuration carries the bundle"
    RECALL = "note that some configuration carries it no more"
    SWITCH = "sign with the next authority"
    RETIRE = "take the previous authority out of the trust bundle"


class Lives(msgspec.Struct, frozen=True, kw_only=True):
    """How long things last. `settle` is how long API servers may take to notice a changed configuration."""

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=90)
    settle: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if self.authority < 3 * self.serving:
            raise ValueError("an authority must last three times as long as what it signs, for one of them to overlap")


def state_of(bundle: Bundle) -> State:
    if bundle.next is not None:
        return State.ANNOUNCED if bundle.carried is None else State.CARRIED
    return State.STEADY if bundle.previous is None else State.SWITCHED


def step(bundle: Bundle | None, now: datetime, *, carried: bool, hosts: tuple[str, ...], lives: Lives) -> Action | None:
    """What is to be done next, if anything. `carried` is whether every configuration was seen with the whole bundle."""
    if bundle is None:
        return Action.MAKE
    if now >= bundle.current.until:  # nothing valid is left to overlap with
        return Action.SWITCH if bundle.next is not None and now < bundle.next.until else Action.MAKE
    state = state_of(bundle)
    if state is State.STEADY and bundle.current.aged(now):
        return Action.ANNOUNCE
    if state is State.ANNOUNCED and carried:
        return Action.CARRY
    if state is State.CARRIED and not carried:
        return Action.RECALL
    if state is State.CARRIED and bundle.carried is not None and now >= bundle.carried + lives.settle:
        return Action.SWITCH
    if state is State.SWITCHED and bundle.previous is not None and now >= bundle.previous.until:
        return Action.RETIRE
    if bundle.serving.aged(now):
        return Action.RENEW
    if not set(hosts) <= set(bundle.hosts):  # a replica that knows fewer must not take away what another needs
        return Action.EXTEND
    return None
