"""Which form of the answer the client wants: the object, a Table, its metadata only; in JSON or YAML.

The first entry of `Accept` that can be served wins (apiserver/pkg/endpoints/handlers/negotiation).
"""

from __future__ import annotations

import enum
from functools import lru_cache

import msgspec

from trimtab.model.errors import not_acceptable

ANSWERED = ("application/json", "application/yaml")


class As(enum.Enum):
    """The transformations of `Accept: …;as=`."""

    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


class Form(msgspec.Struct, frozen=True):
    """How to answer."""

    as_: As = As.OBJECT
    yaml: bool = False
    pretty: bool = False
    version: str = "v1"  # of meta.k8s.io, for Table and PartialObjectMetadata
    list_: bool = False  # PartialObjectMetadataList was asked for
    discovery: str = ""  # "v2" or "v2beta1": the aggregated discovery document was asked for

    @property
    def plain(self) -> bool:
        """The objects as JSON, as they are stored."""
        return self.as_ is As.OBJECT and not self.yaml and not self.pretty


def form(accept: str, user_agent: str, pretty: str | None) -> Form:
    """Raises 406 when nothing that is asked for can be served."""
    chosen = _parse(accept or "application/json")
    if chosen is None:
        raise not_acceptable(ANSWERED)
    if pretty is not None:
        wanted = pretty.lower() not in ("false", "0")
    else:
        wanted = user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))
    return msgspec.structs.replace(chosen, pretty=True) if wanted else chosen


@lru_cache(maxsize=512)
def _parse(accept: str) -> Form | None:
    if len(accept) > 4096:
        return None
    entries = []
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        entries.append((media.lower(), dict(p.split("=", 1) for p in parameters if "=" in p)))
    for media, values in sorted(entries, key=_quality, reverse=True):
        found = _entry(media, values)
        if found is not None:
            return found
    return None


def _quality(entry: tuple[str, dict[str, str]]) -> float:
    try:
        return float(entry[1].get("q", "1"))
    except ValueError:
        return 1.0


def _entry(media: str, values: dict[str, str]) -> Form | None:
    if media in ("*/*", "application/*"):
        return Form()
    if media not in ANSWERED:
        return None
    yaml = media == "application/yaml"
    wanted = values.get("as", "")
    group, version = values.get("g", ""), values.get("v", "")
    if not wanted:
        return Form(yaml=yaml)
    if group == "apidiscovery.k8s.io":
        good = wanted == "APIGroupDiscoveryList" and version in ("v2", "v2beta1")
        return Form(yaml=yaml, discovery=version) if good else None
    if group != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    if wanted == "Table":
        return Form(As.TABLE, yaml, version=version)
    if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        return Form(As.METADATA, yaml, version=version, list_=wanted.endswith("List"))
    return None
