"""The string formats that Kubernetes checks in custom resources; any other `format` is a remark.

Each check accepts what the Go parser behind it accepts, quirks included (leading zeros in IPv4, Scala durations).
"""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
import unicodedata
from collections.abc import Callable
from urllib.parse import urlsplit

from trimtab.model.schema.patterns import Matcher, matcher


def check_of(name: str) -> Callable[[str], bool] | None:
    """The check of a format as a schema spells it (`date-time` and `datetime` are one), or None."""
    return _CHECKS.get(name.replace("-", ""))


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled: list[Matcher] = []

    def check(text: str) -> bool:
        if not compiled:
            compiled.append(matcher(pattern))
        return compiled[0](text)

    return check


_date_form = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_time_form = re.compile(r"(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)", re.ASCII)


def _date(text: str) -> bool:
    if not _date_form.fullmatch(text):
        return False
    if text.startswith("0000"):
        text = "2000" + text[4:]  # Go knows a year 0, which is a leap year
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


_usual_time = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?Z", re.ASCII
).fullmatch


def _date_time(text: str) -> bool:
    if _usual_time(text):
        return True
    day, _, rest = text.lower().partition("t")
    time = _time_form.fullmatch(rest.split("t")[0])
    return time is not None and _date(day) and time[1] <= "23" and time[2] <= "59" and time[3] <= "59"


# Neither may try the same digits in two ways: a text is as long as its sender likes.
_go_duration = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_scala_duration = re.compile(r"(?<!\d)\d+\s*([A-Za-zµ]+)", re.ASCII)
_exact_units = {"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"}
_unit_prefixes = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def _duration(text: str) -> bool:
    if _go_duration.fullmatch(text):
        return True
    units = [unit.lower() for unit in _scala_duration.findall(text)]
    return any(unit in _exact_units or unit.startswith(_unit_prefixes) for unit in units)


def _ipv4(text: str) -> bool:
    """Any address with a dot in it: Go's net.ParseIP knows IPv6 with an IPv4 tail too."""
    return "." in text and (_dotted(text) or _ipv6(text))


def _dotted(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(p.isascii() and p.isdigit() and len(p) <= 9 and int(p) <= 255 for p in parts)


def _ipv6(text: str) -> bool:
    try:
        return "%" not in text and ipaddress.IPv6Address(text) is not None
    except ValueError:
        return False


def _cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not (slash and bits.isascii() and bits.isdigit() and len(bits) <= 3):
        return False
    return int(bits) <= 32 if _dotted(address) else _ipv6(address) and int(bits) <= 128


_mac = _matches(
    r"^(?:[0-9a-fA-F]{2}(?:(?::[0-9a-fA-F]{2}){5}|(?::[0-9a-fA-F]{2}){7}|(?::[0-9a-fA-F]{2}){19}|"
    r"(?:-[0-9a-fA-F]{2}){5}|(?:-[0-9a-fA-F]{2}){7}|(?:-[0-9a-fA-F]{2}){19})|"
    r"[0-9a-fA-F]{4}(?:(?:\.[0-9a-fA-F]{4}){2}|(?:\.[0-9a-fA-F]{4}){3}|(?:\.[0-9a-fA-F]{4}){9}))$"
)


def _uri(text: str) -> bool:
    """What Go's url.ParseRequestURI takes: anything with a scheme, or an absolute path."""
    if not text or "\x7f" in text or any(c < " " for c in text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    if " " in parts.netloc or _bad_escape(parts.path + parts.netloc):
        return False
    return text.startswith("/") or text == "*" or bool(parts.scheme)


_bad_escape = re.compile("%(?![0-9a-fA-F]{2})").search


_address = re.compile(r"""[^\s@<>()\[\],;:\\"]+@(?:[^\s@<>()\[\],;:\\"]+|\[[^\]\s]+\])""")


def _email(text: str) -> bool:
    """An address of RFC 5322, with or without a display name."""
    text = text.strip(" \t")
    if text.endswith(">"):
        _, bracket, text = text[:-1].rpartition("<")
        if not bracket:
            return False
    local, _, domain = text.rpartition("@")
    dots_fine = all(part and ".." not in part and part.strip(".") == part for part in (local, domain))
    return dots_fine and (_address.fullmatch(text) is not None or _quoted_local(local, domain))


def _quoted_local(local: str, domain: str) -> bool:
    return len(local) > 2 and local[0] == local[-1] == '"' and _address.fullmatch(f"x@{domain}") is not None


def _hostname(text: str) -> bool:
    """One label, or labels of which the last is a word of letters; letters and symbols of any script."""
    if len(text.encode("utf-8", "replace")) > 255:
        return False
    labels = text.split(".")
    if any(len(label.encode("utf-8", "replace")) > 63 or not _host_label(label) for label in labels):
        return False
    return len(labels) == 1 or (len(labels[-1]) >= 2 and labels[-1].isalpha())


def _host_label(label: str) -> bool:
    if not label or label.startswith("-") or label.endswith("-"):
        return False
    return all(c in _HOST_CHARACTERS or unicodedata.category(c)[0] in "LS" for c in label)


_HOST_CHARACTERS = frozenset("-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum(weight * (10 if d == "X" else int(d)) for weight, d in enumerate(digits, 1)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum((1, 3)[i % 2] * int(d) for i, d in enumerate(digits)) % 10 == 0


_card_form = _matches(
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|"
    r"3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
)


def _credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _card_form(digits):
        return False
    doubled = [int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits))]
    return sum(d // 10 + d % 10 for d in doubled) % 10 == 0


def _byte(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) > 0
    except (binascii.Error, ValueError):
        return False


_octet = "(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"

_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches("^[0-9a-fA-F]{24}$"),
    "uri": _uri,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidr,
    "mac": _mac,
    "uuid": _matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    "uuid3": _matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    "uuid4": _matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    "uuid5": _matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": _matches("^[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}$"),
    "hexcolor": _matches("^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _matches(rf"^rgb\(\s*{_octet}\s*,\s*{_octet}\s*,\s*{_octet}\s*\)$"),
    "byte": _byte,
    "password": lambda text: True,
    "date": _date,
    "duration": _duration,
    "datetime": _date_time,
}
