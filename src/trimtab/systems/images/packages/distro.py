"""The distribution: `etc/os-release`, which is usually a symlink to `usr/lib/os-release`."""

from __future__ import annotations

import shlex

from trimtab.systems.images.packages.package import Body, Distro
from trimtab.systems.images.packages.problems import Unreadable

_MAX_BYTES = 64 << 10


def read_os_release(body: Body) -> Distro:
    """What the file says, by os-release(5): assignments in the shell's quoting."""
    if len(body) > _MAX_BYTES:
        raise Unreadable(f"it has {len(body)} bytes; {_MAX_BYTES} are read at most")
    fields = {}
    for line in body.decode("utf-8", "replace").splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith("#"):
            fields[key] = _unquoted(value)
    return Distro(
        id=fields.get("ID", "").lower(),
        version=fields.get("VERSION_ID", ""),
        name=fields.get("PRETTY_NAME") or fields.get("NAME", ""),
    )


def _unquoted(value: str) -> str:
    try:
        return "".join(shlex.split(value)[:1])
    except ValueError:  # a quote that is not closed
        return value.strip("\"'")
