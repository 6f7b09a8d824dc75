"""Decompression of a layer as a stream: gzip, zstd or none, in pieces of bounded size.

The form is told by the first bytes, not by the media type: registries hold gzip under every name. Several gzip members
or zstd frames follow one another as one stream (estargz, pigz), and zeros after the last one are padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from backports import zstd
from isal import igzip_lib

from trimtab.systems.images.layers.problems import LIMITS, LayerDamaged, LayerTooLarge, LayerUnsupported, Limits

PIECE = 256 << 10
"""At most this many decompressed bytes are handed out at once: what is done with them finds them in the processor's cache."""

_GZIP_ERROR: type[Exception] = vars(igzip_lib)["error"]  # its stub takes the class for an instance
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # after a first byte of 0x50 to 0x5f
_UNKNOWN = {b"BZh": "bzip2", b"\xfd7z": "xz"}


class Decompressor:
    """Push: `feed` compressed bytes and iterate what comes out; `finish` when there are no more."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._head = b""  # until the form is known
        self._form: str | None = None
        self._stream: _Stream | None = None
        self._members = 0
        self._padding = False
        self.taken = 0
        self.given = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self.taken += len(data)
        if self._form is None:
            data = self._head + data
            self._head = data
            if len(data) < 4:
                return
            self._form, self._head = _form(data), b""
        if self._form == "raw":
            for start in range(0, len(data), PIECE):
                yield self._counted(data[start : start + PIECE])
            return
        while data or (self._stream and not self._stream.eof and not self._stream.needs_input):
            if self._stream is None:
                data = self._begin(data)
                if self._stream is None:
                    return
            try:
                piece = self._stream.decompress(data, PIECE)
            except (_GZIP_ERROR, zstd.ZstdError, EOFError, ValueError) as error:
                raise LayerDamaged(f"the layer's {self._form} stream is damaged: {error}") from error
            data = b""
            if piece:
                yield self._counted(piece)
            if self._stream.eof:
                data = self._stream.unused_data
                self._stream = None

    def finish(self) -> Iterator[bytes]:
        if self._form is None and self._head:
            self._form = "raw"
            yield self._counted(self._head)
        if self._stream is not None or (self._members and self._head):
            raise LayerDamaged(f"the layer's {self._form} stream ends too early")

    def _begin(self, data: bytes) -> bytes:
        """The next member, or the padding after the last one. What does not suffice to tell is kept in the head."""
        data = self._head + data
        self._head = b""
        if self._padding or (self._members and data[:1] == b"\0"):
            if data.strip(b"\0"):
                raise LayerDamaged(f"there are bytes after the end of the layer's {self._form} stream")
            self._padding = True
            return b""
        if len(data) < 4:
            self._head = data
            return b""
        if _form(data) != self._form:
            raise LayerDamaged(f"there are bytes after the end of the layer's {self._form} stream")
        self._members += 1
        self._stream = _stream(str(self._form))
        return data

    def _counted(self, piece: bytes) -> bytes:
        self.given += len(piece)
        limits = self._limits
        if self.given > limits.layer_bytes:
            raise LayerTooLarge(f"the layer has more than {limits.layer_bytes} bytes when it is decompressed")
        if self.given > limits.ratio_floor and self.given > self.taken * limits.ratio:
            raise LayerTooLarge(f"the layer grows more than {limits.ratio} times when it is decompressed")
        return piece


class _Stream(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _form(head: bytes) -> str:
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD) or (0x50 <= head[0] <= 0x5F and head[1:4] == _ZSTD_SKIPPABLE):
        return "zstd"
    for magic, name in _UNKNOWN.items():
        if head.startswith(magic):
            raise LayerUnsupported(f"the layer is compressed by {name}; gzip, zstd and plain tar are read")
    return "raw"


def _stream(form: str) -> _Stream:
    if form == "zstd":
        return zstd.ZstdDecompressor()
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
