"""Node packages: the `package.json` of a package that is installed in a `node_modules` folder.

Manifests deeper inside a package (fixtures of its tests, folders that only say `"type": "module"`) are no packages, nor
is the application's own.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

_INSTALLED = re.compile(r"(?:^|/)node_modules/(?:@[^/]+/)?[^/@.][^/]*/package\.json$")


def is_installed(path: str) -> bool:
    return _INSTALLED.search(path) is not None


def read(path: str, body: Body) -> tuple[Package, ...]:
    """One package, or none when the manifest has no name or version."""
    try:
        manifest = msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"it is no JSON: {error}") from error
    if not isinstance(manifest, dict):
        raise Unreadable("it is no object of JSON")
    name, version = manifest.get("name"), manifest.get("version")
    if not isinstance(name, str) or not isinstance(version, str) or not name or not version:
        return ()
    scope, slash, rest = name.partition("/")
    if slash and scope.startswith("@"):
        name = rest
    else:
        scope = ""
    if not name:
        return ()
    return (Package(type="npm", name=name, version=version, namespace=scope, licenses=_licenses(manifest), path=path),)


def _licenses(manifest: dict[str, Any]) -> tuple[str, ...]:
    """A string; or as older packages wrote it, an object with a type, or a list of them."""
    declared = manifest.get("license") or manifest.get("licenses") or ()
    found = []
    for each in declared if isinstance(declared, list) else [declared]:
        value = each.get("type") if isinstance(each, dict) else each
        if isinstance(value, str) and value:
            found.append(value)
    return tuple(found)
