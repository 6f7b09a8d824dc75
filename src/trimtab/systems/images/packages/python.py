"""Python distributions: `METADATA` in a dist-info folder, `PKG-INFO` in an egg-info folder, or an `.egg-info` file."""

from __future__ import annotations

from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

_CLASSIFIER = "License :: "


def is_metadata(path: str) -> bool:
    folder = path.rpartition("/")[0].lower()
    name = path.rpartition("/")[2]
    return folder.endswith("dist-info") if name == "METADATA" else folder.endswith("egg-info")


def read(path: str, body: Body) -> tuple[Package, ...]:
    """One package. The header is read only: the long description after the empty line is not."""
    header = body.replace(b"\r\n", b"\n").partition(b"\n\n")[0].decode("utf-8", "replace")
    fields: dict[str, str] = {}
    classified = []
    for line in header.split("\n"):
        key, colon, value = line.partition(":")
        if not colon or line[:1] in (" ", "\t"):
            continue
        key, value = key.lower(), value.strip()
        if key == "classifier" and value.startswith(_CLASSIFIER):
            classified.append(value.rpartition(" :: ")[2])
        else:
            fields.setdefault(key, value)
    name, version = fields.get("name"), fields.get("version")
    if not name or not version:
        raise Unreadable("it is no metadata of a Python distribution: Name or Version is missing")
    return (Package(type="pypi", name=name, version=version, licenses=_licenses(fields, classified), path=path),)


def _licenses(fields: dict[str, str], classified: list[str]) -> tuple[str, ...]:
    """An SPDX expression, else the free text when it is a name and not a whole licence, else the classifiers."""
    expression = fields.get("license-expression")
    if expression:
        return (expression,)
    text = fields.get("license", "")
    if text and text != "UNKNOWN" and len(text) <= 100:
        return (text,)
    return tuple(dict.fromkeys(classified))
