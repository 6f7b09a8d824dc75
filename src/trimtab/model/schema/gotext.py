"""How the real API server, a Go program, prints values in its messages: `%q`, `%v` and `%#v` of decoded JSON."""

from __future__ import annotations

from typing import Any

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quoted(text: str) -> str:
    """A string as `%q` prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(char) or _rune(char) for char in text) + '"'


def _rune(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if 0xD800 <= code < 0xE000:
        return "\ufffd"  # Go strings cannot hold half of a surrogate pair
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """A number as `%v` prints it: the shortest digits, an exponent only below 1e-4 and from 1e21."""
    if isinstance(value, int):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)]
    if value == 0 or 1e-4 <= abs(value) < 1e21:
        return str(int(value)) if value.is_integer() else repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if exponent:
        return f"{mantissa.removesuffix('.0')}e{exponent[0]}{int(exponent[1:]):02d}"
    return mantissa


def shown(value: Any) -> str:
    """A bad value as `field.Error` prints it."""
    return '"null"' if value is None else literal(value)


class Strings(list[str]):
    """A bad value that is a `[]string` in Go, where most are `[]interface {}`."""


def literal(value: Any) -> str:
    """A JSON value as `%#v` prints it."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        inner = ", ".join(f"{quoted(key)}:{literal(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    kind = "string" if isinstance(value, Strings) else "interface {}"
    return f"[]{kind}{{{', '.join(map(literal, value))}}}"
