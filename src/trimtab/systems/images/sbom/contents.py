"""What an image holds, as both documents say it: each package with its package URL and its identifier, made once."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from trimtab.systems.images.layers.image import Inventory
from trimtab.systems.images.packages.package import Distro, Package, purl_of


class Element(NamedTuple):
    """A package in a document."""

    package: Package
    purl: str
    reference: str


class Contents(NamedTuple):
    """In the order of the inventory."""

    distro: Distro
    elements: tuple[Element, ...]


def contents_of(inventory: Inventory) -> Contents:
    return Contents(inventory.distro, tuple(_element(package, inventory.distro) for package in inventory.packages))


def full_name(package: Package) -> str:
    """The name that users of the ecosystem know: with the scope of npm, without Maven's group."""
    return f"{package.namespace}/{package.name}" if package.type == "npm" and package.namespace else package.name


def _element(package: Package, distro: Distro) -> Element:
    purl = purl_of(package, distro)
    return Element(package, purl, _reference(package, purl))


def _reference(package: Package, purl: str) -> str:
    """An identifier of letters, digits, dots and dashes; the same package at two places has two."""
    place = hashlib.sha256(f"{purl}\n{package.path}".encode("utf-8", "replace")).hexdigest()[:16]
    name = _NO_LETTERS.sub("-", package.name)[:80].strip("-") or "unnamed"
    return f"{package.type}-{name}-{place}"


_NO_LETTERS = re.compile(r"[^A-Za-z0-9.-]+")
