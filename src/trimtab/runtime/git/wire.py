"""The wire forms that SSH keys and signatures are made of (RFC 4251 §5). Pure."""

from __future__ import annotations


class BadForm(ValueError):  # noqa: N818 - what it is
    """The bytes are not of the form that they should have."""


class Reader:
    """Takes values off the front of some bytes. BadForm when there are not enough."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise BadForm("ends too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def uint32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        return self.take(self.uint32())

    def text(self) -> str:
        try:
            return self.string().decode()
        except UnicodeDecodeError:
            raise BadForm("has a text that is no UTF-8") from None

    def mpint(self) -> int:
        value = int.from_bytes(self.string(), "big", signed=True)
        if value <= 0:
            raise BadForm("has a number that is not positive")
        return value

    def end(self) -> None:
        if self._at != len(self._data):
            raise BadForm("has more at its end than it should")


def string(value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(4, "big") + data


def mpint(value: int) -> bytes:
    return string(value.to_bytes(value.bit_length() // 8 + 1, "big"))
