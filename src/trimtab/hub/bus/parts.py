"""A message in parts, for a bus whose messages are short. The parts of one message come one after the other.

A part is `id/number/count:text`; the text is base64, since the bus may carry text alone. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from trimtab.hub.bus.contract import MAX_MESSAGE

MAX_OPEN = 64
"""Messages of which some parts are missing still; more than this many publishers at one moment there are not."""


def split(message: bytes, identity: str, limit: int) -> Sequence[str]:
    """Texts of at most `limit` bytes."""
    text = base64.b64encode(message).decode("ascii")
    room = limit - len(identity) - 16
    pieces = [text[start : start + room] for start in range(0, len(text), room)] or [""]
    return [f"{identity}/{number}/{len(pieces)}:{piece}" for number, piece in enumerate(pieces)]


class Joiner:
    """Puts parts together again."""

    def __init__(self) -> None:
        self._open: dict[str, list[str]] = {}

    def add(self, part: str) -> bytes | None:
        """The whole message with its last part; None before. ValueError: that was no part of ours."""
        head, colon, piece = part.partition(":")
        fields = head.split("/")
        if not colon or len(fields) != 3 or not fields[1].isdecimal() or not fields[2].isdecimal():
            raise ValueError("this is no part of a message")
        identity, number, count = fields[0], int(fields[1]), int(fields[2])
        pieces = self._open.setdefault(identity, [])
        if number != len(pieces) or not 0 <= number < count:
            del self._open[identity]
            raise ValueError("a part of a message is missing")
        pieces.append(piece)
        if len(pieces) == count:
            del self._open[identity]
            try:
                return base64.b64decode("".join(pieces), validate=True)
            except binascii.Error:
                raise ValueError("a part of a message is not base64") from None
        if len(self._open) > MAX_OPEN or sum(map(len, pieces)) > 2 * MAX_MESSAGE:
            del self._open[identity]
            raise ValueError("a message is too long, or too many are open")
        return None
