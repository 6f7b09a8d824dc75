"""Which pods of a Deployment to make and which to end, now. Pure.

Guarantees, as Kubernetes': never more than `replicas + maxSurge` pods that are not on their way out, and with
RollingUpdate no available pod is taken when that leaves fewer than `replicas - maxUnavailable`. Old pods that are not
available go first. With Recreate all old ones have ended before a new one is made.

There are no ReplicaSets: a pod is old when the hash in its label is not that of the template. So an old pod that somebody
deletes in mid-rollout is replaced by a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What counts of one pod. `born` sorts by age."""

    name: str
    new: bool
    deleting: bool = False
    ready: bool = False
    available: bool = False
    restarts: int = 0
    born: str = ""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a Deployment asks for, in numbers."""

    replicas: int = 1
    surge: int = 1
    unavailable: int = 0
    recreate: bool = False
    paused: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`make` pods of the template, or of the newest pod there is (`like_newest`, while paused), and end these."""

    make: int = 0
    end: tuple[str, ...] = ()
    like_newest: bool = False


def wanted_of(spec: Mapping[str, Any]) -> Wanted:
    """Of a Deployment's spec. Percentages are of the replicas: a surge is rounded up, what may be missing down."""
    given = spec.get("replicas")
    replicas = 1 if given is None else int(given)
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    surge = resolved(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = resolved(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1  # or it would never end
    recreate = strategy.get("type") == "Recreate"
    return Wanted(
        replicas=replicas,
        surge=0 if recreate else surge,
        unavailable=0 if recreate else min(unavailable, replicas),
        recreate=recreate,
        paused=bool(spec.get("paused")),
    )


def resolved(value: int | str | None, whole: int, *, up: bool) -> int:
    """A number, or a percentage of `whole`."""
    if value is None:
        return 0
    if isinstance(value, int):
        return max(value, 0)
    percent = int(value.removesuffix("%"))
    return max(0, -(-whole * percent // 100) if up else whole * percent // 100)


def plan(wanted: Wanted, pods: Sequence[Facts]) -> Plan:
    """The next step. It is asked again whenever a pod changed."""
    staying = [pod for pod in pods if not pod.deleting]
    new = [pod for pod in staying if pod.new]
    old = [pod for pod in staying if not pod.new]
    if wanted.paused:
        return _paused(wanted, staying)
    surplus = _first(new, len(new) - wanted.replicas)
    if wanted.recreate:
        if old or any(not pod.new for pod in pods):
            return Plan(end=tuple(pod.name for pod in old) + surplus)
        return Plan(make=max(0, wanted.replicas - len(new)), end=surplus)
    room = wanted.replicas + wanted.surge - len(staying)
    make = max(0, min(wanted.replicas - len(new), room))
    return Plan(make=make, end=surplus + _replaced(wanted, new, old))


def _paused(wanted: Wanted, staying: Sequence[Facts]) -> Plan:
    """Only the number is kept, with pods as they are."""
    if not staying:
        return Plan()
    missing = wanted.replicas - len(staying)
    return Plan(make=max(0, missing), like_newest=True, end=_first(staying, -missing))


def _replaced(wanted: Wanted, new: Sequence[Facts], old: Sequence[Facts]) -> tuple[str, ...]:
    """Old pods that are needed no more."""
    least = wanted.replicas - wanted.unavailable
    coming = sum(not pod.available for pod in new)
    may_go = len(new) + len(old) - least - coming
    if may_go <= 0 or not old:
        return ()
    idle = [pod for pod in old if not pod.available][:may_go]
    spare = sum(pod.available for pod in (*new, *old)) - least
    serving = [pod for pod in old if pod.available]
    return tuple(pod.name for pod in idle) + _first(serving, min(spare, may_go - len(idle)))


def _first(pods: Sequence[Facts], count: int) -> tuple[str, ...]:
    """Those to end first: not ready, then often restarted, then young."""
    if count <= 0:
        return ()
    young = sorted(pods, key=lambda pod: (pod.born, pod.name), reverse=True)
    return tuple(pod.name for pod in sorted(young, key=lambda pod: (pod.ready, pod.available, -pod.restarts))[:count])
