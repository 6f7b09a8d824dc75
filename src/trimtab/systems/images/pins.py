"""Who holds which blobs: documents and reports of SBOMs, catalogues of registries and of their runs.

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


def run_owner(namespace: str, registry: str, registry_uid: str, run: str) -> str:
    """Of a catalogue while its run goes on: known without the job, which may be gone."""
    return f"images/Registry/{namespace}/{registry}/{registry_uid}/runs/{run}"


def catalog_owner(namespace: str, registry: str, registry_uid: str) -> str:
    """Of the catalogues that a Registry's status names."""
    return f"images/Registry/{namespace}/{registry}/{registry_uid}/catalog"


def _owner(namespace: str, name: str, uid: str) -> str:
    return f"images/SBOM/{namespace}/{name}/{uid}"
