"""Who holds the blobs of an SBOM and of its report, and what keeps an SBOM until they are let go.

The owners have the SBOM's uid, so that one that was made again under its old name holds its own.
"""

from __future__ import annotations

from trimtab.systems.images.kinds import SBOM

FINALIZER = "images.trimtab.dev/blobs"
"""On SBOMs: its controller unpins both owners, then takes it away."""


def documents_owner(sbom: SBOM) -> str:
    return f"{_owner(sbom)}/documents"


def report_owner(sbom: SBOM) -> str:
    return f"{_owner(sbom)}/report"


def _owner(sbom: SBOM) -> str:
    return f"images/SBOM/{sbom.namespace}/{sbom.name}/{sbom.metadata.uid}"
