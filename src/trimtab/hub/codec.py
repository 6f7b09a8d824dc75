"""Documents of hub kinds as bytes, and back: one, a list, or a stream of them, in JSON, YAML or msgpack.

What is decoded is known, of the right shape, in the version that is kept, and completed with its defaults; what is encoded is
always the same for the same resource. A strict codec refuses fields that a kind does not have, and names them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from trimtab.hub.contract import Hub, HubList, Refused
from trimtab.hub.emitting import always, shown
from trimtab.hub.proxies.default import defaulted
from trimtab.hub.reading import Media, Unreadable, read
from trimtab.hub.scheme import HubScheme, Registered
from trimtab.hub.versions import from_hub, to_hub
from trimtab.model.hub import OWN_METADATA, lineage_key, own_metadata
from trimtab.model.schema.shape import copied
from trimtab.model.yaml import dump

MAX_DOCUMENTS = 100_000


class Codec:
    """For the kinds of a scheme. `lineage`: whether where a resource was synced from is written, too."""

    def __init__(self, scheme: HubScheme, *, strict: bool = False, lineage: bool = False) -> None:
        self._scheme = scheme
        self._strict = strict
        self._lineage = lineage

    def encode(self, hub: Hub, media: Media = Media.JSON, *, api_version: str = "") -> bytes:
        """One document, in the version that is kept or in another one of its API."""
        return _written(self._shown(hub, api_version), media)

    def encode_all(self, hubs: Iterable[Hub], media: Media = Media.YAML) -> bytes:
        """A stream."""
        documents = [self._shown(hub, "") for hub in hubs]
        if media is Media.YAML:
            return b"---\n".join(_written(document, media) for document in documents)
        if media is Media.JSON:
            return b"".join(_written(document, media) + b"\n" for document in documents)
        return msgspec.msgpack.encode(documents)

    def encode_list(self, page: HubList, registered: Registered, media: Media = Media.JSON) -> bytes:
        """A page of a list, as a document of the list kind."""
        metadata: dict[str, Any] = {"count": len(page.items)}
        if page.revision:
            metadata["resourceVersion"] = str(page.revision)
        if page.after is not None:
            metadata["continue"] = continue_token(page)
        kind = registered.kind
        document = {
            "apiVersion": kind.api_version,
            "kind": kind.list_kind,
            "metadata": metadata,
            "items": [self._shown(hub, "") for hub in page.items],
        }
        return _written(document, media)

    def decode(self, data: bytes, media: Media = Media.JSON) -> Hub:
        """The one document in `data`."""
        found = list(self.decode_all(data, media))
        if len(found) != 1:
            raise Unreadable(f"there must be one document, and there are {len(found)}")
        return found[0]

    def decode_all(self, data: bytes, media: Media = Media.YAML) -> Iterator[Hub]:
        """Every document in `data`, those in lists too. Refused, Unreadable or UnknownKind name the one that is wrong."""
        for number, document in enumerate(self._each(read(data, media, unique=self._strict)), 1):
            if number > MAX_DOCUMENTS:
                raise Unreadable(f"there are more than {MAX_DOCUMENTS} documents")
            yield self._decoded(document, number)

    def _each(self, documents: Iterable[Any]) -> Iterator[Hub]:
        for document in documents:
            if not isinstance(document, dict):
                raise Unreadable(
                    f"a document is an object with apiVersion and kind, and not a {type(document).__name__}"
                )
            version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
            if (version, kind) == ("v1", "List") or self._scheme.of_list(version, kind) is not None:
                items = document.get("items")
                if not isinstance(items, list | None):
                    raise Unreadable(f"the items of a {kind} are a list")
                of = self._scheme.of_list(version, kind)
                for item in items or ():
                    if isinstance(item, dict) and of is not None:
                        yield {"apiVersion": version, "kind": of.kind.kind, **item}
                    else:
                        yield item
            else:
                yield document

    def _decoded(self, document: Any, number: int) -> Hub:
        if not isinstance(document, dict):
            raise Unreadable(f"document {number} is no object")
        problems = self._unknown_metadata(document)
        hub = copied(to_hub(document, self._scheme))
        kind = self._scheme.find(hub["apiVersion"], hub["kind"])
        walk = kind.kind.schema.walk(hub)
        problems += [(error.path, error.body) for error in walk.errors]
        if self._strict:
            problems += [(path, f"a {kind.kind.kind} has no such field") for path in walk.unknown]
        if problems:
            raise Refused([(path, f"{why} (document {number})" if number > 1 else why) for path, why in problems])
        hub["metadata"] = own_metadata(hub["metadata"])
        if not kind.kind.namespaced:
            hub["metadata"].pop("project", None)
        return defaulted(hub, kind.kind, kind.config.defaulter)

    def _unknown_metadata(self, document: Hub) -> list[tuple[str, str]]:
        metadata = document.get("metadata")
        if not isinstance(metadata, dict):
            return [("metadata", "must be an object with a name")]
        problems = []
        for word in OWN_METADATA:
            value = metadata.get(word)
            if word in ("labels", "annotations"):
                if not isinstance(value, dict | None) or not all(
                    isinstance(each, str) for each in (value or {}).values()
                ):
                    problems.append((f"metadata.{word}", "must be an object of texts"))
            elif not isinstance(value, str | None):
                problems.append((f"metadata.{word}", "must be a text"))
        if not metadata.get("name"):
            problems.append(("metadata.name", "must be the name of the resource"))
        project, namespace = metadata.get("project"), metadata.get("namespace")
        if project and namespace and project != namespace:
            problems.append(
                ("metadata.project", f"is {project}, and metadata.namespace is {namespace}: they are one word")
            )
        if self._strict:
            unknown = sorted(metadata.keys() - {*OWN_METADATA, "namespace"})
            known = ", ".join(OWN_METADATA)
            problems += [(f"metadata.{word}", f"is none of {known}") for word in unknown]
        return problems

    def _shown(self, hub: Hub, api_version: str) -> Hub:
        found = self._scheme.find(str(hub.get("apiVersion", "")), str(hub.get("kind", "")))
        cls = found.config.cls
        hidden = () if self._lineage else (lineage_key(found.suffix),)
        document = shown(hub, found.kind, always(cls) if cls is not None else (), without=hidden)
        if api_version and api_version != found.kind.api_version:
            return from_hub(document, api_version, self._scheme)
        return document


def continue_token(page: HubList) -> str:
    """Where the next page goes on, opaque to who gets it."""
    return base64.urlsafe_b64encode(msgspec.json.encode([page.revision, page.after])).decode().rstrip("=")


def read_token(token: str) -> tuple[int, tuple[str, str]]:
    """The revision and the place that a token means. Unreadable when it is none of ours."""
    try:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return msgspec.json.decode(data, type=tuple[int, tuple[str, str]])
    except (ValueError, msgspec.DecodeError):
        raise Unreadable("the continue token is none that was given here") from None


def _written(document: Any, media: Media) -> bytes:
    if media is Media.JSON:
        return msgspec.json.encode(document)
    if media is Media.YAML:
        return dump(document, sort=False).encode()
    return msgspec.msgpack.encode(document)
