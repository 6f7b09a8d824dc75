"""Package URLs, written by the rules of the purl specification for the types that are found in images.

An SBOM has thousands of them, and names come from files that anyone may have written: this writes any name in a few
microseconds and never fails. The tests hold it to packageurl-python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

_PLAIN = re.compile(r"[A-Za-z0-9._~:-]*")
_LOWER_NAMES = ("pypi", "npm", "apk", "oci")
_LOWER_NAMESPACES = ("apk",)


def purl(kind: str, namespace: str, name: str, version: str, qualifiers: Mapping[str, str]) -> str:
    """The package URL. Qualifiers without a value are left out."""
    if kind in _LOWER_NAMES:
        name = name.lower()
    if kind == "pypi":
        name = re.sub(r"[-_.]+", "-", name)  # as the simple index normalises it
    if kind in _LOWER_NAMESPACES:
        namespace = namespace.lower()
    parts = ["pkg:", kind, "/"]
    for segment in namespace.split("/"):
        if segment.strip():
            parts += (_quoted(segment.strip()), "/")
    parts.append(_quoted(name.strip().strip("/")) or "unnamed")
    if version.strip():
        parts += ("@", _quoted(version.strip()))
    mark = "?"
    for key, value in sorted(qualifiers.items()):
        if value:
            parts += (mark, key, "=", _quoted(value))
            mark = "&"
    return "".join(parts)


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return quote(text.encode("utf-8", "replace"), safe="").replace("%3A", ":")
