"""What users and controllers write, as documents: each valid as it is, with what a test changes merged into its spec."""

from __future__ import annotations

from typing import Any

from trimtab.model.scheme import Untyped
from trimtab.systems.images.kinds import SBOM, DiscoveryJob, Image, Registry, VEXSource, VulnerabilityReport

KINDS = (Registry, DiscoveryJob, Image, SBOM, VulnerabilityReport, VEXSource)

VERSION = "images.trimtab.dev/v1alpha1"
DIGEST = f"sha256:{'a' * 64}"
IMAGE = {
    "registry": "lab",
    "registryURI": "registry.example.com",
    "repository": "team/app",
    "tag": "1.0",
    "digest": DIGEST,
    "platform": "linux/amd64",
}
VEX = '{"@context": "https://openvex.dev/ns/v0.2.0", "@id": "a", "author": "b", "version": 1, "statements": []}'

SPECS: dict[str, dict[str, Any]] = {
    "Registry": {"uri": "https://registry.example.com"},
    "DiscoveryJob": {"registry": "lab"},
    "Image": IMAGE,
    "SBOM": {**IMAGE, "documents": {"spdx": DIGEST, "cyclonedx": DIGEST, "inventory": DIGEST}},
    "VulnerabilityReport": {
        **IMAGE,
        "document": DIGEST,
        "summary": {"critical": 1},
        "database": DIGEST,
        "scannedAt": "2026-01-01T00:00:00Z",
    },
    "VEXSource": {"inline": VEX},
}


def made(kind: str, name: str, namespace: str, /, **spec: Any) -> Untyped:
    """None takes a field away."""
    fields = {key: value for key, value in {**SPECS[kind], **spec}.items() if value is not None}
    metadata = {"name": name, "namespace": namespace}
    return Untyped({"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": fields})
