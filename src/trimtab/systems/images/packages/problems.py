"""A file that should name packages and cannot be read: a warning of the layer, never a failure of the image."""

from __future__ import annotations

from trimtab.systems.images.packages.package import Package


class Unreadable(Exception):  # noqa: N818 - it reads as what happened
    """The file, or a part of it, is not what its name says; the message says why. What could be read is kept."""

    def __init__(self, message: str, packages: tuple[Package, ...] = ()) -> None:
        super().__init__(message)
        self.packages = packages
