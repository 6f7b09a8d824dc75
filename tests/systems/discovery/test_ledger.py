"""What is known of each address, and how it is kept."""

import contextlib
import time
import zlib
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.ledger import records as module
from trimtab.systems.discovery.ledger.logins import LoginRecord, attempted, failed, succeeded
from trimtab.systems.discovery.ledger.records import (
    FORGOTTEN_AFTER,
    MAX_DETAIL,
    AddressRecord,
    Ledger,
    LedgerDamaged,
    Misses,
    counting,
    decode,
    encode,
    noted,
    siblings,
    trimmed,
    woken,
)

WINDOW = 900.0
NOW = 1_800_000_000.0

texts = st.text(max_size=20)
times = st.floats(0, 2e9)
logins = st.builds(
    LoginRecord,
    texts,
    texts,
    times,
    st.dictionaries(texts, times, max_size=3),
    st.tuples(times, times),
    st.booleans(),
    times,
)
records = st.builds(
    AddressRecord,
    st.sampled_from(list(Outcome)).map(int),
    texts,
    times,
    st.dictionaries(st.sampled_from(["gnmi", "ssh", "netconf", "snmp"]), logins, max_size=2),
    st.dictionaries(st.sampled_from(["gnmi", "ssh"]), texts, max_size=2),
    texts,
    times,
)
ledgers = st.builds(
    Ledger,
    records=st.dictionaries(texts, records, max_size=5),
    outcomes=st.binary(max_size=50),
    misses=st.dictionaries(texts, st.builds(Misses, st.integers(0, 9), times), max_size=3),
    scope=texts,
    run=texts,
    seed=st.integers(0, 2**63),
    position=st.integers(0, 2**40),
    closed_until=times,
    held=texts,
)


@given(ledgers)
def test_what_is_encoded_comes_back(ledger: Ledger) -> None:
    assert decode(encode(ledger)) == ledger


@given(ledgers, st.randoms(use_true_random=False))
def test_equal_ledgers_have_the_same_bytes(ledger: Ledger, chance: Random) -> None:
    items = list(ledger.records.items())
    chance.shuffle(items)
    assert encode(msgspec.structs.replace(ledger, records=dict(items))) == encode(ledger)


def test_an_empty_ledger_is_small() -> None:
    assert len(encode(Ledger())) < 64


def test_a_sweep_that_found_the_same_leaves_the_same_bytes() -> None:
    def swept(before: Ledger, now: float) -> Ledger:
        record = before.records.get("10.0.0.1", AddressRecord())
        login = record.logins.get("ssh", LoginRecord())
        login = succeeded(attempted(login, "admin", now), "admin", now + 1)
        record = msgspec.structs.replace(
            noted(record, Outcome.IDENTIFIED, "ssh: it said what it is, by profile p", now), logins={"ssh": login}
        )
        return Ledger(records={"10.0.0.1": record}, outcomes=bytes([Outcome.IDENTIFIED, Outcome.SILENT]), scope="s")

    first = swept(Ledger(), NOW)
    assert encode(swept(first, NOW + 60)) == encode(first)


def test_an_outcome_that_changes_has_a_new_time() -> None:
    record = noted(None, Outcome.IDENTIFIED, "fine", 1)
    assert noted(record, Outcome.TIMED_OUT, "slow", 2) == AddressRecord(outcome=Outcome.TIMED_OUT, detail="slow", at=2)
    assert noted(record, Outcome.IDENTIFIED, "fine", 2) is record


def test_details_are_bounded() -> None:
    record = noted(None, Outcome.PROTOCOL_ERROR, "x" * 100_000, 1)
    assert len(record.detail) == MAX_DETAIL
    assert noted(record, Outcome.PROTOCOL_ERROR, "x" * 100_000, 2) is record


class TestDamage:
    GOOD = encode(Ledger(records={"10.0.0.1": AddressRecord(outcome=17, detail="x")}, outcomes=bytes(100)))

    @pytest.mark.parametrize("size", range(0, len(GOOD), 7))
    def test_a_ledger_that_is_cut_off_is_told(self, size: int) -> None:
        with pytest.raises(LedgerDamaged):
            decode(self.GOOD[:size])

    @settings(max_examples=60)
    @given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
    def test_a_byte_that_changed_is_told(self, place: int, change: int) -> None:
        bad = bytearray(self.GOOD)
        bad[place] ^= change
        with contextlib.suppress(LedgerDamaged):
            assert decode(bytes(bad)) == decode(self.GOOD)

    @given(st.binary(max_size=200))
    def test_garbage_is_told(self, data: bytes) -> None:
        with pytest.raises(LedgerDamaged):
            decode(data)

    def test_bytes_after_the_end_are_told(self) -> None:
        with pytest.raises(LedgerDamaged):
            decode(self.GOOD + b"x")

    def test_a_newer_version_asks_for_an_upgrade(self) -> None:
        newer = bytearray(self.GOOD)
        newer[4] = 99
        with pytest.raises(LedgerDamaged, match="upgrade"):
            decode(bytes(newer))

    def test_a_bomb_is_not_unfolded(self) -> None:
        bomb = zlib.compress(bytes(50 << 20), 9)
        with pytest.raises(LedgerDamaged):
            decode(module._HEAD.pack(b"TTDL", 1, 100, 0) + bomb)

    def test_a_size_that_is_beyond_reason_is_refused_before_it_is_read(self) -> None:
        with pytest.raises(LedgerDamaged, match="most"):
            decode(module._HEAD.pack(b"TTDL", 1, 0xFFFFFFFF, 0))

    def test_another_type_inside_is_told(self) -> None:
        body = msgspec.msgpack.encode({"records": [1, 2]})
        data = module._HEAD.pack(b"TTDL", 1, len(body), zlib.crc32(body)) + zlib.compress(body)
        with pytest.raises(LedgerDamaged):
            decode(data)


