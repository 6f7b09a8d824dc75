"""Other versions of the API: each is a spoke of the kind that is kept, and a document goes through that one."""

from __future__ import annotations

from trimtab.hub.contract import ENVELOPE, Hub
from trimtab.hub.convert import as_class
from trimtab.hub.scheme import HubScheme, UnknownKind
from trimtab.model.document import to_document

_META = ("name", "namespace", "project", "description", "labels", "annotations", *ENVELOPE)


def to_hub(document: Hub, scheme: HubScheme) -> Hub:
    """A document of any known version as the version that is kept. Refused when it is of another shape."""
    version, name = str(document.get("apiVersion", "")), str(document.get("kind", ""))
    older = scheme.older(version, name)
    if older is None:
        scheme.find(version, name)
        return document
    spoke, registered = older
    typed = spoke.convertor.convert_to(as_class(document, spoke.type))
    return _named(to_document(typed), document, registered.kind.api_version, name)


def from_hub(document: Hub, api_version: str, scheme: HubScheme) -> Hub:
    """A document of the version that is kept as another one."""
    name = str(document.get("kind", ""))
    if api_version == document.get("apiVersion"):
        return document
    older = scheme.older(api_version, name)
    if older is None or older[1].kind.api_version != document.get("apiVersion"):
        raise UnknownKind(f"{name} of {document.get('apiVersion')} has no version {api_version}")
    spoke, registered = older
    cls = registered.config.cls
    hub = document if cls is None else as_class(document, cls)
    return _named(to_document(spoke.convertor.convert_from(hub)), document, api_version, name)


def _named(made: Hub, source: Hub, api_version: str, kind: str) -> Hub:
    """Metadata is the same in every version: a convertor need not look at it."""
    before = source.get("metadata") or {}
    metadata = {word: before[word] for word in _META if word in before} | (made.get("metadata") or {})
    rest = {word: value for word, value in made.items() if word not in ("apiVersion", "kind", "metadata")}
    if "spec" in source:
        rest.setdefault("spec", {})  # one that has nothing but defaults
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
