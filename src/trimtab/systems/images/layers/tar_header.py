"""The header of a tar entry taken apart: numbers, names, the checksum, the records of pax."""

from __future__ import annotations

import struct

from isal import isal_zlib

from trimtab.systems.images.layers.problems import LIMITS, LayerDamaged, LayerTooLarge, Limits

BLOCK = 512
FIELDS = struct.Struct("100s 24x 12s 12x 8s c 100s 6s 82x 155s 12x")
"""Name, size, checksum, flag, target of a link, magic, prefix of the name."""

_ADLER = 65521


def is_sound(block: bytes, checksum: bytes) -> bool:
    """Whether the checksum is that of the header: the sum of its bytes, in which the checksum itself counts as spaces."""
    claimed = number(checksum)
    # The low half of Adler-32 is one more than the sum of the bytes, modulo a prime. It is far faster than `sum`.
    if (claimed + sum(checksum) - 255 - (isal_zlib.adler32(block) & 0xFFFF)) % _ADLER == 0:
        return True
    rest = block[:148] + b" " * 8 + block[156:]
    return sum(rest) - 256 * sum(byte > 127 for byte in rest) == claimed  # as some old programs add them up


def clean(name: str, limits: Limits = LIMITS) -> str:
    """A path from the root of the image, without a leading slash, `.` and `..`; the root itself is empty."""
    if len(name) > limits.path_bytes:
        raise LayerTooLarge(f"a path in the layer has more than {limits.path_bytes} characters: {name[:80]!r}…")
    name = name.removeprefix("./")
    name = name.removesuffix("/")
    if "//" in name or "./" in name or name.startswith("/") or name.endswith((".", "/")):
        parts: list[str] = []
        for part in name.split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        name = "/".join(parts)
    if name.count("/") >= limits.path_depth:
        raise LayerTooLarge(f"a path in the layer is deeper than {limits.path_depth} folders: {name[:80]!r}…")
    return name


def number(field: bytes) -> int:
    """Octal digits, or base 256 when the first bit is set."""
    try:
        value = int(field.rstrip(b"\0 "), 8)  # nearly always
    except ValueError:
        return _odd_number(field)
    return value if value >= 0 else _odd_number(field)


def _odd_number(field: bytes) -> int:
    if field[0] & 0x80:
        value = int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
        if field[0] & 0x40 or value >> 62:
            raise LayerDamaged("a number in a header of the layer's archive is negative or too large")
        return value
    digits = field.partition(b"\0")[0].strip()
    if not digits:
        return 0
    try:
        value = int(digits, 8)
    except ValueError:
        raise LayerDamaged("a number in a header of the layer's archive is not octal") from None
    if value < 0:
        raise LayerDamaged("a number in a header of the layer's archive is negative")
    return value


def decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise LayerDamaged("a size in a pax header of the layer's archive is no number")
    return int(text)


def text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def pax_records(body: bytes) -> dict[str, str]:
    """Records of the form `<length> <key>=<value>` and a line feed; the length counts the whole record."""
    records = {}
    at = 0
    while at < len(body):
        space = body.find(b" ", at, at + 12)
        digits = body[at:space] if space > 0 else b""
        if not digits.isdigit():
            raise LayerDamaged("a pax header of the layer's archive is damaged")
        end = at + int(digits)
        if end > len(body) or end <= space + 1 or body[end - 1 : end] != b"\n":
            raise LayerDamaged("a pax header of the layer's archive is damaged")
        key, equals, value = body[space + 1 : end - 1].partition(b"=")
        if not equals:
            raise LayerDamaged("a pax header of the layer's archive is damaged")
        records[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        at = end
    return records
