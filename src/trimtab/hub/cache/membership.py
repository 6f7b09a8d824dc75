"""Who is there, who may answer from memory, and whom a write waits for. Pure: messages and moments in, answers out.

Every replica publishes beats. Hearing its own beat is its lease: until SPARE of LEASE after it was *sent* it may answer from
memory, because it has heard all that was published before the beat. So of a change that has its place in the order:

  - a replica whose lease comes from a beat after the change has heard the change first;
  - a lease from a beat before the change ends, by the replica's own clock, at most SPARE of LEASE after the beat was sent;
    whoever heard that beat waits a whole LEASE from hearing it, or for the replica's word that it heard the change;
  - whoever has listened for less than a LEASE may not have heard of everybody, and waits until it has.

The clocks of two machines need not agree, but may not run apart by more than the spare part (a fifth).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trimtab.hub.cache.messages import Beat

SPARE = 0.8
BEATS = 6
"""Beats in a lease."""
FORGET = 10
"""Leases after which one that is silent is not even remembered."""


class Member(msgspec.Struct, frozen=True):
    """Another replica, as of its last beat: `order` is the beat's place in what we heard."""

    session: str
    number: int
    heard: float
    order: int
    address: str


class Membership:
    """As one replica sees it in one session. `began` is the moment from which it listens."""

    def __init__(self, replica: str, session: str, lease: float, began: float) -> None:
        self.replica = replica
        self.session = session
        self.lease = lease
        self.began = began
        self.echoed = -1
        """The number of our last beat that we heard."""
        self.until = 0.0
        """We may answer from memory until then."""
        self.members: dict[str, Member] = {}

    def beat(self, beat: Beat, now: float, order: int) -> None:
        if beat.replica != self.replica:
            if beat.replica not in self.members:
                gone = [name for name, member in self.members.items() if member.heard + FORGET * self.lease < now]
                for name in gone:
                    del self.members[name]
            self.members[beat.replica] = Member(beat.session, beat.number, now, order, beat.address)
        elif beat.session == self.session and beat.number > self.echoed:
            self.echoed = beat.number
            self.until = max(self.until, beat.sent + SPARE * self.lease)

    def left(self, replica: str) -> None:
        self.members.pop(replica, None)

    def silent(self, now: float) -> bool:
        """Whether we have not heard ourselves for so long that the session must be broken."""
        return now > max(self.began, self.until) + self.lease

    def alive(self, now: float) -> Iterable[str]:
        """The others that may answer from memory."""
        return [name for name, member in self.members.items() if member.heard + self.lease > now]

    def awaited(self, now: float) -> dict[str, float]:
        """Whom a change waits for that we hear now, each until the moment when its lease has ended at the latest."""
        return {name: self.members[name].heard + self.lease for name in self.alive(now)}

    def complete(self) -> float:
        """From this moment on everybody who has a lease is known."""
        return self.began + self.lease