class TestTrimming:
    RECORD = AddressRecord(outcome=Outcome.IDENTIFIED, at=1)

    def test_what_is_in_scope_stays(self) -> None:
        ledger = Ledger(records={"a": self.RECORD})
        assert trimmed(ledger, {"a"}.__contains__, NOW, WINDOW) is ledger

    def test_what_left_the_scope_is_forgotten_after_thirty_days(self) -> None:
        ledger = trimmed(Ledger(records={"a": self.RECORD}), set().__contains__, NOW, WINDOW)
        assert "a" in ledger.records
        assert trimmed(ledger, set().__contains__, NOW + FORGOTTEN_AFTER - 1, WINDOW) is ledger
        assert not trimmed(ledger, set().__contains__, NOW + FORGOTTEN_AFTER, WINDOW).records

    def test_what_came_back_into_scope_counts_anew(self) -> None:
        ledger = trimmed(Ledger(records={"a": self.RECORD}), set().__contains__, NOW, WINDOW)
        ledger = trimmed(ledger, {"a"}.__contains__, NOW + FORGOTTEN_AFTER - 1, WINDOW)
        assert ledger.records["a"].gone == 0

    def test_a_login_window_that_is_open_is_not_forgotten(self) -> None:
        late = NOW + FORGOTTEN_AFTER
        locked = failed(LoginRecord(), "admin", late - 10)
        record = msgspec.structs.replace(self.RECORD, gone=NOW, logins={"ssh": locked})
        ledger = Ledger(records={"a": record})
        assert trimmed(ledger, set().__contains__, late, WINDOW) is ledger
        assert not trimmed(ledger, set().__contains__, late + WINDOW, WINDOW).records


class TestWaking:
    WORKED = succeeded(LoginRecord(), "admin", 0)

    def test_after_a_clean_end_nothing_changes(self) -> None:
        ledger = Ledger(records={"a": AddressRecord(logins={"ssh": self.WORKED})})
        assert woken(ledger, NOW) is ledger

    def test_after_a_sweep_that_was_cut_off_what_worked_counts_as_attempted(self) -> None:
        ledger = Ledger(run="r", records={"a": AddressRecord(logins={"ssh": self.WORKED})})
        assert woken(ledger, NOW).records["a"].logins["ssh"] == attempted(self.WORKED, "admin", NOW)

    def test_a_clock_that_went_back_is_noted(self) -> None:
        ledger = Ledger(records={"a": AddressRecord(logins={"ssh": failed(LoginRecord(), "x", NOW + 99)})})
        assert woken(ledger, NOW).records["a"].logins["ssh"].back == NOW


def test_addresses_of_one_target_are_one_device() -> None:
    targets = {"10.0.0.2": "leaf1", "10.0.0.1": "leaf1", "10.0.0.3": "leaf2", "10.0.0.4": ""}
    ledger = Ledger(records={address: AddressRecord(target=target) for address, target in targets.items()})
    assert siblings(ledger) == {"leaf1": ("10.0.0.1", "10.0.0.2"), "leaf2": ("10.0.0.3",)}


class TestCounting:
    """What is left of a rule that sweeps no more."""

    REFUSED = failed(LoginRecord(), "x", NOW)

    def test_what_devices_may_count_stays_with_the_key_and_the_other_addresses_of_the_device(self) -> None:
        refused = AddressRecord(detail="no", logins={"ssh": self.REFUSED}, pins={"ssh": "key"}, target="leaf1")
        other, stranger = AddressRecord(target="leaf1"), AddressRecord(logins={"ssh": LoginRecord(worked="x")})
        ledger = Ledger(records={"a": refused, "b": other, "c": stranger}, outcomes=b"abc")
        left = counting(ledger, NOW, 900)
        assert left.records == {"a": msgspec.structs.replace(refused, detail=""), "b": other}
        assert left.outcomes == b""

    def test_a_refusal_counts_though_the_credential_was_accepted_since(self) -> None:
        login = succeeded(attempted(self.REFUSED, "x", NOW), "x", NOW)
        assert counting(Ledger(records={"a": AddressRecord(logins={"ssh": login})}), NOW, 900).records

    def test_nothing_counts_after_the_window(self) -> None:
        ledger = Ledger(records={"a": AddressRecord(logins={"ssh": self.REFUSED})})
        assert not counting(ledger, NOW + 900, 900).records


def large() -> Ledger:
    chance = Random(7)
    found = {}
    outcomes = bytearray([Outcome.SILENT]) * 65536
    for position in chance.sample(range(65536), 4096):
        outcomes[position] = Outcome.IDENTIFIED
        pin = "SHA256:" + chance.randbytes(32).hex()[:43]
        found[f"10.77.{position // 256}.{position % 256}"] = AddressRecord(
            outcome=Outcome.IDENTIFIED,
            detail="ssh: it said what it is, by profile default",
            at=NOW + chance.random() * 1e5,
            logins={"ssh": LoginRecord(worked="network-admin", failed={"old-admin": NOW - chance.random() * 1e5})},
            pins={"ssh": pin},
            target=f"leaf{position}.example.com",
        )
    return Ledger(records=found, outcomes=bytes(outcomes), scope="d" * 32)


def test_a_sixteen_with_4096_devices_is_under_400_kilobytes() -> None:
    assert len(encode(large())) < 400_000


def test_a_sixteen_with_4096_devices_is_encoded_and_decoded_in_50_milliseconds() -> None:
    ledger = large()
    best = min(_seconds(ledger) for _ in range(10))
    assert best < 0.05


def _seconds(ledger: Ledger) -> float:
    start = time.process_time()
    decode(encode(ledger))
    return time.process_time() - start
