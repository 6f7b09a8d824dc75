"""A few addresses, asked once more: before a Target is called lost."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.sweep.job import Job, Probe
from trimtab.systems.discovery.sweep.sweeper import Sweeper

_RANK = (Outcome.SILENT, Outcome.NOT_SENT, Outcome.UNREACHABLE, Outcome.REFUSED, Outcome.OPEN)
"""What tells more comes later: a probe that was not sent leaves open whether the device would have been silent."""


async def probe_once(
    sweeper: Sweeper,
    addresses: Sequence[str],
    probes: Sequence[Probe],
    *,
    seed: int = 0,
    packets_per_second: float | None = None,
) -> dict[str, Outcome]:
    """The most telling outcome of each address over all probes. Each address once, also when it is given twice."""
    asked = Listed(addresses)
    outcomes = dict.fromkeys(asked.addresses, Outcome.SILENT)
    async with sweeper.sweep(
        Job(addresses=asked, probes=probes, seed=seed, packets_per_second=packets_per_second)
    ) as sweep:
        async for batch in sweep:
            for answer in batch.answers:
                address = asked.at(answer.position)
                outcomes[address] = max(outcomes[address], answer.outcome, key=_RANK.index)
    return outcomes


class Listed:
    """A list as the addresses of a job."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = tuple(dict.fromkeys(addresses))

    def __len__(self) -> int:
        return len(self.addresses)

    def at(self, position: int) -> str:
        return self.addresses[position]
