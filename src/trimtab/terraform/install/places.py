"""Where things are on this machine, and what the provider is called."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

HOST, NAMESPACE, TYPE = "trimtab.dev", "trimtab", "trimtab"
ADDRESS = f"{HOST}/{NAMESPACE}/{TYPE}"
"""What `source` says in `required_providers`. The host is one of our own, so that no registry can offer another one's code
under it."""

_SYSTEMS = {"linux": "linux", "darwin": "darwin", "freebsd": "freebsd", "openbsd": "openbsd"}
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "i686": "386", "i386": "386"}

TARGETS = (
    "darwin_amd64",
    "darwin_arm64",
    "freebsd_amd64",
    "linux_386",
    "linux_amd64",
    "linux_arm",
    "linux_arm64",
)
"""The package is Python and a shell's first line: the same for all of these."""


class UnknownMachine(Exception):  # noqa: N818 - it says what is wrong
    """A system that Terraform has no name for, or that starts no scripts."""


def target() -> str:
    """This machine as Terraform names it."""
    system = _SYSTEMS.get(next((name for name in _SYSTEMS if sys.platform.startswith(name)), ""))
    if system is None:
        raise UnknownMachine(f"{sys.platform} starts no scripts as programs: use Linux, macOS, or WSL on Windows")
    machine = platform.machine().lower()
    return f"{system}_{_MACHINES.get(machine, 'arm' if machine.startswith('arm') else machine)}"


def plugins() -> Path:
    """The mirror that Terraform and OpenTofu look into without being told."""
    return Path(os.path.expanduser("~")) / ".terraform.d" / "plugins"


def unpacked(mirror: Path, version: str, where: str) -> Path:
    """The folder of a package in a filesystem mirror."""
    return mirror / HOST / NAMESPACE / TYPE / version / where
