"""Who holds the blobs of an SBOM and of its report, and what keeps an SBOM until they are let go.

The owners have the SBOM's uid, so that one that was made again under its old name holds its own.
"""

from __future__ import annotations

from trimtab.runtime.objects import uid_of
from trimtab.systems.images.kinds import SBOM

FINALIZER = "images.trimtab.dev/blobs"
"""On SBOMs: its controller unpins both owners, then takes it away."""


def documents_owner(sbom: SBOM) -> str:
    return f"{_owner(sbom.namespace, sbom.name, uid_of(sbom))}/documents"


def report_owner(sbom: SBOM) -> str:
    return former_report_owner(sbom.namespace, sbom.name, uid_of(sbom))


def former_report_owner(namespace: str, name: str, uid: str) -> str:
    """Of an SBOM that may be gone."""
    return f"{_owner(namespace, name, uid)}/report"


def _owner(namespace: str, name: str, uid: str) -> str:
    return f"images/SBOM/{namespace}/{name}/{uid}"
