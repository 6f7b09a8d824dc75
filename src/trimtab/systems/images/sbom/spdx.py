"""SPDX 2.3 in JSON. The document describes the image, and the image contains the packages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from trimtab.systems.images.sbom.contents import Contents, Element, full_name
from trimtab.systems.images.sbom.licenses import declared
from trimtab.systems.images.sbom.subject import TOOL, Subject, moment

MEDIA_TYPE = "application/spdx+json"

_DOCUMENT = "SPDXRef-DOCUMENT"
_IMAGE = "SPDXRef-Image"


def write(subject: Subject, contents: Contents, *, created: datetime, namespace: str, version: str = "") -> bytes:
    """The document. `namespace` is its own URI, which no other document has; `version` is that of the tool."""
    texts: dict[str, str] = {}
    packages = [_image(subject)]
    relationships = [_relationship(_DOCUMENT, "DESCRIBES", _IMAGE)]
    for element in contents.elements:
        described = _package(element, texts)
        packages.append(described)
        relationships.append(_relationship(_IMAGE, "CONTAINS", described["SPDXID"]))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": _DOCUMENT,
        "name": subject.name,
        "documentNamespace": namespace,
        "creationInfo": {
            "created": moment(created),
            "creators": [f"Tool: {TOOL}-{version}" if version else f"Tool: {TOOL}"],
        },
        "packages": packages,
        "relationships": relationships,
    }
    if texts:
        document["hasExtractedLicensingInfos"] = [
            {"licenseId": ref, "name": text, "extractedText": text} for ref, text in sorted(texts.items())
        ]
    return orjson.dumps(document)


def _image(subject: Subject) -> dict[str, Any]:
    algorithm, _, value = subject.digest.partition(":")
    image = _element(_IMAGE, subject.repository, subject.tag or subject.digest, subject.purl, "NOASSERTION")
    image["primaryPackagePurpose"] = "CONTAINER"
    image["checksums"] = [{"algorithm": algorithm.upper(), "checksumValue": value}]
    return image


def _package(element: Element, texts: dict[str, str]) -> dict[str, Any]:
    package = element.package
    licence, references = declared(package.licenses)
    texts.update(references)
    identifier = f"SPDXRef-{element.reference}"
    described = _element(identifier, full_name(package), package.version, element.purl, licence)
    described["sourceInfo"] = f"named by /{package.path} in layer {package.layer or 'unknown'}"
    return described


def _element(identifier: str, name: str, version: str, purl: str, licence: str) -> dict[str, Any]:
    element = {
        "SPDXID": identifier,
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl},
        ],
    }
    if version:
        element["versionInfo"] = version
    return element


def _relationship(element: str, kind: str, related: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}
