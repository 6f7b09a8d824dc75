"""The RestService of generated kinds, and the ConfigMap with its document: the part of it that the kinds need, packed."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from trimtab.cli.codes import USAGE, Problem
from trimtab.cli.rest_sources import Planned, Source, Sources
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.rest.compiling.calls import found
from trimtab.systems.rest.generating.crd import labels
from trimtab.systems.rest.kinds import RestService, RestServiceSpec
from trimtab.systems.rest.kinds.definition import RestDefinition
from trimtab.systems.rest.kinds.service import ConfigMapDocument
from trimtab.systems.rest.kinds.service import Document as Where
from trimtab.systems.rest.openapi import Document
from trimtab.systems.rest.openapi.bundling import bundle
from trimtab.systems.rest.openapi.references import escaped

LARGEST = 1_000_000
"""Bytes in a ConfigMap."""
ENTRY = "openapi.json.gz"
AZURE = "https://management.azure.com"
NOWHERE = "https://example.invalid"

Manifest = dict[str, Any]


def service_for(name: str, endpoint: str, sources: Sources) -> RestService:
    """One for these documents. Without an endpoint it is the one that they name, if they do."""
    where = Where(url=sources.url) if sources.url else Where(config_map=_place(name))
    spec = RestServiceSpec(endpoint=endpoint or _endpoint(sources.found[0].document), document=where)
    return RestService(metadata=ObjectMeta(name=name), spec=spec)


def service_documents(service: RestService, planned: Sequence[Planned]) -> list[Manifest]:
    """The service, and before it the ConfigMap that it takes its document from, if it does."""
    if service.spec.endpoint == NOWHERE:
        raise Problem("the document does not say where the service is: give --endpoint URL", USAGE)
    place = service.spec.document.config_map
    if not place:
        return [Scheme().document(service)]
    files = _files(planned, place.key)
    size = sum(len(content) for content in files.values())
    if size > LARGEST:
        raise Problem(
            f"the documents of {service.name} take {size} bytes packed, and {LARGEST} fit into a ConfigMap: choose kinds with"
            " --only, or make several services of them, or serve the documents and generate from their URL"
        )
    kept = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": place.name, "namespace": place.namespace, "labels": labels(service.name)},
        "binaryData": {name: base64.b64encode(content).decode() for name, content in files.items()},
    }
    return [kept, Scheme().document(service)]


def _place(service: str) -> ConfigMapDocument:
    return ConfigMapDocument(name=f"rest-{service}-openapi", namespace=NAMESPACE, key=ENTRY)


def _endpoint(document: Document) -> str:
    root = document.root
    if isinstance(host := root.get("host"), str) and host:
        schemes = root.get("schemes")
        scheme = "http" if isinstance(schemes, list) and schemes and "https" not in schemes else "https"
        return f"{scheme}://{host}"
    servers = root.get("servers")
    for server in servers if isinstance(servers, list) else ():
        parts = urlsplit(str(server.get("url", "")) if isinstance(server, dict) else "")
        if parts.scheme in ("http", "https") and parts.netloc and "{" not in parts.netloc:
            return f"{parts.scheme}://{parts.netloc}"
    return AZURE if document.is_arm else NOWHERE


def _files(planned: Sequence[Planned], entry: str) -> dict[str, bytes]:
    """The document, by the keys of the ConfigMap. Of several, the first is only a table of where each path is."""
    by_source: dict[str, tuple[Source, set[tuple[str, str]]]] = {}
    for each in planned:
        _, operations = by_source.setdefault(each.source.label, (each.source, set()))
        operations |= _operations(each.definition, each.source.document)
    parts = [bundle(source.document, operations) for source, operations in by_source.values()]
    if len(parts) == 1:
        return {entry: _packed(parts[0])}
    names = [f"part-{number}.json.gz" for number in range(1, len(parts) + 1)]
    table = _table([orjson.loads(part) for part in parts], names)
    return {entry: _packed(orjson.dumps(table)), **dict(zip(names, map(_packed, parts), strict=True))}


def _table(trees: Sequence[Manifest], names: Sequence[str]) -> Manifest:
    first = {key: value for key, value in trees[0].items() if key not in _CONTENTS}
    for tree, name in zip(trees, names, strict=True):
        if {key: tree.get(key) for key in _SAME} != {key: first.get(key) for key in _SAME}:
            raise Problem(
                f"{name} is of another server or another version of OpenAPI than the others: generate it alone"
            )
        for section in ("paths", "x-ms-paths"):
            for path in tree.get(section, ()):
                first.setdefault(section, {})[path] = {"$ref": f"{name}#/{section}/{escaped(path)}"}
    first.setdefault("paths", {})
    return first


def _operations(definition: RestDefinition, document: Document) -> set[tuple[str, str]]:
    """Those that the definition names, as the document has them."""
    spec = definition.spec
    given = [spec.operations.create, spec.operations.read, spec.operations.update, spec.operations.patch]
    given += [spec.operations.delete, spec.operations.list, *(export.operation for export in spec.exports)]
    meant = [found(document, each, "", []) for each in given if each]
    wanted = {each.operation.key for each in meant if each is not None}
    return {key for key, operation in document.operations.items() if operation.key in wanted}


def _packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


_CONTENTS = ("paths", "x-ms-paths", "definitions", "parameters", "responses", "components")
_SAME = ("swagger", "openapi", "host", "basePath", "servers")
