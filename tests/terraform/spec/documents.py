"""Documents that tests read: a small one with every form in it, and a large one from a provider in the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.needs import needs

FLEET = Path(__file__).with_name("fleet.json")
MKS = Path(__file__).parents[4] / "shared" / "data" / "terraform" / "mks-provider-spec.json"


def fleet() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(FLEET.read_bytes())
    return document


def mks() -> dict[str, Any]:
    needs(MKS)
    document: dict[str, Any] = json.loads(MKS.read_bytes())
    return document
