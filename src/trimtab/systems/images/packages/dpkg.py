"""Debian packages: `var/lib/dpkg/status`, and one file a package in `status.d` as images without dpkg have them."""

from __future__ import annotations

import re

from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

STATUS_FOLDER = "var/lib/dpkg/status.d/"

_FIELD = re.compile(r"^(Package|Status|Version|Architecture|Source):(.*)$", re.MULTILINE)
_SOURCE = re.compile(r"(\S+)(?:\s+\(([^)]+)\))?")


def read(path: str, body: Body) -> tuple[Package, ...]:
    """The installed packages. Those that were removed and left their settings are passed over."""
    if path.startswith(STATUS_FOLDER) and path.endswith((".md5sums", ".preinst", ".list")):
        return ()
    text = body.decode("utf-8", "replace")
    packages = []
    stanzas = 0
    for stanza in text.split("\n\n"):
        fields = {key: value.strip() for key, value in _FIELD.findall(stanza)}
        if not fields:
            continue
        stanzas += 1
        if not _installed(fields.get("Status")) or not fields.get("Package") or not fields.get("Version"):
            continue
        packages.append(_package(fields, path))
    if not stanzas and text.strip():
        raise Unreadable("it has no stanza of a dpkg status file")
    return tuple(packages)


def _installed(status: str | None) -> bool:
    """`want flag status`; a file of `status.d` has none, as the package is there because the file is."""
    return status is None or status.split()[-1:] not in (["config-files"], ["not-installed"])


def _package(fields: dict[str, str], path: str) -> Package:
    source = source_version = ""
    match = _SOURCE.match(fields.get("Source", ""))
    if match:
        source, source_version = match[1], match[2] or ""
    return Package(
        type="deb",
        name=fields["Package"],
        version=fields["Version"],
        arch=fields.get("Architecture", ""),
        source=source,
        source_version=source_version,
        path=path,
    )
