"""The differences of all scenarios as one document, the most damaging first.

    python -m tests.differential.report [PATTERN] [--random COUNT [--seed NUMBER]]

After an answer with another status code the rest of a scenario is not compared: it only follows.
"""

import argparse
import collections
import re
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from trimtab.testing.cluster import RealCluster
from trimtab.testing.embedded import TrimtabServer

from .compare import Difference, Scenario, signature
from .exchange import Request, shown
from .prepare import prepared
from .scenarios import SCENARIOS
from .sequences import sequences

CLASSES = {
    "another status code": re.compile(r"^status$"),
    "objects, lists and events that clients read": re.compile(
        r"^body(?!.*managedFields)(?!.*(message|causes|details|reason)).*"
    ),
    "owners of fields": re.compile(r"^body.*managedFields"),
    "what an error says": re.compile(r"^body"),
    "headers": re.compile(r"^headers"),
}
Found = list[tuple[Scenario, Difference]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="only scenarios whose names match")
    parser.add_argument("--random", type=int, help="so many random sequences instead of the scenarios")
    parser.add_argument("--seed", type=int, default=1, help="which random sequences")
    options = parser.parse_args()
    chosen = [scenario for scenario in SCENARIOS if re.search(options.pattern, scenario.name)]
    if options.random:
        chosen = random_scenarios(options.random, options.seed)
    found: Found = []
    agreed = 0
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, name) for name in ("real", "ours")]
        for place in places:
            place.mkdir()
        with RealCluster(places[0]) as real, TrimtabServer(places[1]) as ours, prepared(real, ours) as pair:
            for scenario in chosen:
                differences = pair.differences(scenario)
                agreed += not differences
                found += [(scenario, each) for each in leading(differences)]
    print(document(found, agreed, len(chosen)))


def random_scenarios(count: int, number: int) -> list[Scenario]:
    chosen: list[Scenario] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(sequences())
    def collect(requests: tuple[Request, ...]) -> None:
        chosen.append(Scenario(f"random {len(chosen)}", requests))

    collect()
    return chosen


def leading(differences: list[Difference]) -> list[Difference]:
    """Those up to the first answer with another status code, and of that answer only the code and what it says."""
    kept: list[Difference] = []
    for step in sorted({each.step for each in differences}):
        here = [each for each in differences if each.step == step]
        if any(each.path == "status" for each in here):
            says = next((each for each in here if each.path in ("body.message", "body")), here[-1])
            code = next(each for each in here if each.path == "status")
            return [*kept, Difference(step, "status", f"{code.real} {says.real}", f"{code.ours} {says.ours}")]
        kept += here
    return kept


def document(found: Found, agreed: int, total: int) -> str:
    lines = [f"# {total - agreed} of {total} scenarios differ", ""]
    left = found
    for title, pattern in CLASSES.items():
        here = [item for item in left if pattern.search(item[1].path)]
        left = [item for item in left if not pattern.search(item[1].path)]
        groups: dict[tuple[str, str, str], Found] = collections.defaultdict(list)
        for item in here:
            groups[signature(item[1]), shown(item[1].real, 120), shown(item[1].ours, 120)].append(item)
        lines += [f"## {title}: {len({scenario.name for scenario, _ in here})} scenarios, {len(groups)} kinds", ""]
        for (path, _, _), members in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
            lines += entry(path, members)
    return "\n".join(lines)


def entry(path: str, members: Found) -> list[str]:
    scenario, each = members[0]
    request = scenario.requests[each.step]
    names = list(dict.fromkeys(scenario.name for scenario, _ in members))
    return [
        f"- {len(names)}x **{path}** `{request.method} {request.path}` ({'; '.join(names[:3])})",
        *([f"  - body `{shown(request.body, 250)}`"] if request.body is not None else []),
        f"  - real `{shown(each.real, 500)}`",
        f"  - ours `{shown(each.ours, 500)}`",
    ]


if __name__ == "__main__":
    main()
