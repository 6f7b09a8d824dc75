"""When two answers come from one device."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.names import label_value_problems
from trimtab.systems.discovery.kinds import Evidence
from trimtab.systems.discovery.targets.identity import KINDS, Verdict, cleaned, compare, key, merged, strongest

PLACEHOLDERS = [
    "UNKNOWN", "unknown", "N/A", "n/a", "None", "NULL", "0", "0000", "00000000", "0000-0000", "1234567890", "123456789",
    "0123456789", "12345678", "To be filled by O.E.M.", "To Be Filled By O.E.M", "Default string", "Not Specified",
    "System Serial Number", "Not Available", "not applicable", "XXXXXXXX", "FFFFFFFF", "-", "--------", "........", "",
    "   ", "Serial Number", "none", "NA", "empty", "x", "S" * 129, "noSuchInstance", "ABCDEFGH",
]  # fmt: skip


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_a_placeholder_is_no_serial_number(text: str) -> None:
    assert not cleaned(Evidence(serial_number=text)).serial_number


@pytest.mark.parametrize("text", ["FOC1234X0AB", "JN11D3A9FAFA", "NS2004T0012", "SSJ17420456", "12345678-A", "9XK1"])
def test_a_real_serial_number_stays(text: str) -> None:
    assert cleaned(Evidence(serial_number=text)).serial_number == text


def test_serial_numbers_have_one_spelling() -> None:
    one, other = Evidence(serial_number=" foc1234x0ab "), Evidence(serial_number="FOC1234X0AB")
    assert cleaned(one) == cleaned(other)


@pytest.mark.parametrize(
    "text",
    [
        "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "33:33:00:00:00:01", "00:00:5e:00:01:0a",
        "00:00:0c:07:ac:01", "00:11:22:33:44", "not a mac", "", "00:00:00:00:00:00:00:01",
    ],
)  # fmt: skip
def test_a_mac_address_that_nobody_owns_alone_is_no_evidence(text: str) -> None:
    assert not cleaned(Evidence(mac_address=text)).mac_address


@pytest.mark.parametrize("text", ["1A:B1:05:FF:00:00", "1ab1.05ff.0000", "1a-b1-05-ff-00-00", "0x1ab105ff0000"])
def test_mac_addresses_have_one_spelling(text: str) -> None:
    assert cleaned(Evidence(mac_address=text)).mac_address == "1a:b1:05:ff:00:00"


@pytest.mark.parametrize(
    "text",
    [
        "", "00", "0000000000", "ffffffffffffffffffffff", "8000000903000000000000", "80001f8803ffffffffffff",
        "80001f88017f000001", "80001f880100000000", "80001f8802" + "0" * 31 + "1", "80001f8804" + b"localhost".hex(),
        "80001f88", "80" * 33, "zz001f8880", "80001f8880000000000000000000", "000000090000000000000000",
    ],
)  # fmt: skip
def test_an_engine_id_that_many_have_is_no_evidence(text: str) -> None:
    assert not cleaned(Evidence(engine_id=text)).engine_id


@pytest.mark.parametrize(
    "text", ["80001f8880e9630000d61ff449", "0x80 00 1F 88 80 E9 63 00 00 D6 1F F4 49", "80:00:1f:88:80:e9:63:00:00:d6:1f:f4:49"]
)  # fmt: skip
def test_engine_ids_have_one_spelling(text: str) -> None:
    assert cleaned(Evidence(engine_id=text)).engine_id == "80001f8880e9630000d61ff449"


@pytest.mark.parametrize(
    "text",
    [
        "localhost", "LOCALHOST", "localhost.localdomain", "router", "Router", "switch", "(none)", "none", "", "  ", ".",
        "10.1.2.3", "2001:db8::1", "unknown", "h" * 254,
    ],
)  # fmt: skip
def test_a_default_host_name_is_no_evidence(text: str) -> None:
    assert not cleaned(Evidence(hostname=text)).hostname


def test_host_names_have_one_spelling() -> None:
    assert cleaned(Evidence(hostname=" Leaf1.Example.COM. ")).hostname == "leaf1.example.com"


def test_cleaning_twice_is_cleaning_once() -> None:
    once = cleaned(SPINE)
    assert cleaned(once) == once
    assert strongest(once) == "serial_number"


SPINE = Evidence(
    serial_number="FOC1234X0AB",
    engine_id="80001f8880e9630000d61ff449",
    ssh_host_key="SHA256:" + "a" * 43,
    tls_key="SHA256:" + "b" * 43,
    mac_address="1a:b1:05:ff:00:00",
    hostname="spine1",
)


def test_the_strongest_kind_that_both_have_decides() -> None:
    assert compare(Evidence(serial_number="AAA1", hostname="h"), Evidence(serial_number="AAA2", hostname="h")) is (
        Verdict.DIFFERENT
    )
    assert compare(Evidence(serial_number="AAA1", hostname="h"), Evidence(hostname="h")) is Verdict.SAME


def test_another_host_name_is_no_other_device() -> None:
    assert compare(SPINE, SPINE.replace(hostname="renamed")) is Verdict.SAME


@pytest.mark.parametrize("kind", KINDS[1:5])
def test_an_equal_serial_number_beside_another_hard_kind_is_a_conflict(kind: str) -> None:
    assert compare(SPINE, SPINE.replace(**{kind: "another"})) is Verdict.CONFLICT


def test_nothing_in_common_tells_nothing() -> None:
    assert compare(Evidence(serial_number="AAA1"), Evidence(hostname="h")) is Verdict.UNKNOWN
    assert compare(Evidence(), Evidence()) is Verdict.UNKNOWN


def test_the_newer_word_counts_and_the_rest_stays() -> None:
    known = Evidence(serial_number="AAA1", hostname="old")
    assert merged(known, Evidence(hostname="new")) == Evidence(serial_number="AAA1", hostname="new")
    assert merged(known, Evidence()) is known


evidence = st.builds(
    Evidence,
    serial_number=st.sampled_from(["FOC1", "FOC2", ""]),
    engine_id=st.sampled_from(["80001f8880e9630000d61ff449", "80001f8880e9630000d61ff44a", ""]),
    ssh_host_key=st.sampled_from(["SHA256:" + "a" * 43, "SHA256:" + "b" * 43, ""]),
    mac_address=st.sampled_from(["1a:b1:05:ff:00:00", "1a:b1:05:ff:00:01", ""]),
    hostname=st.text(max_size=20),
)


@given(evidence, evidence)
def test_the_verdict_does_not_depend_on_who_is_asked_first(one: Evidence, other: Evidence) -> None:
    one, other = cleaned(one), cleaned(other)
    assert compare(one, other) is compare(other, one)


@given(evidence)
def test_every_device_with_evidence_is_itself(one: Evidence) -> None:
    one = cleaned(one)
    assert compare(one, one) is (Verdict.SAME if strongest(one) else Verdict.UNKNOWN)


@given(evidence, st.sampled_from(["10.0.0.1", "2001:db8::1", "::1", "a.example.com", "x" * 253]), st.booleans())
def test_a_key_is_a_label_value(one: Evidence, address: str, whole: bool) -> None:
    made = key(cleaned(one), address, whole=whole)
    assert made
    assert not label_value_problems(made)


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_whatever_devices_say_can_be_cleaned(serial: str, engine: str, mac: str, name: str) -> None:
    once = cleaned(Evidence(serial_number=serial, engine_id=engine, mac_address=mac, hostname=name, tls_key=serial))
    assert cleaned(once) == once


def test_a_key_follows_the_strongest_evidence_alone() -> None:
    assert key(SPINE, "10.0.0.1") == key(SPINE.replace(hostname="renamed", tls_key="other"), "10.0.0.9")


def test_keys_of_clones_differ_when_made_of_the_whole() -> None:
    clone = SPINE.replace(mac_address="1a:b1:05:ff:00:01")
    assert key(SPINE, "10.0.0.1", whole=True) != key(clone, "10.0.0.1", whole=True)


def test_without_evidence_the_address_is_the_key() -> None:
    assert key(Evidence(), "10.0.0.1") == "10.0.0.1"
