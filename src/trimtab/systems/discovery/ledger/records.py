"""What is known of each address of a rule, in a blob: its last outcome, logins, keys, and the sweep that goes on.

Two parts: `outcomes` has one byte for each position of the scope, `records` the rest of what is known, only for
addresses that ever answered. An unchanged ledger has the same bytes, so the same digest: no time in it moves while
nothing changes. `at` is since when an outcome is as it is, not when it was last seen.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.ledger import logins
from trimtab.systems.discovery.ledger.logins import LoginRecord, State

MAX_BYTES = 256 << 20
"""What a ledger may unfold to: 2^20 addresses that all answered."""

MAX_DETAIL = 512

FORGOTTEN_AFTER = 30 * 86400.0
"""Seconds that an address is remembered after it left the scope."""


class AddressRecord(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """One address that has answered at some time."""

    outcome: Annotated[int, Meta(ge=0, le=255)] = Outcome.UNPROBED
    detail: str = ""
    """One sentence for people."""
    at: float = 0
    """Since when the outcome and the detail are so."""
    logins: dict[str, LoginRecord] = {}
    """By protocol."""
    pins: dict[str, str] = {}
    """By protocol, the fingerprint that it showed."""
    target: str = ""
    gone: float = 0
    """Since when the address is out of scope; 0 while it is in."""
    followed: bool = False
    """It came from Pods, Services or a DNS name, which come and go by themselves."""


class Misses(msgspec.Struct, frozen=True, array_like=True):
    """How many sweeps in a row did not see a Target. `since` is the first of them: from there its age is counted, however
    long nobody swept before. `seen` is the end of the last sweep that saw it; 0 where that is not known."""

    count: int
    since: float
    seen: float = 0


class Ledger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of one rule. Who works with it may put records into `records` and `misses`; `encode` takes it as it is then."""

    records: dict[str, AddressRecord] = {}
    outcomes: bytes = b""
    earlier: bytes = b""
    """While a sweep goes on, or when it failed: the outcomes of the last one that came to its end."""
    earlier_scope: str = ""
    """Names the addresses that `earlier` speaks of."""
    misses: dict[str, Misses] = {}
    scope: str = ""
    """Names the addresses that `outcomes` speaks of."""
    run: str = ""
    """The sweep that goes on; empty when none does."""
    seed: int = 0
    position: int = 0
    settings: str = ""
    """The digest of what the last run was made of."""
    closed_until: float = 0
    """No login is tried before this time: what was known of logins is lost."""
    held: str = ""
    """The run whose losses are held back, until somebody releases them."""
    orderly: bool = False
    """Whoever wrote this has ended in order: every login that was sent is noted."""


class LedgerDamaged(ValueError):  # noqa: N818 - it reads as what happened
    """The bytes are no ledger, or one of a newer version."""


def encode(ledger: Ledger) -> bytes:
    """The same bytes for equal ledgers, whatever the order in which they were filled."""
    body = _ENCODER.encode(ledger)
    packed = zlib.compress(body, 1)
    return _HEAD.pack(_MAGIC, VERSION, len(body), zlib.crc32(body)) + packed


def decode(data: bytes) -> Ledger:
    """What was encoded. LedgerDamaged when it cannot be."""
    if len(data) < _HEAD.size:
        raise LedgerDamaged("the ledger is cut off: it has no head")
    magic, version, size, checksum = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise LedgerDamaged("this is not a ledger of discovery")
    if version > VERSION:
        raise LedgerDamaged(
            f"the ledger has version {version}, and {VERSION} is the newest known here: upgrade trimtab"
        )
    if size > MAX_BYTES:
        raise LedgerDamaged(f"the ledger has {size} bytes, and {MAX_BYTES} is the most")
    unpacker = zlib.decompressobj()
    try:
        body = unpacker.decompress(memoryview(data)[_HEAD.size :], size + 1)
        if len(body) != size or not unpacker.eof or unpacker.unused_data or zlib.crc32(body) != checksum:
            raise LedgerDamaged("the ledger is damaged: its checksum does not fit")
        return _DECODER.decode(body)
    except (zlib.error, msgspec.DecodeError) as error:
        raise LedgerDamaged(f"the ledger is damaged: {error}") from None


