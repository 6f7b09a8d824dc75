"""Identification by SNMP, against Debian's snmpd and a simulated agent with bad habits."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET

from trimtab.lab.snmp import Fault, Personality, SnmpDevice
from trimtab.lab.snmp_answers import Question, Scalar, read_question, response
from trimtab.lab.snmpd import Snmpd, SnmpUser
from trimtab.model.duration import Duration
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Access, Identified, Login, NotIdentified, Outcome
from trimtab.systems.discovery.identify import snmp_login
from trimtab.systems.discovery.identify.snmp import SnmpIdentifier
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    SnmpOid,
    SnmpVendor,
    TargetConnectionProfileSpec,
)
from trimtab.systems.discovery.vendors.choice import Vendors
from trimtab.testing.ports import free_ports

REAL = "127.44.1.1"
SIMULATED = "127.44.2.1"
DESCRIPTION = "TiMOS-B-22.10.R1 both/x86_64 Nokia 7750 SR Copyright (c) 2000-2022 Nokia."
SERIAL = "1.3.6.1.4.1.6527.3.1.2.2.1.8.1.5.1.134217729"
SYS_DESCR = "1.3.6.1.2.1.1.1.0"

USERS = (
    SnmpUser(name="sealed", auth_password="correct horse", priv_password="battery staple"),
    SnmpUser(name="sha256", auth_protocol="SHA-256", auth_password="correct horse", priv_password="battery staple"),
    SnmpUser(name="sha512", auth_protocol="SHA-512", auth_password="correct horse", priv_password="battery staple"),
    SnmpUser(name="md5des", auth_protocol="MD5", auth_password="correct horse", priv_protocol="DES",
             priv_password="battery staple"),
    SnmpUser(name="signed", auth_password="correct horse"),
    SnmpUser(name="open"),
)  # fmt: skip


def vendor(name: str, **fields: object) -> DiscoveryVendorProfile:
    return DiscoveryVendorProfile(
        metadata=ObjectMeta(name=name), spec=DiscoveryVendorProfileSpec(snmp=SnmpVendor(**fields))
    )


VENDORS = Vendors(
    [
        vendor(
            "sros.nokia",
            object_id="1.3.6.1.4.1.6527.1.3",
            oids=(
                SnmpOid(key="version", oid=SYS_DESCR, regex=r"TiMOS-\w-(\S+)"),
                SnmpOid(key="platform", oid=SYS_DESCR, regex=r"Nokia (\d+ \w+)"),
            ),
        ),
        vendor("asks.more", object_id="1.3.6.1.4.1.99999", oids=(SnmpOid(key="serialNumber", oid=SERIAL),)),
    ]
)


@pytest.fixture(scope="module")
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Snmpd]:
    directory: Path = tmp_path_factory.mktemp("snmpd")
    with Snmpd(
        directory, port, address=REAL, users=USERS, description=DESCRIPTION, object_id="1.3.6.1.4.1.6527.1.3.17",
        name="core1",
    ) as running:  # fmt: skip
        yield running


@pytest.fixture
def identifier() -> SnmpIdentifier:
    return SnmpIdentifier(VENDORS, numbers=random.Random(1))


def login(**values: str) -> Login:
    return Login("lab", {key.replace("_", "-"): Redacted(value) for key, value in values.items()})


PUBLIC = login(community="public")
SEALED = login(
    snmp_user="sealed", auth_protocol="SHA", auth_password="correct horse", priv_protocol="AES",
    priv_password="battery staple",
)  # fmt: skip


def access(
    port: int, credential: Login = PUBLIC, *, address: str = SIMULATED, answer: bytes = b"", **profile: object
) -> Access:
    settings = {"timeout": Duration("600ms"), "port": port, **profile}
    return Access(
        address=address,
        profile=TargetConnectionProfileSpec(protocol="snmp", **settings),
        login=credential,
        answer=answer,
    )


def probed(identifier: SnmpIdentifier, asked: Access) -> bytes:
    """What the sweep would hear."""
    payload, accepts = identifier.probe(asked.login, asked.profile)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sweep:
        sweep.settimeout(2)
        sweep.sendto(payload, (asked.address, asked.profile.used_port))
        answer = sweep.recv(65535)
    assert accepts(answer)
    return answer


async def refused(identifier: SnmpIdentifier, asked: Access) -> NotIdentified:
    with pytest.raises(NotIdentified) as caught:
        await identifier.identify(asked)
    return caught.value


def assert_core1(found: Identified) -> None:
    assert found.info.provider == "sros.nokia"
    assert found.info.protocol == "snmp"
    assert found.info.version == "22.10.R1"
    assert found.info.platform == "7750 SR"
    assert found.info.hostname == "core1"
    assert isinstance(found.evidence.engine_id, str)
    assert found.evidence.engine_id.startswith("80001f88")
    assert found.tied == ()


class TestARealAgent:
    @pytest.mark.parametrize("version", ["v2c", UNSET])
    async def test_is_identified_by_its_community(
        self, agent: Snmpd, port: int, identifier: SnmpIdentifier, version: str
    ) -> None:
        assert_core1(await identifier.identify(access(port, address=REAL, snmp_version=version)))

    async def test_is_identified_by_v1(self, agent: Snmpd, port: int, identifier: SnmpIdentifier) -> None:
        found = await identifier.identify(access(port, address=REAL, snmp_version="v1"))
        assert (found.info.provider, found.info.version) == ("sros.nokia", "22.10.R1")

    async def test_is_identified_by_the_answer_to_the_probe_alone(
        self, agent: Snmpd, port: int, identifier: SnmpIdentifier
    ) -> None:
        answer = probed(identifier, access(port, address=REAL))
        assert_core1(await identifier.identify(access(1, address="127.44.9.9", answer=answer)))

    @pytest.mark.parametrize(
        "credential",
        [
            SEALED,
            login(snmp_user="signed", auth_protocol="sha1", auth_password="correct horse"),
            login(snmp_user="open"),
            login(
                snmp_user="md5des", auth_protocol="MD5", auth_password="correct horse", priv_protocol="DES",
                priv_password="battery staple",
            ),
            login(
                snmp_user="sha256", auth_protocol="SHA-256", auth_password="correct horse", priv_protocol="AES-128",
                priv_password="battery staple",
            ),
            login(
                snmp_user="sha512", auth_protocol="SHA512", auth_password="correct horse", priv_protocol="AES",
                priv_password="battery staple",
            ),
        ],
        ids=lambda credential: credential.values["snmp-user"].reveal(),
    )  # fmt: skip
    @pytest.mark.parametrize("swept", [True, False], ids=["probed", "unprobed"])
    async def test_is_identified_as_a_user_of_v3(
        self, agent: Snmpd, port: int, identifier: SnmpIdentifier, credential: Login, swept: bool
    ) -> None:
        asked = access(port, credential, address=REAL)
        answer = probed(identifier, asked) if swept else b""
        assert_core1(await identifier.identify(access(port, credential, address=REAL, answer=answer)))

    async def test_that_hears_a_wrong_community_is_silent(
        self, agent: Snmpd, port: int, identifier: SnmpIdentifier
    ) -> None:
        failure = await refused(identifier, access(port, login(community="secret-guess"), address=REAL))
        assert failure.outcome is Outcome.TIMED_OUT
        assert "wrong community" in failure.detail
        assert "Secret lab" in failure.detail
        assert "secret-guess" not in failure.detail

    @pytest.mark.parametrize(
        "changed",
        [
            {"snmp_user": "nobody"},
            {"auth_password": "wrong horse"},
            {"auth_protocol": "MD5"},
            {"priv_protocol": "", "priv_password": ""},
        ],
        ids=["unknown user", "wrong digest", "wrong protocol", "no privacy"],
    )
    async def test_that_refuses_a_user_is_present_and_not_authenticated(
        self, agent: Snmpd, port: int, identifier: SnmpIdentifier, changed: dict[str, str]
    ) -> None:
        values = {key: value.reveal() for key, value in SEALED.values.items()}
        values.update({key.replace("_", "-"): value for key, value in changed.items()})
        credential = Login("lab", {key: Redacted(value) for key, value in values.items()})
        answer = probed(identifier, access(port, credential, address=REAL))
        failure = await refused(identifier, access(port, credential, address=REAL, answer=answer))
        assert failure.outcome is Outcome.AUTHENTICATION_FAILED
        assert "Secret lab" in failure.detail
        assert not any(secret in failure.detail for secret in ("horse", "staple"))

    async def test_gets_no_credential_of_v3_that_is_not_admitted_by_its_engine(
        self, agent: Snmpd, port: int, identifier: SnmpIdentifier
    ) -> None:
        shown: list[str] = []

        async def admit(key: str) -> None:
            shown.append(key)
            raise NotIdentified(Outcome.WAITING, "not now")

        asked = msgspec.structs.replace(access(port, SEALED, address=REAL), admit=admit)
        failure = await refused(identifier, asked)
        assert (failure.outcome, failure.login) == (Outcome.WAITING, "unsent")
        found = await identifier.identify(access(port, SEALED, address=REAL))
        assert shown == [found.evidence.engine_id]

    async def test_is_not_asked_with_a_secret_that_makes_no_user(self, port: int, identifier: SnmpIdentifier) -> None:
        credential = Login("lab", {**SEALED.values, "auth-protocol": Redacted("ROT13")})
        failure = await refused(identifier, access(port, credential, address=REAL, answer=b"x"))
        assert (failure.outcome, failure.login) == (Outcome.OPEN, "unsent")
        assert "auth-protocol" in failure.detail
        assert snmp_login.problem(credential, access(port).profile) in failure.detail

    async def test_that_cannot_decrypt_what_we_ask_is_told_from_one_that_died(
        self, agent: Snmpd, port: int, identifier: SnmpIdentifier
    ) -> None:
        credential = Login("lab", {**SEALED.values, "priv-password": Redacted("wrong staple")})
        answer = probed(identifier, access(port, credential, address=REAL))
        failure = await refused(identifier, access(port, credential, address=REAL, answer=answer))
        assert failure.outcome is Outcome.AUTHENTICATION_FAILED
        assert "priv-password" in failure.detail

    async def test_that_shows_no_system_group_says_what_to_allow(
        self, tmp_path: Path, identifier: SnmpIdentifier
    ) -> None:
        (other,) = free_ports(1)
        with Snmpd(tmp_path, other, address=REAL, view=".1.3.6.1.2.1.11"):
            failure = await refused(identifier, access(other, address=REAL))
        assert failure.outcome is Outcome.PROTOCOL_ERROR
        assert "1.3.6.1.2.1.1" in failure.detail

    async def test_answers_on_ipv6(self, tmp_path: Path, identifier: SnmpIdentifier) -> None:
        (other,) = free_ports(1)
        with Snmpd(tmp_path, other, address="::1", name="six"):
            found = await identifier.identify(access(other, address="::1"))
        assert found.info.hostname == "six"


class Damaging(asyncio.DatagramProtocol):
    """Hands questions to a real agent; keeps only so many octets of the answer to the question of this number."""

    def __init__(self, agent: Snmpd, number: int, octets: int) -> None:
        self._agent, self._left, self._octets = agent, number, octets
        self.questions: list[bytes] = []

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        self.questions.append(data)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
            wire.settimeout(5)
            wire.sendto(data, (self._agent.address, self._agent.port))
            answer = wire.recv(65535)
        damaged = len(self.questions) == self._left
        self._transport.sendto(answer[: self._octets] if damaged else answer, sender)


class TestAnAgentOfV3WhoseAnswersAreDamaged:
    @pytest.mark.parametrize("octets", [1, 2, 3, 5, 6, 11, 17, 24, 48, 90])
    @pytest.mark.parametrize("number", [1, 2, 3], ids=["engine", "time", "objects"])
    async def test_breaks_the_protocol_and_nothing_else(
        self, agent: Snmpd, identifier: SnmpIdentifier, number: int, octets: int
    ) -> None:
        loop = asyncio.get_running_loop()
        transport, damaging = await loop.create_datagram_endpoint(
            lambda: Damaging(agent, number, octets), local_addr=(SIMULATED, 0)
        )
        try:
            asked = access(transport.get_extra_info("sockname")[1], SEALED)
            failure = await refused(identifier, asked)
        finally:
            transport.close()
        assert failure.outcome is Outcome.PROTOCOL_ERROR
        assert failure.login == ("unsent" if number == 1 else "unknown")
        assert len(damaging.questions) == number

    async def test_gets_its_user_in_the_second_question_and_not_before(
        self, agent: Snmpd, identifier: SnmpIdentifier
    ) -> None:
        loop = asyncio.get_running_loop()
        transport, honest = await loop.create_datagram_endpoint(
            lambda: Damaging(agent, 0, 0), local_addr=(SIMULATED, 0)
        )
        try:
            assert_core1(await identifier.identify(access(transport.get_extra_info("sockname")[1], SEALED)))
        finally:
            transport.close()
        assert [b"sealed" in question for question in honest.questions] == [False, True, True]


class _Nameless(Personality, frozen=True, kw_only=True):
    """A device without sysName."""

    def objects(self) -> dict[str, Scalar]:
        return {oid: value for oid, value in super().objects().items() if oid != "1.3.6.1.2.1.1.5.0"}


class TestASimulatedAgent:
    async def test_that_its_profile_asks_nothing_more_gets_one_packet(
        self, port: int, identifier: SnmpIdentifier
    ) -> None:
        face = Personality(object_id="1.3.6.1.4.1.6527.1.3.17", description=DESCRIPTION, name="r1")
        async with SnmpDevice({SIMULATED: face}, port) as device:
            await identifier.identify(access(port))
        assert device.asked == {SIMULATED: 1}

    async def test_gets_one_more_packet_for_all_objects_of_its_profile(
        self, port: int, identifier: SnmpIdentifier
    ) -> None:
        bridge = bytes.fromhex("001a2b3c4d5e")
        face = Personality(object_id="1.3.6.1.4.1.99999.1", more={SERIAL: b"NS1234", "1.3.6.1.2.1.17.1.1.0": bridge})
        async with SnmpDevice({SIMULATED: face}, port) as device:
            found = await identifier.identify(access(port))
        assert device.asked == {SIMULATED: 2}
        assert found.info.provider == "asks.more"
        assert found.evidence.serial_number == found.info.serial_number == "NS1234"
        assert found.evidence.mac_address == found.info.mac_address == "00:1a:2b:3c:4d:5e"

    async def test_that_no_profile_knows_tells_its_chassis(self, port: int, identifier: SnmpIdentifier) -> None:
        entity = "1.3.6.1.2.1.47.1.1.1.1"
        face = Personality(
            object_id="1.3.6.1.4.1.4242.1", name="odd", engine_id=b"\x80\x00\x10\x92\x03\x01\x02",
            more={f"{entity}.5.1": 3, f"{entity}.11.1": b"CH-7"},
        )  # fmt: skip
        async with SnmpDevice({SIMULATED: face}, port) as device:
            found = await identifier.identify(access(port))
        assert device.asked == {SIMULATED: 2}
        assert found.info.provider is UNSET
        assert found.evidence.serial_number == "CH-7"
        assert found.evidence.engine_id == "80001092030102"
        assert found.evidence.hostname == "odd"

    async def test_whose_first_entity_is_no_chassis_has_no_serial_number(
        self, port: int, identifier: SnmpIdentifier
    ) -> None:
        entity = "1.3.6.1.2.1.47.1.1.1.1"
        face = Personality(object_id="1.3.6.1.4.1.4242.1", more={f"{entity}.5.1": 9, f"{entity}.11.1": b"MODULE"})
        async with SnmpDevice({SIMULATED: face}, port):
            found = await identifier.identify(access(port))
        assert found.evidence.serial_number is UNSET

    async def test_of_v1_that_lacks_an_object_is_asked_one_by_one(self, port: int) -> None:
        oids = (SnmpOid(key="platform", oid="1.3.6.1.4.1.99999.7.0"), SnmpOid(key="serialNumber", oid=SERIAL))
        identifier = SnmpIdentifier(Vendors([vendor("old", object_id="1.3.6.1.4.1.99999", oids=oids)]))
        face = Personality(object_id="1.3.6.1.4.1.99999.1", more={SERIAL: b"OLD1"})
        async with SnmpDevice({SIMULATED: face}, port) as device:
            found = await identifier.identify(access(port, snmp_version="v1"))
        assert found.info.serial_number == "OLD1"
        assert found.info.platform is UNSET
        assert device.asked == {SIMULATED: 4}

    @pytest.mark.parametrize("error", [6, 16], ids=["noAccess", "authorizationError"])
    async def test_that_says_we_may_not_is_not_authenticated(
        self, port: int, identifier: SnmpIdentifier, error: int
    ) -> None:
        async with SnmpDevice({SIMULATED: Personality(error=error)}, port):
            failure = await refused(identifier, access(port))
        assert failure.outcome is Outcome.AUTHENTICATION_FAILED

    @pytest.mark.parametrize("fault", [Fault.GARBAGE, Fault.TRUNCATED])
    @pytest.mark.parametrize("swept", [True, False], ids=["probed", "unprobed"])
    async def test_that_sends_garbage_is_present_and_breaks_the_protocol(
        self, port: int, identifier: SnmpIdentifier, fault: Fault, swept: bool
    ) -> None:
        async with SnmpDevice({SIMULATED: Personality(fault=fault)}, port):
            answer = b"\x30\x03\x02\x01" if swept else b""
            failure = await refused(identifier, access(port, answer=answer))
        assert failure.outcome is Outcome.PROTOCOL_ERROR
        assert "not valid SNMP" in failure.detail

    async def test_that_loses_a_datagram_is_asked_again(self, port: int, identifier: SnmpIdentifier) -> None:
        face = Personality(fault=Fault.DROPS_FIRST, object_id="1.3.6.1.4.1.6527.1.3.17", name="lossy")
        async with SnmpDevice({SIMULATED: face}, port):
            found = await identifier.identify(access(port, timeout=Duration("400ms")))
        assert found.info.hostname == "lossy"

    async def test_that_answers_from_another_port_is_not_heard(self, port: int, identifier: SnmpIdentifier) -> None:
        async with SnmpDevice({SIMULATED: Personality(fault=Fault.OTHER_PORT)}, port):
            failure = await refused(identifier, access(port, timeout=Duration("200ms")))
        assert failure.outcome is Outcome.TIMED_OUT

    async def test_that_falls_silent_after_the_probe_timed_out(self, port: int, identifier: SnmpIdentifier) -> None:
        face = Personality(fault=Fault.SILENT_AFTER_FIRST, object_id="1.3.6.1.4.1.99999.1")
        async with SnmpDevice({SIMULATED: face}, port) as device:
            first = access(port, timeout=Duration("200ms"))
            failure = await refused(identifier, access(port, timeout=Duration("200ms"), answer=_from(device, first)))
        assert failure.outcome is Outcome.TIMED_OUT

    async def test_that_is_slower_than_the_timeout_timed_out(self, port: int, identifier: SnmpIdentifier) -> None:
        face = Personality(fault=Fault.SLOW, delay=5.0)
        async with SnmpDevice({SIMULATED: face}, port):
            failure = await refused(identifier, access(port, timeout=Duration("100ms")))
        assert failure.outcome is Outcome.TIMED_OUT

    async def test_that_answers_each_of_many_questions_late_is_given_up(self, port: int) -> None:
        oids = tuple(SnmpOid(key="platform", oid=f"1.3.6.1.4.1.99999.{number}") for number in range(1, 30))
        identifier = SnmpIdentifier(Vendors([vendor("old", object_id="1.3.6.1.4.1.99999", oids=oids)]))
        face = Personality(object_id="1.3.6.1.4.1.99999.1", fault=Fault.SLOW, delay=0.06)
        async with SnmpDevice({SIMULATED: face}, port):
            asked = access(port, snmp_version="v1", timeout=Duration("80ms"), probe_retries=0)
            failure = await refused(identifier, asked)
        assert failure.outcome is Outcome.TIMED_OUT
        assert "slowly" in failure.detail

    async def test_of_v3_that_is_gone_timed_out_and_is_known_by_its_engine(
        self, port: int, identifier: SnmpIdentifier
    ) -> None:
        engine = bytes.fromhex(
            "306b020103300e02014d020300ffe30401000201030421301f041180001f8880d0c643020f8ffa6a000000000201010201010400"
            "040004003033041180001f8880d0c643020f8ffa6a000000000400a81c02014d0201000201003011300f060a2b060106030f0101"
            "0400410101"
        )
        failure = await refused(
            identifier, access(port, SEALED, address="127.44.9.9", answer=engine, timeout=Duration("100ms"))
        )
        assert (failure.outcome, failure.login) == (Outcome.TIMED_OUT, "unknown")

    async def test_that_is_gone_broke_off(self, port: int, identifier: SnmpIdentifier) -> None:
        failure = await refused(identifier, access(port, address="127.44.9.9"))
        assert failure.outcome is Outcome.DISCONNECTED

    @pytest.mark.parametrize("credential", [PUBLIC, SEALED], ids=["v2c", "v3"])
    @pytest.mark.parametrize("address", ["router1.example", "127.0.0.256", ""])
    async def test_is_never_looked_up_by_a_name(
        self, port: int, identifier: SnmpIdentifier, address: str, credential: Login
    ) -> None:
        failure = await refused(identifier, access(port, credential, address=address))
        assert failure.outcome is Outcome.NOT_RESOLVED

    async def test_with_an_engine_id_that_is_too_long_has_none(self, port: int, identifier: SnmpIdentifier) -> None:
        face = Personality(object_id="1.3.6.1.4.1.6527.1.3.17", engine_id=b"\x80" * 33)
        async with SnmpDevice({SIMULATED: face}, port):
            found = await identifier.identify(access(port))
        assert found.evidence.engine_id is UNSET

    async def test_of_v1_that_lacks_a_part_of_the_system_group_is_asked_one_by_one(
        self, port: int, identifier: SnmpIdentifier
    ) -> None:
        face = _Nameless(object_id="1.3.6.1.4.1.6527.1.3.17", description=DESCRIPTION)
        async with SnmpDevice({SIMULATED: face}, port):
            found = await identifier.identify(access(port, snmp_version="v1"))
        assert (found.info.version, found.info.hostname) == ("22.10.R1", UNSET)

    async def test_that_lacks_a_part_of_the_system_group_is_not_asked_for_it_again(self, port: int) -> None:
        oids = (SnmpOid(key="hostname", oid="1.3.6.1.2.1.1.5.0"),)
        identifier = SnmpIdentifier(Vendors([vendor("v", object_id="1.3.6.1.4.1.8072", oids=oids)]))
        async with SnmpDevice({SIMULATED: _Nameless()}, port) as device:
            await identifier.identify(access(port))
        assert device.asked == {SIMULATED: 1}

    async def test_with_a_binary_name_has_a_printable_one(self, port: int, identifier: SnmpIdentifier) -> None:
        face = Personality(object_id="1.3.6.1.4.1.6527.1.3.17", more={"1.3.6.1.2.1.1.5.0": b"\xff\x00\x01zz"})
        async with SnmpDevice({SIMULATED: face}, port):
            found = await identifier.identify(access(port))
        assert found.info.hostname == "ff:00:01:7a:7a"


def _from(device: SnmpDevice, asked: Access) -> bytes:
    """The answer to a probe, taken from the simulator without the wire."""
    device.asked[asked.address] = 1
    system = "1.3.6.1.2.1.1"
    question = Question(1, b"public", 1, (f"{system}.1.0", f"{system}.2.0", f"{system}.5.0"))
    return response(question, [(f"{system}.2.0", "1.3.6.1.4.1.99999.1")])


class TestTheProbe:
    def test_of_v2c_passes_over_the_answer_to_another_question(self, identifier: SnmpIdentifier) -> None:
        payload, accepts = identifier.probe(PUBLIC, TargetConnectionProfileSpec(protocol="snmp"))
        question = read_question(payload)
        assert question is not None
        assert accepts(response(question, []))
        late = type(question)(1, b"public", question.request_id + 1, ())
        assert not accepts(response(late, []))

    def test_of_v3_carries_no_credential(self, identifier: SnmpIdentifier) -> None:
        payload, _ = identifier.probe(SEALED, TargetConnectionProfileSpec(protocol="snmp"))
        assert b"sealed" not in payload

    def test_takes_garbage_for_an_answer_so_that_the_device_is_seen(self, identifier: SnmpIdentifier) -> None:
        for credential in (PUBLIC, SEALED):
            _, accepts = identifier.probe(credential, TargetConnectionProfileSpec(protocol="snmp"))
            assert accepts(b"HTTP/1.1 400 Bad Request")

    def test_is_not_made_without_a_community(self, identifier: SnmpIdentifier) -> None:
        with pytest.raises(NotIdentified) as caught:
            identifier.probe(login(username="x"), TargetConnectionProfileSpec(protocol="snmp"))
        assert caught.value.outcome is Outcome.NOT_SENT
        assert "community" in caught.value.detail
