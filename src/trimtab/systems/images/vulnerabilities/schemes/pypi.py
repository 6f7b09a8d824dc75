"""Python versions (PEP 440), by `packaging`."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version


def key(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        raise ValueError("no Python version (PEP 440)") from None
