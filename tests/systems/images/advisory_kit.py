"""What tests of scans need: databases of a few advisories, VEX documents, and the namespace that names the database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Untyped
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.images.databases import NAME
from trimtab.systems.images.vulnerabilities.importing import import_osv


async def home(client: ApiClient) -> None:
    """The system's own namespace, without a database."""
    try:
        await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
    try:
        await client.delete(Ref(ConfigMap, NAME, NAMESPACE))
    except StatusError as error:
        if error.code != 404:
            raise


def advisory(name: str, ecosystem: str, package: str, fixed: str, **more: Any) -> dict[str, Any]:
    affected = {
        "package": {"ecosystem": ecosystem, "name": package},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": fixed}]}],
    }
    return {"id": name, "modified": "2026-01-01T00:00:00Z", "affected": [affected]} | more


BASH = advisory("CVE-2026-1", "Debian:12", "bash", "5.2.15-3", database_specific={"severity": "HIGH"})
LEFT_PAD = advisory("CVE-2026-2", "npm", "left-pad", "1.3.1", database_specific={"severity": "CRITICAL"})
OTHER = advisory("CVE-2026-3", "npm", "right-pad", "9.0.0")


def database(folder: Path, *advisories: dict[str, Any]) -> Path:
    source = folder / f"osv-{len(list(folder.iterdir()))}"
    source.mkdir()
    for each in advisories:
        (source / f"{each['id']}.json").write_text(json.dumps(each))
    target = source.with_suffix(".db")
    import_osv(source, target)
    return target


def openvex(vulnerability: str, product: str, status: str = "not_affected", name: str = "urn:vex:1") -> str:
    statement = {
        "vulnerability": {"name": vulnerability},
        "products": [{"@id": product}],
        "status": status,
        "justification": "component_not_present",
    }
    return json.dumps(
        {
            "@context": "https://openvex.dev/ns/v0.2.0",
            "@id": name,
            "author": "a vendor",
            "timestamp": "2026-01-01T00:00:00Z",
            "version": 1,
            "statements": [statement],
        }
    )
