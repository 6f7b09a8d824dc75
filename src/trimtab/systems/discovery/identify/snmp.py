"""Identification by SNMP: what the system group, the vendor's objects and the standard's say of a device.

Packets are few. The sweep's probe is the first question already: for v1 and v2c a Get of the system group, for v3 the
discovery of the engine ID. A device whose vendor profile wants no more needs no second packet. Else one Get has all
objects of the profile, and with them what any device may have, for keys that the profile gives nothing for: the serial
number of the first entity when that is a chassis, the base MAC address of the bridge. A device that no profile knows is
asked for these alone. v1 is not: one unknown object fails its whole Get.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping

from msgspec import UNSET, UnsetType

from trimtab.systems.discovery.findings import Access, Identified, Login, NotIdentified, Outcome
from trimtab.systems.discovery.identify import snmp_login
from trimtab.systems.discovery.identify.snmp_community import CommunityAgent, checked, present
from trimtab.systems.discovery.identify.snmp_exchange import seconds
from trimtab.systems.discovery.identify.snmp_failures import malformed
from trimtab.systems.discovery.identify.snmp_login import BadLogin, Users
from trimtab.systems.discovery.identify.snmp_messages import (
    LONGEST_ENGINE_ID,
    BadMessage,
    engine_discovery,
    get_request,
    read_engine,
    read_response,
)
from trimtab.systems.discovery.identify.snmp_text import mac, text
from trimtab.systems.discovery.identify.snmp_user import UserAgent, discover, engine_of
from trimtab.systems.discovery.kinds import (
    DiscoveryInfo,
    Evidence,
    Key,
    SnmpOid,
    SnmpVendor,
    TargetConnectionProfileSpec,
)
from trimtab.systems.discovery.kinds.connection import SnmpVersion
from trimtab.systems.discovery.vendors.choice import Choice, Vendors, printable

SYS_DESCR = "1.3.6.1.2.1.1.1.0"
SYS_OBJECT_ID = "1.3.6.1.2.1.1.2.0"
SYS_NAME = "1.3.6.1.2.1.1.5.0"
ENGINE_ID = "1.3.6.1.6.3.10.2.1.1.0"
SYSTEM = (SYS_DESCR, SYS_OBJECT_ID, SYS_NAME)

ENTITY_CLASS = "1.3.6.1.2.1.47.1.1.1.1.5.1"
ENTITY_SERIAL = "1.3.6.1.2.1.47.1.1.1.1.11.1"
BRIDGE_ADDRESS = "1.3.6.1.2.1.17.1.1.0"
CHASSIS = 3  # entPhysicalClass

PATIENCE = 6
"""How many times the profile's timeout one device may take in all."""

Agent = CommunityAgent | UserAgent
Values = Mapping[str, bytes | int | str | float | None]


