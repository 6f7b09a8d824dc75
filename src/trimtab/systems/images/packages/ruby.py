"""Ruby gems: the `.gemspec` files in `specifications` folders, which RubyGems writes itself in one fixed style."""

from __future__ import annotations

import re

from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

_STRING = r"[ \t]*=[ \t]*(?:Gem::Version\.new[ \t]*\(?[ \t]*)?['\"]([^'\"\n]+)['\"]"
_NAME = re.compile(r"^[ \t]*\w+\.name" + _STRING, re.MULTILINE)
_VERSION = re.compile(r"^[ \t]*\w+\.version" + _STRING, re.MULTILINE)
_PLATFORM = re.compile(r"^[ \t]*\w+\.platform" + _STRING, re.MULTILINE)
_LICENSES = re.compile(r"^[ \t]*\w+\.licenses?[ \t]*=(.*)$", re.MULTILINE)
_QUOTED = re.compile(r"['\"]([^'\"\n]+)['\"]")


def read(path: str, body: Body) -> tuple[Package, ...]:
    """One gem."""
    text = body.decode("utf-8", "replace")
    name, version = _NAME.search(text), _VERSION.search(text)
    if name is None or version is None:
        raise Unreadable("it is no gemspec in the style of RubyGems: name or version is missing")
    platform, licenses = _PLATFORM.search(text), _LICENSES.search(text)
    return (
        Package(
            type="gem",
            name=name[1],
            version=version[1],
            arch=platform[1] if platform else "",
            licenses=tuple(_QUOTED.findall(licenses[1])) if licenses else (),
            path=path,
        ),
    )
