"""The vendor profiles of the example, for tests of whole rules."""

from __future__ import annotations

from pathlib import Path

from tests.systems.discovery.station import Station
from trimtab.model import yaml
from trimtab.model.scheme import Untyped

FOLDER = Path(__file__).parents[3] / "examples" / "discovery" / "vendors"


async def add_vendors(station: Station) -> None:
    """All of them, in the station's namespace."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for document in yaml.load_all(path.read_text()):
            document["metadata"]["namespace"] = station.namespace
            await station.client.create(Untyped(document))
