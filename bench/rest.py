"""The generic reconciler: false drift on recorded traffic, kinds from documents, and many objects against an ARM emulator.

    python bench/rest.py [--quick] [--only drift|kinds|objects …] [--json FILE] [--docs]

Everything is in one run on one machine. A ratio says how many times better Trimtab is; below its goal it is behind, and is
printed like the others. Azure's documents and the recordings of its traffic are taken from ../shared/data where they are;
elsewhere the project's own small ones stand for them, and the rows say so. What is measured, and how, is in
`bench/recordings.py` and `bench/peers`: `rest_generate.py`, `rest_arm.py`, `rest_scale.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "peers"))

import rest_generate as generate  # noqa: E402 - of bench/peers
import rest_scale as scale  # noqa: E402

import recordings  # noqa: E402
import table  # noqa: E402
from table import Row, megabytes  # noqa: E402

AZURE = ROOT.parent / "shared" / "data" / "azure-specs"
RECORDED = ROOT.parent / "shared" / "data" / "arm-recordings"
OWN_RECORDED = ROOT / "tests" / "systems" / "rest" / "documents" / "recordings"
OWN_NETS = HERE / "recorded"
OWN = ROOT / "examples" / "rest" / "compute.json"
LARGEST = "WebApps.json"
DOCUMENTS = 79
SECONDS, MEMORY, AT_ONCE = 10.0, 500e6, 1.0
PARTS = ("drift", "kinds", "objects")


FULL = scale.Scale(objects=10_000, parents=10, changes=500, interval=60, intervals=3)
QUICK = scale.Scale(objects=300, parents=3, changes=30, interval=3, intervals=3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few objects, to see that it works; goals are for many")
    options = table.asked(parser, PARTS)
    load = QUICK if options.quick else FULL
    rows: list[Row] = []
    if "drift" in options.only:
        rows += of_recordings()
    if "kinds" in options.only:
        rows += of_documents()
    if "objects" in options.only:
        rows += of_objects(scale.measure(load, say), load)
    table.show("the generic reconciler", rows, digits=2, width=150)
    if options.docs:
        table.renew("rest", rows, digits=2)
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=2) + "\n")


def say(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


def of_recordings() -> Iterator[Row]:
    say("false drift on recorded traffic")
    if RECORDED.is_dir() and AZURE.is_dir():
        found, whose = recordings.measure(RECORDED, recordings.compiled(AZURE)), "ARM's recordings"
    else:
        say("not here: ../shared/data/arm-recordings; a recording of our own stands for them")
        found, whose = recordings.measure(OWN_RECORDED, recordings.compiled(OWN_NETS)), "a recording of our own"
    title = f"false drift in {found.rereads} re-reads after {found.baselines} baselines, {whose}: beside"
    yield Row(f"{title} an exact comparison", str(found.exact), str(found.ours), None, "0", found.ours == 0)
    yield Row(f"{title} one with ignore knobs", str(found.knobs), str(found.ours), None, "0", found.ours == 0)


def of_documents() -> Iterator[Row]:
    say("kinds from documents")
    if AZURE.is_dir():
        files, whose = generate.documents(AZURE), "of Azure's documents"
        largest = next(iter(AZURE.rglob(LARGEST)))
    else:
        say("not here: ../shared/data/azure-specs; a document of our own, again and again, stands for them")
        files, whose, largest = [OWN] * DOCUMENTS, "times a document of our own", OWN
    made = generate.measure("kinds", files)
    title = f"{made.made} kinds from {made.documents} {whose}"
    ok = made.wall < SECONDS
    yield Row(f"{title}: time", "", f"{made.wall:.1f} s", None, f"under {SECONDS:g} s", ok)
    ok = made.peak < MEMORY
    yield Row(f"{title}: peak memory", "", megabytes(made.peak), None, f"under {MEMORY / 1e6:.0f} MB", ok)
    one = generate.measure("kinds", [largest])
    yield Row(f"the same of {largest.name} alone, {one.made} kinds", "", f"{one.wall * 1e3:.0f} ms")
    ours, theirs = generate.measure("resolve", [largest]), generate.measure("referencing", [largest])
    if ours.made != theirs.made:
        raise RuntimeError(f"{ours.made} references were looked up by ours, and {theirs.made} by referencing")
    yield Row(
        f"{largest.name} loaded, {ours.made:,} references looked up: beside the library referencing",
        f"{theirs.wall * 1e3:.0f} ms",
        f"{ours.wall * 1e3:.0f} ms",
        theirs.wall / ours.wall,
        f"under {AT_ONCE:g} s",
        ours.wall < AT_ONCE,
    )


def of_objects(found: scale.Figures, load: scale.Scale) -> Iterator[Row]:
    each = f"{load.objects:,} objects"
    yield Row(
        f"{each} created: beside a bare loop of GET, PUT, GET ({told(found.creating)})",
        f"{found.ceiling:,.0f}/s",
        f"{found.created:,.0f}/s",
        found.created / found.ceiling,
    )
    parts = (found.creating_cpu, found.creating_server, found.creating_arm)
    shares = ", ".join(f"{part / load.objects * 1e3:.1f}" for part in parts)
    yield Row("CPU of each: controllers, server, emulator", "", f"{shares} ms")
    writes = sum(count for verb, count in found.defined.items() if verb not in ("read", "list"))
    yield Row(
        f"writes after a change of the definition ({told(found.defined)})", "", str(writes), None, "0", writes == 0
    )
    others = {verb: count for verb, count in found.idle.items() if verb != "list"}
    title = f"LISTs of a parent while nothing happens, beside intervals of {load.interval} s"
    yield Row(
        f"{title} ({load.parents} parents, {found.pages:,} pages in all; else {told(others)})",
        str(load.intervals),
        str(found.lists),
        None,
        "at most one each",
        found.lists <= load.intervals and not others,
    )
    share = found.idle_cpu / found.idle_seconds
    yield Row("CPU of the controllers meanwhile, of one processor", "", f"{share:.1%}")
    yield Row("their memory", "", megabytes(found.memory))
    yield Row(
        f"writes sent, beside changes made ({told(found.changed)})",
        f"{load.changes:,}",
        f"{sum(found.changed.values()):,}",
        None,
        "the same",
        found.changed == {"PATCH": load.changes},
    )
    yield Row("changes brought to their end", "", f"{found.changed_rate:,.0f}/s")
    asked = sum(found.restarted.values())
    title = "requests after a restart, without the LISTs of the next interval"
    yield Row(f"{title} ({found.restarted_lists} pages)", "", str(asked), None, "0", asked == 0)
    yield Row("restart until all is quiet", "", f"{found.restart_seconds:.1f} s, {found.restart_cpu:.1f} s CPU")
    yield Row("memory after it", "", megabytes(found.restart_memory))


def told(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {verb}" for verb, count in counts.items()) or "nothing"


if __name__ == "__main__":
    main()
