"""What an image holds in the end: the results of its layers, the lowest first, merged as a runtime would stack them.

A file of a later layer takes the place of the one below, a whiteout removes it, an opaque folder removes all that was
below in it. So a package database of a later layer replaces the earlier one; each package names the layer whose change
brought it last.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from trimtab.systems.images.layers.result import Finding, LayerResult, path_key
from trimtab.systems.images.packages.package import OS_TYPES, Distro, Package

_MAX_LINKS = 4
_OS_RELEASES = ("etc/os-release", "usr/lib/os-release", "usr/share/os-release")


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The packages of an image, sorted."""

    distro: Distro = Distro()
    packages: tuple[Package, ...] = ()
    warnings: tuple[str, ...] = ()


def merge(layers: Sequence[LayerResult]) -> Inventory:
    """The layers' inventory. Pure."""
    found: dict[str, tuple[Package, ...]] = {}
    distros: dict[str, Distro] = {}
    links: dict[str, str] = {}
    licenses: dict[str, tuple[str, ...]] = {}
    warnings: list[str] = []
    keys: dict[str, int] = {}
    for layer in layers:
        cover = _Cover(layer, keys)
        replaced = {finding.path: found.get(finding.path, ()) for finding in layer.findings}
        for kept in (found, distros, links):
            for path in [path for path in kept if cover.hides(path)]:
                del kept[path]
        for finding in layer.findings:
            found[finding.path] = _brought(finding, replaced[finding.path], layer.diff_id)
        distros.update(layer.distros)
        links.update(layer.links)
        licenses.update(layer.licenses)  # true of a package even where an image has dropped the documentation
        warnings += layer.warnings
    distro = _distro(distros, links)
    packages = sorted(
        (_completed(package, distro, licenses) for packages in found.values() for package in packages),
        key=lambda each: (each.type, each.namespace, each.name, each.version, each.arch, each.path),
    )
    return Inventory(distro=distro, packages=tuple(packages), warnings=tuple(dict.fromkeys(warnings)))


class _Cover:
    """What of the layers below cannot be seen through a layer. What it says of folders is remembered."""

    def __init__(self, layer: LayerResult, keys: dict[str, int]) -> None:
        self._paths = array("Q", layer.paths)
        self._removed = frozenset(layer.removed)
        self._opaque = frozenset(layer.opaque)
        self._folders = {"": "" in self._opaque}
        self._keys = keys

    def hides(self, path: str) -> bool:
        """Whether the path, or a folder on the way to it, was replaced or removed."""
        return self._is_gone(path) or self._hides_content(path.rpartition("/")[0])

    def _hides_content(self, folder: str) -> bool:
        hidden = self._folders.get(folder)
        if hidden is None:
            hidden = folder in self._opaque or self.hides(folder)
            self._folders[folder] = hidden
        return hidden

    def _is_gone(self, path: str) -> bool:
        if path in self._removed:
            return True
        key = self._keys.get(path)
        if key is None:
            key = self._keys[path] = path_key(path)
        at = bisect_left(self._paths, key)
        return at < len(self._paths) and self._paths[at] == key


def _brought(finding: Finding, below: tuple[Package, ...], diff_id: str) -> tuple[Package, ...]:
    """A package that the replaced file named too keeps the layer that it came with."""
    before = {_identity(package): package.layer for package in below}
    return tuple(
        msgspec.structs.replace(package, layer=before.get(_identity(package), diff_id)) for package in finding.packages
    )


def _identity(package: Package) -> tuple[str, str, str, str, str]:
    return package.type, package.namespace, package.name, package.version, package.arch


def _distro(distros: dict[str, Distro], links: dict[str, str]) -> Distro:
    for path in _OS_RELEASES:
        for _ in range(_MAX_LINKS):
            if path not in links:
                break
            path = links[path]
        if path in distros:
            return distros[path]
    return Distro()


def _completed(package: Package, distro: Distro, licenses: dict[str, tuple[str, ...]]) -> Package:
    """A package of the distribution with what other files of the image say of it."""
    if package.type not in OS_TYPES:
        return package
    declared = licenses.get(package.name, ()) if package.type == "deb" else package.licenses
    return msgspec.structs.replace(package, namespace=distro.id, licenses=declared)
