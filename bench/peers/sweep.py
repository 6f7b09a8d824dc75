"""Our side of bench/discovery.py: one sweep, in a process of its own as the other scanners are. Prints JSON.

    python bench/peers/sweep.py snmp|tcp ADDRESSES --rate N --tries N

`snmp` asks sysDescr, sysObjectID and sysName in one question, and counts the devices whose three answers were read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import sys
from collections.abc import Callable

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.identify.snmp_messages import BadMessage, get_request, read_response
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.sweep import Answer, Job, Limits, Probe, Sweeper

OIDS = ("1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.5.0")
TCP_PORT, SNMP_PORT = 57400, 161
COMMUNITY = b"public"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("snmp", "tcp"))
    parser.add_argument("addresses")
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--tries", type=int, default=2)
    options = parser.parse_args()
    request_id = random.SystemRandom().randrange(1, 2**31)
    if options.what == "snmp":
        payload = get_request("v2c", COMMUNITY, request_id, OIDS)
        probe = Probe(
            transport="udp", port=SNMP_PORT, payload=payload, accepts=answers_to(request_id), tries=options.tries
        )
    else:
        probe = Probe(transport="tcp", port=TCP_PORT, tries=options.tries)
    job = Job(addresses=Addresses(parse(options.addresses)), probes=[probe], seed=request_id)
    found: dict[int, tuple[object, ...]] = {}
    async with Sweeper(Limits(packets_per_second=options.rate)) as sweeper, sweeper.sweep(job) as sweep:
        async for batch in sweep:
            for answer in batch.answers:
                if answer.outcome is Outcome.OPEN:
                    found[answer.position] = said(answer)
    quality = sweep.quality
    assert quality is not None
    report = {
        "found": sum(all(values) for values in found.values()),
        "packets": quality.sent,
        "sweep_seconds": quality.duration,
        "late": quality.late,
        "worst_lag": quality.worst_lag,
        "poor": quality.poor,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    json.dump(report, sys.stdout)


def answers_to(request_id: int) -> Callable[[bytes], bool]:
    def accepts(data: bytes) -> bool:
        try:
            return read_response(data).request_id == request_id
        except BadMessage:
            return False

    return accepts


def said(answer: Answer) -> tuple[object, ...]:
    return tuple(value for _, value in read_response(answer.data).values) if answer.data else (True,)


if __name__ == "__main__":
    asyncio.run(main())
