"""The parts of docs/compatibility.md that the project itself knows: which kinds are served, which differences are accepted.

    python -m tests.differential.page

A part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; a test says when the page is not up to date.
"""

from collections.abc import Callable
from pathlib import Path

from trimtab.server.core import Server
from trimtab.store.memory import MemoryStore

from .differences import ACCEPTED

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


def main() -> None:
    PAGE.write_text(renewed(PAGE.read_text()))


def renewed(page: str) -> str:
    """The page with its generated parts made anew."""
    for name, part in PARTS.items():
        before, begin, rest = page.partition(f"<!-- begin {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        if not end:
            raise ValueError(f"the page has no place for {name}")
        page = f"{before}{begin}{part()}\n{end}{after}"
    return page


def kinds() -> str:
    """A row for each built-in kind, as discovery tells it."""
    server = Server(MemoryStore())
    rows = [
        "| group and version | kind | scope | subresources | field selectors beside name and namespace |",
        "|-|-|-|-|-|",
    ]
    for served in sorted(server.registry, key=lambda one: (one.kind.group, one.kind.kind)):
        kind = served.kind
        listed = server.discovery.resources(kind.group, kind.version) or {"resources": []}
        names = [row["name"] for row in listed["resources"]]
        parts = [name.partition("/")[2] for name in names if name.startswith(f"{kind.plural}/")]
        asked_only = "list" not in server.verbs(served)
        cells = (
            f"`{kind.api_version}`",
            f"{kind.kind}{' (create only)' if asked_only else ''}",
            "namespace" if kind.namespaced else "cluster",
            ", ".join(f"`{part}`" for part in sorted(parts)) or "–",
            ", ".join(f"`{field}`" for field in sorted(served.strategy.selectable)) or "–",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def differences() -> str:
    """The reasons, which say what differs and why; and where each one is looked for."""
    return "\n".join(f"{number}. {entry.reason}" for number, entry in enumerate(ACCEPTED, 1))


PARTS: dict[str, Callable[[], str]] = {"kinds": kinds, "differences": differences}


if __name__ == "__main__":
    main()
