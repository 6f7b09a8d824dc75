"""SNMP messages: net-snmp reads ours and we read its, and nothing that a device sends breaks the reader."""

from __future__ import annotations

import random
import socket
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.lab.snmp_answers import Question, read_question, response
from trimtab.lab.snmpd import Snmpd
from trimtab.systems.discovery.identify import snmp_ber as ber
from trimtab.systems.discovery.identify.snmp_messages import (
    BadMessage,
    EngineId,
    engine_discovery,
    get_request,
    read_engine,
    read_response,
)
from trimtab.testing.ports import free_ports

ADDRESS = "127.44.3.1"
SYSTEM = ["1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.5.0"]

ANSWER = bytes.fromhex(  # snmpd 5.9, with another name
    "30819f02010104067075626c6963a281910202303902010002010030818430550608"
    "2b060102010101000449"
) + b"TiMOS-B-22.10.R1 both/x86_64 Nokia 7750 SR Copyright (c) 2000-2022 Nokia." + bytes.fromhex(
    "301606082b06010201010200060a2b06010401b27f010311301306082b060102010105000407726f7574657231"
)  # fmt: skip
REPORT = bytes.fromhex(
    "306b020103300e02014d020300ffe304010002010304213"
    "01f041180001f8880d0c643020f8ffa6a000000000201010201010400040004003033041180001f8880d0c643020f8ffa6a000000000400"
    "a81c02014d0201000201003011300f060a2b060106030f01010400410101"
)

arcs = st.integers(0, 0xFFFFFFFF)
oids = st.one_of(
    st.builds(
        lambda first, second, rest: [first, second, *rest], st.integers(0, 1), st.integers(0, 39), st.lists(arcs)
    ),
    st.builds(lambda second, rest: [2, second, *rest], arcs, st.lists(arcs, max_size=30)),
).map(lambda parts: ".".join(map(str, parts[:128])))
scalars = st.one_of(st.binary(max_size=300), st.integers(-(1 << 31), (1 << 31) - 1), oids, st.none())
request_ids = st.integers(-(1 << 31), (1 << 31) - 1)


@given(oids)
def test_an_object_identifier_survives_its_encoding(oid: str) -> None:
    assert ber.decoded_oid(ber.encoded_oid(oid)) == oid


@given(st.sampled_from(["v1", "v2c"]), st.binary(max_size=200), request_ids, st.lists(oids, max_size=20))
def test_an_agent_reads_what_we_ask(version: str, community: bytes, request_id: int, asked: list[str]) -> None:
    question = read_question(get_request(version, community, request_id, asked))  # type: ignore[arg-type]
    assert question == Question(0 if version == "v1" else 1, community, request_id, tuple(asked))


@given(request_ids, st.lists(st.tuples(oids, scalars), max_size=20), st.binary(max_size=8))
def test_we_read_what_an_agent_answers_whatever_follows_it(
    request_id: int, values: list[tuple[str, bytes | int | str | None]], padding: bytes
) -> None:
    answer = response(Question(1, b"public", request_id, ()), values) + padding
    read = read_response(answer)
    assert (read.request_id, read.error, read.values) == (request_id, 0, tuple(values))


def test_the_values_of_a_real_answer_are_typed() -> None:
    read = read_response(ANSWER)
    assert read.request_id == 12345
    assert [value for _, value in read.values] == [
        b"TiMOS-B-22.10.R1 both/x86_64 Nokia 7750 SR Copyright (c) 2000-2022 Nokia.",
        "1.3.6.1.4.1.6527.1.3.17",
        b"router1",
    ]


def test_a_real_report_tells_the_engine() -> None:
    assert read_engine(REPORT) == EngineId("80001f8880d0c643020f8ffa6a00000000", 1, 1, 77)


