"""Alpine packages: `lib/apk/db/installed`, one stanza a package with a letter for each field."""

from __future__ import annotations

import re

from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

_FIELD = re.compile(r"^([PVALo]):(.*)$", re.MULTILINE)


def read(path: str, body: Body) -> tuple[Package, ...]:
    """The installed packages. `o:` names the origin, which is the source package."""
    text = body.decode("utf-8", "replace")
    packages = []
    for stanza in text.split("\n\n"):
        fields: dict[str, str] = {}
        for letter, value in _FIELD.findall(stanza):
            fields.setdefault(letter, value.strip())
        name, version = fields.get("P"), fields.get("V")
        if not name or not version:
            continue
        origin = fields.get("o", "")
        licence = fields.get("L", "")
        packages.append(
            Package(
                type="apk",
                name=name,
                version=version,
                arch=fields.get("A", ""),
                source="" if origin == name else origin,
                licenses=(licence,) if licence else (),
                path=path,
            )
        )
    if not packages and text.strip():
        raise Unreadable("it has no stanza of an apk database")
    return tuple(packages)
