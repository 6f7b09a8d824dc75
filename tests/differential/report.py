"""All differences of all scenarios as one document, most common first: `python -m tests.differential.report [PATTERN]`."""

import collections
import re
import sys
import tempfile
from pathlib import Path

from trimtab.testing.cluster import RealCluster
from trimtab.testing.embedded import TrimtabServer

from .compare import Difference, Scenario, signature
from .differences import accepted
from .exchange import shown
from .prepare import prepared
from .scenarios import SCENARIOS


def main() -> None:
    pattern = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    found: list[tuple[Scenario, Difference]] = []
    agreed = 0
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, name) for name in ("real", "ours")]
        for place in places:
            place.mkdir()
        with RealCluster(places[0]) as real, TrimtabServer(places[1]) as ours, prepared(real, ours) as pair:
            for scenario in SCENARIOS:
                if not pattern.search(scenario.name):
                    continue
                differences = pair.all_differences(scenario)
                left = [each for each in differences if accepted(scenario.name, scenario.requests[each.step], each) is None]
                found += [(scenario, each) for each in left]
                agreed += not left
    print(document(found, agreed))


def document(found: list[tuple[Scenario, Difference]], agreed: int) -> str:
    failing = {scenario.name for scenario, _ in found}
    groups: dict[tuple[str, str, str], list[tuple[Scenario, Difference]]] = collections.defaultdict(list)
    for scenario, each in found:
        groups[(signature(each), shown(each.real, 160), shown(each.ours, 160))].append((scenario, each))
    lines = [f"# {len(failing)} scenarios differ, {agreed} agree", ""]
    for (path, _, _), members in sorted(groups.items(), key=lambda group: -len(group[1])):
        scenario, each = members[0]
        request = scenario.requests[each.step]
        lines += [
            f"- **{path}** in {len(members)} places, as in `{scenario.name}` [{each.step}] {request.method} {request.path}",
            f"  - body: `{shown(request.body, 300) if request.body is not None else ''}`",
            f"  - real: `{shown(each.real, 400)}`",
            f"  - ours: `{shown(each.ours, 400)}`",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
