"""What candidates write into a Lease and read from it: pure, and as client-go does, so that both can share one.

A lease is judged by what it looks like and for how long it has looked so, never by the times in it.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from trimtab.client.protocol import Object
from trimtab.model.clock import format_micro_time
from trimtab.model.kubernetes import Lease, LeaseSpec
from trimtab.runtime import objects


def is_free(seen: LeaseSpec, identity: str, unchanged: float, duration: float) -> bool:
    """Whether `identity`, who has seen the lease like this for `unchanged` seconds, may take it. A holder who does not
    say for how long has our `duration`."""
    if (seen.holder_identity or "") in ("", identity):
        return True
    promised = seen.lease_duration_seconds or 0
    return unchanged >= (promised if promised > 0 else duration)


def taken(seen: LeaseSpec, identity: str, duration: float, now: datetime) -> LeaseSpec:
    """The lease with `identity` as its holder, anew or still. Transitions count changes of the holder."""
    stamp = _stamp(seen, now)
    still = seen.holder_identity == identity
    first = seen == LeaseSpec()
    transitions = seen.lease_transitions or 0
    return LeaseSpec(
        holder_identity=identity,
        lease_duration_seconds=math.ceil(duration),
        acquire_time=seen.acquire_time if still else stamp,
        renew_time=stamp,
        lease_transitions=transitions if still or first else transitions + 1,
    )


def released(seen: LeaseSpec, now: datetime) -> LeaseSpec:
    """Nobody's, for whoever comes next."""
    stamp = _stamp(seen, now)
    return seen.replace(holder_identity="", lease_duration_seconds=1, acquire_time=stamp, renew_time=stamp)


def typed(lease: Object) -> Lease:
    """Also where the client's scheme does not know leases. msgspec.ValidationError when it is something else."""
    return objects.typed(lease, Lease)


def _stamp(seen: LeaseSpec, now: datetime) -> str:
    """Now, and never the time that the lease already has: others must see a change."""
    stamp = format_micro_time(now)
    return stamp if stamp != seen.renew_time else format_micro_time(now + timedelta(microseconds=1))
