"""What Go's JSON decoder says of a body that is not JSON. Users and their tests know these sentences.

`complaint` is called only for bodies that the fast parser refused, and reads them once.
"""

from __future__ import annotations

from collections.abc import Iterator

_SPACE = b" \t\r\n"
_END = "unexpected end of JSON input"
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
MAX_DEPTH = 200


class _Refused(Exception):  # noqa: N818 - never leaves this module
    pass


def complaint(data: bytes) -> str:
    """Go's words for the first thing wrong."""
    try:
        _Scanner(data).document()
    except _Refused as refused:
        return str(refused)
    return "invalid JSON"


def unrecognized(kind: str, why: str, data: bytes) -> str:
    """The message of a body in which no object could be found."""
    return f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(data)})"


def not_an_object(value: str) -> str:
    """`value` is the JSON type that stands where the object should."""
    return f"couldn't get version/kind; json parse error: json: cannot unmarshal {value} into Go value of type {_TYPE_META}"


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    cut, more = data[:30], " ..." if len(data) > 30 else ""
    if data[:1] == b"{":
        return cut.decode(errors="replace") + more
    return cut.hex() + more


class _Scanner:
    """A recursive descent, bounded in depth; the stack holds the brackets that are open."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def document(self) -> None:
        stack: list[int] = []
        self._value(stack, "looking for beginning of value")
        while stack:
            self._inside(stack)
        if (char := self._next()) is not None:
            raise _Refused(f"invalid character {_quoted(char)} after top-level value")

    def _value(self, stack: list[int], where: str) -> None:
        char = self._must()
        if char == 0x7B:  # {
            stack.append(char)
            self._first_key(stack)
        elif char == 0x5B:  # [
            stack.append(char)
            if self._must() == 0x5D:
                stack.pop()
            else:
                self._at -= 1
                self._value(stack, "looking for beginning of value") if len(stack) < MAX_DEPTH else _too_deep()
        elif char == 0x22:
            self._string()
        elif char in b"-0123456789":
            self._number(char)
        elif char in b"tfn":
            self._literal({0x74: b"true", 0x66: b"false", 0x6E: b"null"}[char])
        else:
            raise _Refused(f"invalid character {_quoted(char)} {where}")

    def _first_key(self, stack: list[int]) -> None:
        char = self._must()
        if char == 0x7D:
            stack.pop()
            return
        self._key(char, stack)

    def _key(self, char: int, stack: list[int]) -> None:
        if char != 0x22:
            raise _Refused(f"invalid character {_quoted(char)} looking for beginning of object key string")
        self._string()
        char = self._must()
        if char != 0x3A:
            raise _Refused(f"invalid character {_quoted(char)} after object key")
        self._value(stack, "looking for beginning of value") if len(stack) < MAX_DEPTH else _too_deep()

    def _inside(self, stack: list[int]) -> None:
        """After a value in the innermost bracket: another, or its end."""
        char = self._must()
        if stack[-1] == 0x7B:
            if char == 0x7D:
                stack.pop()
            elif char == 0x2C:
                self._key(self._must(), stack)
            else:
                raise _Refused(f"invalid character {_quoted(char)} after object key:value pair")
        elif char == 0x5D:
            stack.pop()
        elif char == 0x2C:
            self._value(stack, "looking for beginning of value")
        else:
            raise _Refused(f"invalid character {_quoted(char)} after array element")

    def _string(self) -> None:
        for char in self._raw():
            if char == 0x22:
                return
            if char < 0x20:
                raise _Refused(f"invalid character {_quoted(char)} in string literal")
            if char == 0x5C:
                self._escape()
        raise _Refused(_END)

    def _escape(self) -> None:
        char = next(self._raw(), None)
        if char is None:
            raise _Refused(_END)
        if char == 0x75:
            for _ in range(4):
                digit = next(self._raw(), None)
                if digit is None:
                    raise _Refused(_END)
                if digit not in b"0123456789abcdefABCDEF":
                    raise _Refused(f"invalid character {_quoted(digit)} in \\u hexadecimal character escape")
        elif char not in b'bfnrt\\/"':
            raise _Refused(f"invalid character {_quoted(char)} in string escape code")

    def _number(self, first: int) -> None:
        if first == 0x2D:
            first = self._digit("in numeric literal")
        if first != 0x30:
            self._digits()
        if self._peek() == 0x2E:
            self._at += 1
            self._digit("after decimal point in numeric literal")
            self._digits()
        if self._peek() in (0x65, 0x45):
            self._at += 1
            if self._peek() in (0x2B, 0x2D):
                self._at += 1
            self._digit("in exponent of numeric literal")
            self._digits()

    def _digit(self, where: str) -> int:
        char = next(self._raw(), None)
        if char is None:
            raise _Refused(_END)
        if char not in b"0123456789":
            raise _Refused(f"invalid character {_quoted(char)} {where}")
        return char

    def _digits(self) -> None:
        while (char := self._peek()) is not None and char in b"0123456789":
            self._at += 1

    def _literal(self, word: bytes) -> None:
        for expected in word[1:]:
            char = next(self._raw(), None)
            if char is None:
                raise _Refused(_END)
            if char != expected:
                text = f"in literal {word.decode()} (expecting {_quoted(expected)})"
                raise _Refused(f"invalid character {_quoted(char)} {text}")

    def _raw(self) -> Iterator[int]:
        while self._at < len(self._data):
            self._at += 1
            yield self._data[self._at - 1]

    def _peek(self) -> int | None:
        return self._data[self._at] if self._at < len(self._data) else None

    def _next(self) -> int | None:
        """The next byte that is not white space, taken."""
        return next((char for char in self._raw() if char not in _SPACE), None)

    def _must(self) -> int:
        char = self._next()
        if char is None:
            raise _Refused(_END)
        return char


def _too_deep() -> None:
    raise _Refused("exceeded max depth")


def _quoted(char: int) -> str:
    special = {0x27: "'\\''", 0x22: "'\"'", 0x5C: "'\\\\'", 0x0A: "'\\n'", 0x0D: "'\\r'", 0x09: "'\\t'"}
    if char in special:
        return special[char]
    if char < 0x20 or char == 0x7F:
        return f"'\\x{char:02x}'"
    if char > 0x7F:
        return f"'\\u{char:04x}'" if char < 0xA1 else f"'{chr(char)}'"
    return f"'{chr(char)}'"
