"""What a sweep is asked, and what comes back. Silence is told by nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from trimtab.systems.discovery.findings import Outcome

MAX_DATAGRAM = 8192
"""Bytes of an answer; what is longer is cut."""
MAX_LAG = 1.0
"""Seconds without listening that need not worry: time-outs are put off by as much, and the kernel keeps what comes."""
MAX_PROBES = 255
"""Of one job: how many are still to come is one byte an address."""


class Positions(Protocol):
    """The addresses of a job: each once, as IPv4 or IPv6 literals."""

    def __len__(self) -> int: ...

    def at(self, position: int) -> str: ...


class Probe(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One question to every address. It is asked `tries` times, and waits `timeout` seconds each time.

    `accepts` says whether a datagram answers it; it runs in the sweep's thread, so it must be quick.
    """

    transport: Literal["tcp", "udp"]
    port: int
    payload: bytes = b""
    accepts: Callable[[bytes], bool] | None = None
    timeout: float = 1.0
    tries: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            raise ValueError(f"{self.port} is not a port: give one from 1 to 65535")
        if self.timeout <= 0 or self.tries < 1:
            raise ValueError("a probe needs a timeout above 0 and at least one try")

    def __repr__(self) -> str:
        """Without the payload, which may hold a community."""
        return f"Probe({self.transport}/{self.port}, timeout={self.timeout:g}, tries={self.tries})"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """All probes to all addresses, in the order that size and seed give, from `start` on.

    A sweep that was interrupted goes on with the same addresses and seed, and `start` = the last `Batch.done`.
    """

    addresses: Positions
    probes: Sequence[Probe]
    seed: int
    start: int = 0
    packets_per_second: float | None = None
    """The job's own cap, below the one that all share."""

    def __post_init__(self) -> None:
        if len(self.probes) > MAX_PROBES:
            raise ValueError(f"{len(self.probes)} probes in one sweep, and {MAX_PROBES} is the most")
        if self.packets_per_second is not None and self.packets_per_second <= 0:
            raise ValueError(f"a sweep at {self.packets_per_second:g} packets a second sends nothing: give more than 0")
        if not 0 <= self.start <= len(self.addresses):
            raise ValueError(f"a sweep of {len(self.addresses)} addresses cannot start at {self.start}")


class Answer(msgspec.Struct, frozen=True, gc=False):
    """OPEN (with the datagram, for UDP), REFUSED, UNREACHABLE or NOT_SENT."""

    position: int
    probe: int
    """Its place in `Job.probes`."""
    outcome: Outcome
    data: bytes = b""


class Batch(msgspec.Struct, frozen=True):
    answers: list[Answer]
    done: int
    """So many addresses, in the order of the sweep, are finished without a gap."""
    total: int


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """How far a sweep can be trusted."""

    sent: int
    errors: int
    """Sends that failed on this machine, and were given up."""
    worst_lag: float
    """The longest that the thread did not listen, in seconds."""
    late: int
    """TCP connections that were found open only when their time was over."""
    foreign: int
    """Datagrams that nobody asked for, or that did not answer the question."""
    duration: float
    shortest_timeout: float

    @property
    def poor(self) -> str:
        """Why absence must not be concluded from it; empty when it may."""
        if self.errors > 0.01 * (self.sent + self.errors):
            return f"{self.errors} of {self.sent + self.errors} probes could not be sent"
        if self.worst_lag > max(MAX_LAG, self.shortest_timeout):
            return (
                f"the machine was too busy to listen for {self.worst_lag:.1f} s, "
                f"and a probe waits {self.shortest_timeout:g} s"
            )
        return ""


class SweepFailed(Exception):  # noqa: N818 - it reads as what happened
    """The sweep broke off. The message says why."""
