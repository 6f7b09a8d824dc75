"""Java archives: the Maven coordinates in `pom.properties`, else what the manifest and the file's name say; nested
archives too.

An archive that was put together from others (a shaded jar) has the properties of each of them, and each is a package.
"""

from __future__ import annotations

import re

from trimtab.systems.images.packages import zipped
from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

SUFFIXES = (".jar", ".war", ".ear", ".par", ".sar", ".nar", ".jpi", ".hpi")

_MAX_TEXT = 1 << 20
_MAX_NESTED = 24 << 20
_MAX_TOTAL = 256 << 20
_MAX_DEPTH = 4
_MAX_NAME = 200
_GROUP_WORDS = (
    "Implementation-Vendor-Id",
    "Bundle-SymbolicName",
    "Extension-Name",
    "Specification-Vendor",
    "Implementation-Vendor",
    "Implementation-Title",
    "Main-Class",
)
_NAME = re.compile(r"^(.+?)[-_.]v?(\d[\w.+-]*)$")


def read(path: str, body: Body) -> tuple[Package, ...]:
    """The packages of an archive and of those inside it. Unreadable."""
    reading = _Reading(path)
    reading.archive(path.rpartition("/")[2], body, 0)
    packages = tuple(reading.found.values())
    if reading.problems:
        raise Unreadable("; ".join(reading.problems[:3]), packages)
    return packages


class _Reading:
    """One archive with all that are inside it. What is wrong with an inner one does not lose the others."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._bytes = _MAX_TOTAL  # that may still be read
        self._members = zipped.MAX_MEMBERS
        self.found: dict[tuple[str, str, str], Package] = {}
        self.problems: list[str] = []

    def archive(self, name: str, body: Body, depth: int) -> None:
        try:
            nested = self._packages(name, body)
        except Unreadable as error:
            self.problems.append(f"{name[:100]}: {error}" if depth else str(error))
            return
        for member in nested if depth < _MAX_DEPTH else ():
            try:
                inside = self._content(body, member, _MAX_NESTED)
            except Unreadable as error:
                self.problems.append(str(error))
            else:
                self.archive(member.name.rpartition("/")[2], inside, depth + 1)

    def _content(self, body: Body, member: zipped.Member, most: int) -> bytes:
        self._bytes -= member.size
        if self._bytes < 0:
            raise Unreadable(f"what is inside it has more than {_MAX_TOTAL} bytes")
        return zipped.read(body, member, most)

    def _packages(self, name: str, body: Body) -> list[zipped.Member]:
        """Finds the archive's own packages; returns the archives inside it."""
        manifest: dict[str, str] = {}
        coordinates = []
        nested = []
        for member in zipped.members(body):
            self._members -= 1
            if self._members < 0:
                raise Unreadable(f"it has more than {zipped.MAX_MEMBERS} members")
            if member.name.endswith("/pom.properties") and member.name.startswith("META-INF/maven/"):
                coordinates.append(_properties(self._content(body, member, _MAX_TEXT)))
            elif member.name == "META-INF/MANIFEST.MF":
                manifest = _manifest(self._content(body, member, _MAX_TEXT))
            elif member.name.endswith(SUFFIXES) and member.size:
                nested.append(member)
        packages = [
            _package(self._path, each["groupId"], each["artifactId"], each.get("version") or manifest_version(manifest))
            for each in coordinates
            if each.get("artifactId") and each.get("groupId")
        ]
        for package in packages or _by_manifest(self._path, name, manifest):
            self.found.setdefault((package.namespace, package.name, package.version), package)
        return nested


def _package(path: str, group: str, name: str, version: str) -> Package:
    return Package(type="maven", name=name, version=version, namespace=group, path=path)


def _by_manifest(path: str, file: str, manifest: dict[str, str]) -> list[Package]:
    """The file's name is the name, and mostly tells the version; any word of the manifest with dots tells the group."""
    stem = file.rpartition(".")[0]
    match = _NAME.match(stem) if len(stem) <= _MAX_NAME else None
    name, version = (match[1], match[2]) if match else (stem, "")
    words = (manifest.get(key, "").partition(";")[0].strip() for key in _GROUP_WORDS)
    group = next((word for word in words if "." in word and " " not in word), "")
    return [_package(path, group, name, version or manifest_version(manifest))] if name and manifest else []


def manifest_version(manifest: dict[str, str]) -> str:
    """The version that a manifest claims, by the most exact of its words."""
    for key in ("Implementation-Version", "Bundle-Version", "Specification-Version"):
        if manifest.get(key):
            return manifest[key]
    return ""


def _properties(content: bytes) -> dict[str, str]:
    fields = {}
    for line in content.decode("utf-8", "replace").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "!")):
            fields[key.strip()] = value.strip()
    return fields


def _manifest(content: bytes) -> dict[str, str]:
    """The main section; a line that begins with a space goes on from the one before."""
    text = content.decode("utf-8", "replace").replace("\r\n", "\n").partition("\n\n")[0].replace("\n ", "")
    fields = {}
    for line in text.split("\n"):
        key, colon, value = line.partition(":")
        if colon:
            fields[key.strip()] = value.strip()
    return fields