@pytest.mark.parametrize(
    ("tag", "content", "value"),
    [
        (0x02, b"\xff", -1),
        (0x41, b"\x00\xff\xff\xff\xff", 4294967295),
        (0x42, b"\xff\xff\xff\xff", 4294967295),
        (0x43, b"\x01\x00", 256),
        (0x46, b"\x00" + b"\xff" * 8, (1 << 64) - 1),
        (0x40, b"\x0a\x00\x00\x01", "10.0.0.1"),
        (0x44, b"\x9f\x78", b"\x9f\x78"),
        (0x80, b"", None),
        (0x81, b"", None),
        (0x82, b"", None),
        (0x05, b"", None),
    ],
)
def test_every_type_of_smiv2_has_its_value(tag: int, content: bytes, value: object) -> None:
    assert ber.value_of(tag, content) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        b"\x30\x80\x02\x01\x01\x00\x00",  # an indefinite length
        b"\x30\x85\x00\x00\x00\x00\x00",
        ANSWER[:-1],
        ANSWER.replace(b"\x02\x01\x01\x04\x06", b"\x02\x01\x03\x04\x06"),  # v3
        ANSWER.replace(b"\xa2\x81\x91", b"\xa0\x81\x91"),  # a question
        REPORT,
        b"\x30" * 2000,
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(BadMessage):
        read_response(data)


def test_an_answer_with_too_many_values_is_refused() -> None:
    with pytest.raises(BadMessage, match="more than 128"):
        read_response(response(Question(1, b"", 1, ()), [("1.3", 1)] * 129))


@pytest.mark.parametrize("oid", ["1", "3.1", "1.40", "1.3.4294967296", "1.-3", "1..3", "x"])
def test_what_is_no_object_identifier_is_not_asked(oid: str) -> None:
    with pytest.raises(ValueError, match=r"object identifier|invalid literal"):
        get_request("v2c", b"", 1, [oid])


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_response, read_engine):
        try:
            read(data)
        except BadMessage:
            continue


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_answer_is_read_or_refused(seed: int) -> None:
    numbers = random.Random(seed)
    for _ in range(4000):
        for good, read in ((ANSWER, read_response), (REPORT, read_engine)):
            data = bytearray(good)
            for _ in range(numbers.randint(1, 6)):
                data[numbers.randrange(len(data))] = numbers.randrange(256)
            del data[numbers.randrange(len(data)) if numbers.random() < 0.3 else len(data) :]
            try:
                read(bytes(data))
            except BadMessage:
                continue


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snmpd]:
    with Snmpd(
        tmp_path_factory.mktemp("snmpd"), free_ports(1)[0], address=ADDRESS, description="An old router", name="r1"
    ) as running:
        yield running


class TestNetSnmp:
    @pytest.mark.parametrize("version", ["v1", "v2c"])
    def test_gives_us_what_it_gives_its_own_client(self, agent: Snmpd, version: str) -> None:
        ours = read_response(_asked(agent, get_request(version, b"public", 7, SYSTEM)))  # type: ignore[arg-type]
        place = f"{ADDRESS}:{agent.port}"
        command = ["snmpget", f"-{version}", "-cpublic", "-Onqv", "-m", "", place, *SYSTEM]
        theirs = subprocess.run(command, capture_output=True, check=True).stdout.decode().splitlines()
        said = [value.decode() if isinstance(value, bytes) else f".{value}" for _, value in ours.values]
        assert said == [line.strip('"') for line in theirs]

    def test_says_which_objects_it_lacks(self, agent: Snmpd) -> None:
        asked = ["1.3.6.1.2.1.1.5.0", "1.3.6.1.4.1.4242.1"]
        assert read_response(_asked(agent, get_request("v2c", b"public", 7, asked))).values == (
            (asked[0], b"r1"),
            (asked[1], None),
        )
        assert read_response(_asked(agent, get_request("v1", b"public", 7, asked))).error == 2

    def test_tells_its_engine(self, agent: Snmpd) -> None:
        engine = read_engine(_asked(agent, engine_discovery(99)))
        assert engine is not None
        assert engine.message_id == 99
        got = read_response(_asked(agent, get_request("v2c", b"public", 7, ["1.3.6.1.6.3.10.2.1.1.0"])))
        assert got.values[0][1] == bytes.fromhex(engine.hex)


def _asked(agent: Snmpd, question: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.settimeout(5)
        wire.connect((ADDRESS, agent.port))
        wire.send(question)
        return wire.recv(65535)
