"""The Terraform provider: from its start to the line that Terraform waits for, plans, and the answer with all schemas.

    python bench/terraform.py [--quick] [--only start|plan|schemas …] [--json FILE] [--docs]

Everything is in one run on one machine, peers and ours in turns. A ratio says how many times better Trimtab is; below its goal
it is behind, and is printed like the others. What is measured, and how, is in `bench/peers/terraform_providers.py`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

import terraform_providers as providers  # noqa: E402 - of bench/peers
from terraform_providers import Peer, Start  # noqa: E402

import table  # noqa: E402
from table import Row, megabytes  # noqa: E402

PARTS = ("start", "plan", "schemas")
HANDSHAKE, MEMORY, SCHEMA = 0.1, 30e6, 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that it works")
    options = table.asked(parser, PARTS)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        say("the providers")
        real, small = providers.ours(folder)
        peers = [providers.with_tf(folder), providers.with_pyvider(folder)]
        if shutil.which("go"):
            peers.append(providers.in_go())
        if "start" in options.only:
            say("starts")
            rows += of_starts(providers.starts([real, *peers], 5 if options.quick else 40, folder), peers)
        if "plan" in options.only:
            able = [peer for peer in peers if peer.resource]
            for count in (1, 100) if options.quick else (1, 1_000):
                say(f"plans of {count}")
                rows += of_plans(providers.plans([small, *able], count, 1 if options.quick else 5, folder), count, able)
        if "schemas" in options.only:
            say("schemas")
            rows += of_schemas(providers.schemas(real, 3 if options.quick else 15, folder))
    table.show("the Terraform provider", rows, digits=2, width=150)
    if options.docs:
        table.renew("terraform", rows, digits=2)
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=2) + "\n")


def say(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


def of_starts(found: dict[str, Start], peers: list[Peer]) -> Iterator[Row]:
    mine = found["trimtab"]
    own = statistics.median(mine.seconds)
    reached = own < HANDSHAKE
    yield Row("start to handshake, median", "", _milliseconds(own), None, f"< {HANDSHAKE * 1e3:g} ms", reached)
    yield Row(
        "memory after the start", "", megabytes(mine.memory), None, f"< {megabytes(MEMORY)}", mine.memory < MEMORY
    )
    for peer in peers:
        theirs = found[peer.name]
        median = statistics.median(theirs.seconds)
        yield Row(
            f"start to handshake, median: beside {_named(peer)}",
            _milliseconds(median),
            _milliseconds(own),
            median / own,
        )
        ratio = theirs.memory / mine.memory
        yield Row(
            f"memory after the start: beside {_named(peer)}", megabytes(theirs.memory), megabytes(mine.memory), ratio
        )


def of_plans(found: dict[str, float], count: int, peers: list[Peer]) -> Iterator[Row]:
    own = found["trimtab"]
    things = "1 resource" if count == 1 else f"{count:,} resources"
    for peer in peers:
        theirs = found[peer.name]
        yield Row(f"terraform plan of {things}: beside {_named(peer)}", f"{theirs:.2f} s", f"{own:.2f} s", theirs / own)


def of_schemas(found: providers.Answered) -> Iterator[Row]:
    what = f"{found.schemas} large schemas and their data sources, {found.size / 1e6:.1f} MB"
    yield Row(f"{what}: the first answer", "", _milliseconds(found.first))
    yield Row(
        f"{what}: an answer", "", _milliseconds(found.seconds), None, f"< {SCHEMA * 1e3:g} ms", found.seconds < SCHEMA
    )


def _named(peer: Peer) -> str:
    return "a provider in Go" if peer.name == "Go" else f"PyPI's {peer.name}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"


if __name__ == "__main__":
    main()
