"""Whose keys are trusted: OpenSSH's allowed-signers lines (ssh-keygen(1), ALLOWED SIGNERS). Pure.

Lines that trust an authority for certificates are refused rather than passed over: whoever writes one means it.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import re
from datetime import UTC, datetime

import msgspec

from trimtab.runtime.git.wire import BadForm, Reader

_WORDS = re.compile(r'(?:[^\s"]|"[^"]*")+')
_OPTION = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?')
_TIME = re.compile(r"(\d{8})(\d{4}(?:\d{2})?)?(Z)?")


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    principals: tuple[str, ...]
    key: bytes
    namespaces: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None

    def allows(self, key: bytes, namespace: str, at: datetime) -> bool:
        return (
            key == self.key
            and (not self.namespaces or _listed(namespace, self.namespaces))
            and (self.after is None or at >= self.after)
            and (self.before is None or at < self.before)
        )


def _listed(name: str, patterns: tuple[str, ...]) -> bool:
    """One that begins with `!` and matches takes it out, whatever else does."""
    found = [each for each in patterns if fnmatch.fnmatchcase(name, each.removeprefix("!"))]
    return bool(found) and not any(each.startswith("!") for each in found)


def parse(text: str) -> tuple[Allowed, ...]:
    """ValueError names the line."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                found.append(_line(line))
            except (ValueError, binascii.Error) as error:
                raise ValueError(f"allowed signers, line {number}: {error}") from None
    return tuple(found)


def _line(line: str) -> Allowed:
    words = _WORDS.findall(line)
    if len(words) < 3:
        raise ValueError("must be 'principals [options] key-type key'")
    options: dict[str, str] = {}
    principals, rest = tuple(words[0].strip('"').split(",")), words[1:]
    if not _is_key(rest):
        options, rest = _options(rest[0]), rest[1:]
    if not _is_key(rest):
        raise ValueError("has no key, such as 'ssh-ed25519 AAAA…'")
    namespaces = tuple(each for each in options.get("namespaces", "").split(",") if each)
    if "namespaces" in options and not namespaces:
        raise ValueError('namespaces: names none; leave it out, or write namespaces="git"')
    return Allowed(
        principals=principals,
        key=base64.b64decode(rest[1], validate=True),
        namespaces=namespaces,
        after=_time(options.get("valid-after")),
        before=_time(options.get("valid-before")),
    )


def _is_key(words: list[str]) -> bool:
    """The type is said twice: as a word, and in the key."""
    if len(words) < 2:
        return False
    try:
        return Reader(base64.b64decode(words[1], validate=True)).text() == words[0]
    except (binascii.Error, BadForm, ValueError):
        return False


def _options(text: str) -> dict[str, str]:
    options = {}
    for part in re.findall(r'(?:[^,"]|"[^"]*")+', text):
        match = _OPTION.fullmatch(part)
        name = match[1].lower() if match else ""
        if match is None or name not in ("namespaces", "valid-after", "valid-before", "cert-authority"):
            raise ValueError(f"option {part[:40]!r} is not known")
        if name == "cert-authority":
            raise ValueError("cert-authority is not supported; name the keys themselves")
        if name in options:
            raise ValueError(f"option {name} is there twice")
        options[name] = match[2] or ""
    return options


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"time {text[:40]!r} must be YYYYMMDD[HHMM[SS]][Z]")
    digits = (match[1] + (match[2] or "")).ljust(14, "0")
    when = datetime.strptime(digits, "%Y%m%d%H%M%S")
    return when.replace(tzinfo=UTC) if match[3] else when.astimezone()
