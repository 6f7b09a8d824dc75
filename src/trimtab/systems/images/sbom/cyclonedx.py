"""CycloneDX 1.6 in JSON. The image is the document's own component, and depends on every package in it."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import orjson

from trimtab.systems.images.packages.package import OS_TYPES, Distro
from trimtab.systems.images.sbom.contents import Contents, Element, full_name
from trimtab.systems.images.sbom.licenses import is_expression, is_id
from trimtab.systems.images.sbom.subject import TOOL, Subject, moment

MEDIA_TYPE = "application/vnd.cyclonedx+json"


def write(subject: Subject, contents: Contents, *, created: datetime, namespace: str, version: str = "") -> bytes:
    """The document. Its serial number is made from `namespace`, which no other document has."""
    tool = {"type": "application", "name": TOOL}
    if version:
        tool["version"] = version
    components = [_component(element) for element in contents.elements]
    if contents.distro.id:
        components.append(_system(contents.distro))
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, namespace)}",
        "version": 1,
        "metadata": {
            "timestamp": moment(created),
            "tools": {"components": [tool]},
            "component": {
                "type": "container",
                "bom-ref": "image",
                "name": subject.repository,
                "version": subject.tag or subject.digest,
                "purl": subject.purl,
            },
        },
        "components": components,
        "dependencies": [{"ref": "image", "dependsOn": [component["bom-ref"] for component in components]}],
    }
    return orjson.dumps(document)


def _component(element: Element) -> dict[str, Any]:
    package = element.package
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": element.reference,
        "name": full_name(package) if package.type in OS_TYPES else package.name,
        "version": package.version,
        "purl": element.purl,
        "properties": [{"name": "trimtab:path", "value": f"/{package.path}"}],
    }
    if package.namespace and package.type not in OS_TYPES:
        component["group"] = package.namespace
    if package.layer:
        component["properties"].append({"name": "trimtab:layer", "value": package.layer})
    licenses = _licenses(package.licenses)
    if licenses:
        component["licenses"] = licenses
    return component


def _licenses(declared: tuple[str, ...]) -> list[dict[str, Any]]:
    """One expression, or a list of identifiers and names: the format does not allow both."""
    texts = [text for text in dict.fromkeys(each.strip() for each in declared) if text]
    if len(texts) == 1 and is_expression(texts[0]) and not is_id(texts[0]):
        return [{"expression": texts[0], "acknowledgement": "declared"}]
    return [{"license": {"id" if is_id(text) else "name": text, "acknowledgement": "declared"}} for text in texts]


def _system(distro: Distro) -> dict[str, Any]:
    system = {"type": "operating-system", "bom-ref": f"os-{distro.id}", "name": distro.id}
    if distro.version:
        system["version"] = distro.version
    if distro.name:
        system["description"] = distro.name
    return system
