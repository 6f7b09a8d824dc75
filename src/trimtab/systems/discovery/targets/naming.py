"""Names of Targets: whatever a device or a template says becomes a name that Kubernetes takes. Pure.

What is a valid name already, but for upper case, stays as it is: host names differ in more than case. Everything else
becomes the valid part of it with a hash of the whole, after `--`; so does a text that looks as if it had one. Hence two
texts have the same name only when they differ by case or by white space around them, as far as 32 bits can tell.

Two devices may still say the same: `unique` then tells them apart by what identifies them.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Container

MAX_NAME = 253
MAX_LABEL_VALUE = 63


def target_name(text: str, address: str) -> str:
    """The name for what a template rendered or the device calls itself; by the address when that is empty."""
    text = text.strip().lower()
    if not text:
        return address_name(address)
    slug = _slug(text)
    if slug == text and len(slug) <= MAX_NAME and not _MARKED.search(slug):
        return slug
    return _marked(slug or "device", text)


def address_name(address: str) -> str:
    """`10.1.0.5` as it is; `2001:db8::1` as `2001-db8--1`, `::1` as `0--1`; a DNS name as `target_name` has it."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return target_name(address.strip() or "device", address)
    if known.version == 4:
        return str(known)
    text = str(ipaddress.IPv6Address(int(known))).replace(":", "-")  # without a zone
    return f"{'0' * text.startswith('-')}{text}{'0' * text.endswith('-')}"


def unique(name: str, taken: Container[str], identity: str) -> str:
    """The name, or when another device has it already, the same one marked by what identifies this device."""
    attempt = 0
    result = name
    while result in taken:
        result = _marked(name, f"{identity}\n{attempt}" if attempt else identity)
        attempt += 1
    return result


def label_value(text: str) -> str:
    """The nearest valid value of a label: other characters become `-`, and 63 are kept."""
    kept = _NO_VALUE.sub("-", text)[:MAX_LABEL_VALUE]
    return kept.strip("-_.")


def _slug(text: str) -> str:
    """What of a lower-case text may be in a name: labels of letters, digits and dashes, with dots between."""
    labels = (label.strip("-") for label in _NO_NAME.sub("-", text).split("."))
    return ".".join(label for label in labels if label)


def _marked(slug: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[: MAX_NAME - 10].rstrip('-.')}--{digest}"


_NO_NAME = re.compile(r"[^a-z0-9.-]+")
_NO_VALUE = re.compile(r"[^A-Za-z0-9._-]+")
_MARKED = re.compile(r"--[0-9a-f]{8}\Z")