def noted(record: AddressRecord | None, outcome: int, detail: str, now: float) -> AddressRecord:
    """The record after a sweep. The same one when nothing changed."""
    before = record or AddressRecord()
    detail = detail[:MAX_DETAIL]
    if record is not None and (before.outcome, before.detail) == (int(outcome), detail):
        return before
    return msgspec.structs.replace(before, outcome=int(outcome), detail=detail, at=now)


def trimmed(ledger: Ledger, in_scope: Callable[[str], bool], now: float, window: float) -> Ledger:
    """Without what nobody needs: addresses that left the scope long ago, unless a login window is open. The same
    ledger when nothing changes."""
    kept: dict[str, AddressRecord] = {}
    changed = False
    for address, record in ledger.records.items():
        gone = 0.0 if in_scope(address) else (record.gone if 0 < record.gone <= now else now)
        if gone and now - gone >= FORGOTTEN_AFTER and not _is_locked(record, now, window):
            changed = True
            continue
        if gone != record.gone:
            record, changed = msgspec.structs.replace(record, gone=gone), True
        kept[address] = record
    return msgspec.structs.replace(ledger, records=kept) if changed else ledger


def counting(ledger: Ledger, now: float, window: float) -> Ledger:
    """Only what devices may count against us still, with what tells that they are those devices: for other rules, when
    this one sweeps no more."""
    tried = {
        address: record
        for address, record in ledger.records.items()
        if any(logins.counts(login, now, window) for login in record.logins.values())
    }
    targets = {record.target for record in tried.values()} - {""}
    kept = {
        address: AddressRecord(logins=record.logins, pins=record.pins, target=record.target)
        for address, record in ledger.records.items()
        if address in tried or record.target in targets
    }
    return Ledger(records=kept)


def woken(ledger: Ledger, now: float) -> Ledger:
    """The ledger as a new process takes it up: store it before anything is tried. Notes a clock that went back. Where a
    sweep was cut off, the credentials that had worked may have been sent without a note: they count as attempted."""
    cut_off = bool(ledger.run) and not ledger.orderly
    records = {address: _woken(record, now, cut_off) for address, record in ledger.records.items()}
    if not ledger.orderly and all(records[address] is record for address, record in ledger.records.items()):
        return ledger
    return msgspec.structs.replace(ledger, records=records, orderly=False)


def siblings(ledger: Ledger) -> dict[str, tuple[str, ...]]:
    """By Target, the addresses that are known to be that device."""
    found: dict[str, list[str]] = {}
    for address in sorted(ledger.records):
        target = ledger.records[address].target
        if target:
            found.setdefault(target, []).append(address)
    return {target: tuple(addresses) for target, addresses in found.items()}


def _woken(record: AddressRecord, now: float, cut_off: bool) -> AddressRecord:
    if not record.logins:
        return record
    after = {protocol: _login_woken(login, now, cut_off) for protocol, login in record.logins.items()}
    if all(after[protocol] is login for protocol, login in record.logins.items()):
        return record
    return msgspec.structs.replace(record, logins=after)


def _login_woken(login: LoginRecord, now: float, cut_off: bool) -> LoginRecord:
    if cut_off and login.worked and login.pending in ("", login.worked):
        login = logins.attempted(login, login.worked, now)
    return logins.noticed(login, now)


def _is_locked(record: AddressRecord, now: float, window: float) -> bool:
    return any(logins.state(login, now, window) is not State.FREE for login in record.logins.values())


VERSION = 1
_MAGIC = b"TTDL"
_HEAD = struct.Struct(">4sBII")
_ENCODER = msgspec.msgpack.Encoder(order="sorted")
_DECODER = msgspec.msgpack.Decoder(Ledger)
