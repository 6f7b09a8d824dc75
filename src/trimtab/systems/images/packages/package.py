"""A package that was found in an image, and the distribution that the image is made of.

Every reader of this room returns these, and SBOMs and vulnerability reports are made from them. They are plain data:
layer results keep them in their cache, so a change of a field needs a new extractor version (`layers/cache.py`).
"""

from __future__ import annotations

import msgspec

from trimtab.systems.images.packages.purl import purl

Body = bytes | bytearray
"""A file's content. Large ones come as they were collected, without a copy."""

OS_TYPES = ("deb", "apk", "rpm")
"""Types whose namespace is the distribution; it is set when the layers of an image are merged."""


class Package(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One package. `version` holds the epoch where the ecosystem writes it so (`1:2.3-4`)."""

    type: str  # as in purls: deb, apk, rpm, pypi, npm, golang, maven, gem, cargo
    name: str
    version: str
    namespace: str = ""  # distro id of OS packages, npm scope with @, maven group
    arch: str = ""
    source: str = ""  # the source package, when it has another name or version
    source_version: str = ""
    licenses: tuple[str, ...] = ()  # as declared; not checked
    path: str = ""  # the file in the image that names it, without a leading slash
    layer: str = ""  # the diffID of the layer that brought it last

    @property
    def purl(self) -> str:
        """The package URL, without the release of the distribution; see `purl_of`."""
        return purl_of(self, Distro())


class Distro(msgspec.Struct, frozen=True, omit_defaults=True):
    """What os-release says."""

    id: str = ""
    version: str = ""
    name: str = ""


def purl_of(package: Package, distro: Distro) -> str:
    """The package URL with what only the image knows: `distro=debian-12`."""
    namespace, name = package.namespace, package.name
    if package.type == "golang" and not namespace:
        namespace, _, name = name.rpartition("/")
    qualifiers: dict[str, str] = {}
    version = package.version
    if package.type in OS_TYPES:
        if package.arch:
            qualifiers["arch"] = package.arch
        if distro.id:
            qualifiers["distro"] = f"{distro.id}-{distro.version}" if distro.version else distro.id
        if package.source:
            qualifiers["upstream"] = _upstream(package)
    if package.type == "rpm":
        epoch, mark, rest = version.partition(":")
        if mark and epoch.isdigit():
            version = rest
            qualifiers["epoch"] = epoch
    return purl(package.type, namespace, name, version, qualifiers)


def _upstream(package: Package) -> str:
    """The source as other tools of the field write and read it: a file name for rpm, else `name@version`."""
    if package.type == "rpm":
        return f"{package.source}-{package.source_version}.src.rpm"
    return f"{package.source}@{package.source_version}" if package.source_version else package.source
