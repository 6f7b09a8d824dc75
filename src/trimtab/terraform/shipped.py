"""What the classes of the kinds that ship with this release tell beyond their schemas, as plain data.

The provider runs without those classes, and on machines that have none of the systems. A test compares this with them.
"""

from __future__ import annotations

from typing import Final

from trimtab.terraform.kinds.hints import READ_ONLY, SENSITIVE, Hints
from trimtab.terraform.kinds.naming import SUFFIX

_FILES = (
    "spec.artifact.uploadedYAML.paths.*.digest",
    "spec.artifact.uploadedHelm.chartPath.digest",
    "spec.artifact.uploadedHelm.valuesPaths.*.digest",
    "spec.artifact.helmInRepo.valuesPaths.*.digest",
)

MARKS: Final = {
    ("apps", "Workload"): dict.fromkeys(_FILES, READ_ONLY),
    ("infra", "Addon"): dict.fromkeys(_FILES, READ_ONLY),
    ("infra", "Cluster"): {
        "spec.config.mks.clusterSsh.passphrase": SENSITIVE,
        "spec.config.mks.nodes.*.ssh.passphrase": SENSITIVE,
        "spec.proxy.proxyAuth": SENSITIVE,
    },
}
"""By the group's first label and the kind; paths of documents, `*` for every item."""


def shipped_hints(suffix: str = SUFFIX) -> dict[tuple[str, str], Hints]:
    return {
        (f"{group}.{suffix}", kind): Hints({tuple(path.split(".")): frozenset({mark}) for path, mark in marks.items()})
        for (group, kind), marks in MARKS.items()
    }
