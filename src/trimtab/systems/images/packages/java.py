"""Java archives: the Maven coordinates in `pom.properties`, else what the manifest and the file's name say; nested archives too.

An archive that was put together from others (a shaded jar) has the properties of each of them, and each is a package.
"""

from __future__ import annotations

import re

from trimtab.systems.images.packages import zipped
from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

SUFFIXES = (".jar", ".war", ".ear", ".par", ".sar", ".nar", ".jpi", ".hpi")

_MAX_TEXT = 1 << 20
_MAX_NESTED = 32 << 20
_MAX_NESTED_TOTAL = 256 << 20
_MAX_DEPTH = 4
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
    found: dict[tuple[str, str, str], Package] = {}
    _archive(path, path.rpartition("/")[2], body, _Budget(), 0, found)
    return tuple(found.values())


class _Budget:
    """Bytes that all nested archives together may have."""

    left = _MAX_NESTED_TOTAL


def _archive(
    path: str, name: str, body: Body, budget: _Budget, depth: int, found: dict[tuple[str, str, str], Package]
) -> None:
    manifest: dict[str, str] = {}
    coordinates = []
    nested = []
    for member in zipped.members(body):
        if member.name.endswith("/pom.properties") and member.name.startswith("META-INF/maven/"):
            coordinates.append(_properties(zipped.read(body, member, _MAX_TEXT)))
        elif member.name == "META-INF/MANIFEST.MF":
            manifest = _manifest(zipped.read(body, member, _MAX_TEXT))
        elif member.name.endswith(SUFFIXES) and depth < _MAX_DEPTH and member.size:
            nested.append(member)
    packages = [
        _package(path, each["groupId"], each["artifactId"], each.get("version") or manifest_version(manifest))
        for each in coordinates
        if each.get("artifactId") and each.get("groupId")
    ]
    if not packages:
        packages = _by_manifest(path, name, manifest)
    for package in packages:
        found.setdefault((package.namespace, package.name, package.version), package)
    for member in nested:
        budget.left -= member.size
        if budget.left < 0:
            raise Unreadable(f"the archives inside it have more than {_MAX_NESTED_TOTAL} bytes")
        inside = zipped.read(body, member, _MAX_NESTED)
        _archive(path, member.name.rpartition("/")[2], inside, budget, depth + 1, found)


def _package(path: str, group: str, name: str, version: str) -> Package:
    return Package(type="maven", name=name, version=version, namespace=group, path=path)


def _by_manifest(path: str, file: str, manifest: dict[str, str]) -> list[Package]:
    """The file's name is the name, and mostly tells the version; any word of the manifest with dots tells the group."""
    stem = file.rpartition(".")[0]
    match = _NAME.match(stem)
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
