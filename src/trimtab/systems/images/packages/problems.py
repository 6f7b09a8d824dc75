"""A file that should name packages and cannot be read: a warning of the layer, never a failure of the image."""

from __future__ import annotations


class Unreadable(Exception):  # noqa: N818 - it reads as what happened
    """The file is not what its name says; the message says why, in words of the format."""
