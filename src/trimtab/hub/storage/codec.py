"""Rows as bytes, and which rows can be kept at all. A row is stored whole, its key and revision too: one decode reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.hub.storage.contract import PROJECTS, Row, RowKey
from trimtab.store.contract import TooLarge

MAX_ROW = 4 << 20
"""The most bytes of a row: an object of the API has at most 1.5 MiB, and a row may have it and its snapshot."""
LONGEST = 1024
"""The most characters of a name, a type, an organisation."""


def encoded(value: Any) -> bytes:
    return _encoder.encode(value)


def decoded(data: bytes | str) -> Row:
    return _decoder.decode(data)


def labels_of(row: Row) -> str:
    """What a query for labels looks at."""
    return _encoder.encode(row.labels).decode()


def check_key(key: RowKey) -> None:
    """ValueError for a key that no row can have."""
    for field, value in zip(RowKey._fields, key, strict=True):
        if not value and field != "project":
            raise ValueError(f"{field} is empty: a row needs one")
        if "\0" in value or len(value) > LONGEST:
            raise ValueError(f"{field} must have at most {LONGEST} characters, and no character NUL")
    if key.type == PROJECTS and key.project:
        raise ValueError("project must be empty: a project is in no other project")


def check(row: Row) -> int:
    """The bytes that a row takes. ValueError, TooLarge."""
    check_key(row.key)
    for name, value in row.labels.items():
        if "\0" in name or "\0" in value:
            raise ValueError(f"labels: {name[:80]!r} has a character NUL, which cannot be kept")
    if row.snapshot is not None and not 0 < len(row.snapshot.version.replace("\0", "")) <= LONGEST:
        raise ValueError(f"snapshot: a version has 1 to {LONGEST} characters, and no character NUL")
    size = len(encoded(row))
    if size > MAX_ROW:
        raise TooLarge(f"{row.key.type} {row.key.name}: {size} bytes are more than {MAX_ROW}")
    return size


def equal(one: Any, other: Any) -> bool:
    """Whether two documents say the same. Python holds 1, 1.0 and true for equal; a document does not."""
    return bool(one == other) and _sorted.encode(one) == _sorted.encode(other)


_encoder = msgspec.json.Encoder()
_sorted = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(Row)
