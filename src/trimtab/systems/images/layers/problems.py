"""What can be wrong with a layer, and how much of everything a layer may have.

These errors fail the image. A broken file inside a layer does not: it becomes a warning in the layer's result.
"""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on what comes from outside; the defaults pass every image that is meant seriously."""

    layer_bytes: int = 64 << 30  # of the tar, decompressed
    ratio: int = 300  # decompressed to compressed bytes, once `ratio_floor` bytes have come out
    ratio_floor: int = 256 << 20
    entries: int = 1_000_000
    path_bytes: int = 16 << 10
    path_depth: int = 200
    record_bytes: int = 1 << 20  # a pax header or a long name
    held_bytes: int = (
        112 << 20
    )  # of one file that is kept in memory while it is read; formats have their own bounds too
    executable_bytes: int = 64 << 20  # of an executable that is held; a larger one is searched in passing
    packages: int = 200_000
    kept_bytes: int = 64 << 20  # of all that a layer's result keeps: packages, licences, whiteouts
    warnings: int = 100


LIMITS = Limits()


class LayerError(Exception):
    """A layer that cannot be used."""


class LayerDamaged(LayerError):  # noqa: N818 - it reads as what happened
    """The bytes are no whole archive of the kind that they should be."""


class LayerTooLarge(LayerError):  # noqa: N818
    """A bound was passed: a bomb, or an image beyond what is read here."""


class LayerMismatch(LayerError):  # noqa: N818
    """The bytes are not those that the manifest or the config names."""


class LayerUnsupported(LayerError):  # noqa: N818
    """A media type that is no layer, or a compression that is not known."""
