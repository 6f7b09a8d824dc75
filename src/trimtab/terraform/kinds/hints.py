"""What the classes of kinds tell that no schema does: which fields are read only, write only or secret.

Schemas of Kubernetes have no words for these. Whoever takes a snapshot gives them along (`trimtab.terraform.shipped` has
those of the kinds that ship, `marking` reads them from classes); kinds without a class do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Path = tuple[str, ...]
"""Names in documents; `*` is every item of a list or value of a map."""

READ_ONLY, WRITE_ONLY, SENSITIVE = "read_only", "write_only", "sensitive"

BRANCHES = "terraform-branches"
"""A kind of this category asks for one resource more for each branch of its choices: `trimtab_mks_cluster`."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Of one kind."""

    marks: Mapping[Path, frozenset[str]] = field(default_factory=dict)

    def at(self, path: Path) -> frozenset[str]:
        return self.marks.get(path, frozenset())


NO_HINTS = Hints()