class SnmpIdentifier:
    """Asks devices by SNMP. One for many devices; it keeps no socket between them."""

    def __init__(self, vendors: Vendors, *, numbers: random.Random | None = None) -> None:
        self._vendors = vendors
        self._users = Users()
        self._number = (numbers or random.SystemRandom()).randrange(1, 1 << 30)

    def probe(self, login: Login, profile: TargetConnectionProfileSpec) -> tuple[bytes, Callable[[bytes], bool]]:
        """What the sweep sends to each address, and which datagrams answer it. NotIdentified for a bad Secret."""
        version = profile.spoken_snmp(login.values)
        if version == "v3":
            return engine_discovery(self._number), self._tells
        try:
            community = snmp_login.community(login)
        except BadLogin as error:
            raise NotIdentified(Outcome.NOT_SENT, f"{error}; nothing was sent") from None
        return get_request(version, community, self._number, _first(version)), self._answers

    def _answers(self, data: bytes) -> bool:
        """Whether a datagram is for the probe. What nobody can read is: the device is there, and sends garbage."""
        try:
            return read_response(data).request_id == self._number
        except BadMessage:
            return True

    def _tells(self, data: bytes) -> bool:
        try:
            engine = read_engine(data)
        except BadMessage:
            return True
        return engine is None or engine.message_id == self._number

    async def identify(self, access: Access) -> Identified:
        """What the device is. NotIdentified."""
        version = access.profile.spoken_snmp(access.login.values)
        limit = seconds(access.profile.timeout) * PATIENCE
        try:
            agent, engine_id = await self._agent(access, version)
        except BadLogin as error:
            raise NotIdentified(Outcome.OPEN, f"{error}; nothing was sent", login="unsent") from None
        except NotIdentified as failure:
            failure.login = "unsent"
            raise
        try:
            async with asyncio.timeout(limit):
                return await self._identified(access, agent, version, engine_id)
        except TimeoutError:
            detail = f"the device answers so slowly that it was given up after {limit:g} s"
            raise NotIdentified(Outcome.TIMED_OUT, detail, login=agent.login) from None
        except NotIdentified as failure:
            if failure.login == "unknown":
                failure.login = agent.login
            raise
        finally:
            agent.close()

    async def close(self) -> None:
        """There is nothing to end."""

    async def _agent(self, access: Access, version: SnmpVersion) -> tuple[Agent, str]:
        """The other side, and its engine ID where it must be known first. No credential of v3 was sent yet."""
        if version != "v3":
            return CommunityAgent(access, version, snmp_login.community(access.login), self._number), ""
        user = await self._users.user(access.login)
        engine = engine_of(access, access.answer) if access.answer else await discover(access, self._number)
        if access.admit is not None:
            await access.admit(engine.hex)
        return UserAgent(access, user, bytes.fromhex(engine.hex)), engine.hex

    async def _identified(self, access: Access, agent: Agent, version: SnmpVersion, engine_id: str) -> Identified:
        if version == "v3":
            return await self._described(agent, await agent.get(SYSTEM), engine_id, standard=True)
        system = _answered(access)
        if system is None:
            system = await agent.get(_first(version))
        octets = system.get(ENGINE_ID)
        if isinstance(octets, bytes) and len(octets) <= LONGEST_ENGINE_ID:
            engine_id = octets.hex()
        return await self._described(agent, system, engine_id, standard=version != "v1")

    async def _described(self, agent: Agent, system: Values, engine_id: str, *, standard: bool) -> Identified:
        if not any(oid in system for oid in SYSTEM):
            detail = "the device answers and shows no system group; allow this login to read 1.3.6.1.2.1.1 there"
            raise NotIdentified(Outcome.PROTOCOL_ERROR, detail)
        choice = self._vendors.snmp(text(system.get(SYS_OBJECT_ID)), text(system.get(SYS_DESCR)))
        entries = choice.spec.oids if choice.spec is not None else ()
        missing = _wanted(choice, standard=standard)
        values = {**system, **(await agent.get(missing))} if missing else system
        return self._told(choice, entries, values, engine_id)

    def _told(
        self, choice: Choice[SnmpVendor], entries: tuple[SnmpOid, ...], values: Values, engine_id: str
    ) -> Identified:
        said = self._vendors.values((entry, _text(entry.key, values.get(entry.oid))) for entry in entries)
        hostname = said.get("hostname") or printable(text(values.get(SYS_NAME)))
        serial = said.get("serialNumber", "")
        if not serial and values.get(ENTITY_CLASS) == CHASSIS:
            serial = printable(text(values.get(ENTITY_SERIAL)))
        address = said.get("macAddress") or printable(mac(values.get(BRIDGE_ADDRESS)))
        return Identified(
            info=DiscoveryInfo(
                protocol="snmp",
                provider=_set(choice.profile),
                platform=_set(said.get("platform", "")),
                version=_set(said.get("version", "")),
                hostname=_set(hostname),
                serial_number=_set(serial),
                mac_address=_set(address),
            ),
            evidence=Evidence(
                serial_number=_set(serial),
                engine_id=_set(engine_id),
                mac_address=_set(address),
                hostname=_set(hostname),
            ),
            tied=choice.tied,
        )


def _first(version: SnmpVersion) -> tuple[str, ...]:
    """What is asked first. An agent of v2c may not know its engine ID; one of v1 would then refuse all."""
    return SYSTEM if version == "v1" else (*SYSTEM, ENGINE_ID)


def _wanted(choice: Choice[SnmpVendor], *, standard: bool) -> list[str]:
    """The objects to ask for, each once, the system group has been; the standard's where there is something to ask."""
    entries = choice.spec.oids if choice.spec is not None else ()
    wanted = dict.fromkeys(entry.oid for entry in entries if entry.oid not in SYSTEM)
    if standard and (choice.spec is None or wanted):
        wanted.update(dict.fromkeys((ENTITY_CLASS, ENTITY_SERIAL, BRIDGE_ADDRESS)))
    return list(wanted)


def _answered(access: Access) -> Values | None:
    """What the probe's answer says; None when it must be asked again. NotIdentified."""
    if not access.answer:
        return None
    try:
        response = checked(access, read_response(access.answer))
    except BadMessage as error:
        raise malformed(access, str(error)) from None
    return None if response.error else present(response)


def _text(key: Key, value: object) -> str:
    return mac(value) if key == "macAddress" else text(value)  # type: ignore[arg-type]


def _set(value: str) -> str | UnsetType:
    return value or UNSET
