"""Numbers of fields, kept for ever: a name keeps its number, and a number is never given twice.

A field that goes leaves its number reserved, and its name while nothing else is called so. One that comes back, or changes its
type, gets a new number: bytes that were written with the old one must not be read as something else. Pure, but for `read`,
`shipped` and `write`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

LARGEST = 536_870_911
SKIPPED = range(19_000, 20_000)
"""Protobuf keeps these for itself."""
SHIPPED = Path(__file__).with_name("shipped.lock.json")
"""Numbers of the kinds that ship, from release to release. `trimtab hub proto --out proto --lock` with this file renews it."""


class Numbered(msgspec.Struct, frozen=True):
    number: int
    type: str


class Gone(msgspec.Struct, frozen=True):
    number: int
    name: str


class MessageLock(msgspec.Struct, frozen=True, omit_defaults=True):
    fields: dict[str, Numbered] = {}
    reserved: tuple[Gone, ...] = ()


class Lock(msgspec.Struct, frozen=True, omit_defaults=True):
    """By kind (`infra/v3/Blueprint`), and in it by message."""

    kinds: dict[str, dict[str, MessageLock]] = {}


class LockError(ValueError):
    """The lock file is none."""


def numbered(before: MessageLock, fields: Mapping[str, str]) -> MessageLock:
    """The lock of a message that has these fields now (name → type, in order)."""
    kept = {name: one for name, one in before.fields.items() if fields.get(name) == one.type}
    gone = [Gone(one.number, name) for name, one in before.fields.items() if name not in kept]
    reserved = (*before.reserved, *sorted(gone, key=lambda each: each.number))
    used = {one.number for one in kept.values()} | {each.number for each in reserved}
    following = max(used, default=0) + 1
    found: dict[str, Numbered] = {}
    for name, kind in fields.items():
        if name in kept:
            found[name] = kept[name]
            continue
        if following in SKIPPED:
            following = SKIPPED.stop
        if following > LARGEST:
            raise LockError(f"there is no number left for {name}")
        found[name] = Numbered(following, kind)
        following += 1
    return MessageLock(found, reserved)


def updated(lock: Lock, kind: str, messages: Mapping[str, Mapping[str, str]]) -> Lock:
    """The lock after a kind has these messages. A message that goes keeps its numbers, should it come back."""
    before = lock.kinds.get(kind) or {}
    now = {name: numbered(before.get(name) or MessageLock(), fields) for name, fields in messages.items()}
    return Lock(kinds={**lock.kinds, kind: {**before, **now}})


def read(path: Path) -> Lock:
    """The lock in a file; an empty one when there is no file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Lock()
    try:
        return msgspec.json.decode(data, type=Lock)
    except msgspec.DecodeError as error:
        raise LockError(f"{path} is no lock file: {error}") from None


def shipped() -> Lock:
    return read(SHIPPED)


def write(path: Path, lock: Lock) -> None:
    """Whole or not at all, and the same bytes for the same lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(lock, order="sorted"), indent=2) + b"\n")
    beside.replace(path)
