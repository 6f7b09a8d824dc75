"""The image that a document describes, and what two writers of documents have in common.

Documents are deterministic: the same subject, inventory, moment and namespace give the same bytes, so that the same
SBOM is the same blob.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from trimtab.systems.images.packages.purl import purl

TOOL = "trimtab"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One image for one platform."""

    repository: str  # with the registry: registry.example/team/app
    digest: str  # of the platform's manifest
    tag: str = ""
    platform: str = ""  # linux/arm64/v8

    @property
    def name(self) -> str:
        return f"{self.repository}:{self.tag}" if self.tag else f"{self.repository}@{self.digest}"

    @property
    def purl(self) -> str:
        """As the type `oci` has it: the last part of the repository is the name, the digest is the version."""
        qualifiers = {"repository_url": self.repository}
        if self.tag:
            qualifiers["tag"] = self.tag
        architecture = self.platform.split("/")[1:2]
        if architecture:
            qualifiers["arch"] = architecture[0]
        name = self.repository.rpartition("/")[2]
        return purl("oci", "", name, self.digest, qualifiers)


def moment(created: datetime) -> str:
    """In UTC with seconds, as both formats want it."""
    return created.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"  # strftime cuts early years
