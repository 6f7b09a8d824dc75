"""Identification by NETCONF: the device's hello tells its vendor, one `<get>` tells the rest.

Flow: log in → hellos → the vendor by capabilities → one get with the profile's filter, or with one made of its paths →
the values. Where no vendor fits, or its get is answered by an error, ietf-system (RFC 7317) is asked if it may be there.
A device that tells nothing more is identified by its host key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trimtab.systems.discovery.findings import Access, Identified, NotIdentified, Outcome
from trimtab.systems.discovery.identify import netconf_xml as xml
from trimtab.systems.discovery.identify.netconf_session import NetconfSession
from trimtab.systems.discovery.identify.ssh_session import logged_in
from trimtab.systems.discovery.identify.ssh_values import identified
from trimtab.systems.discovery.kinds import Key, NetconfPath, NetconfVendor
from trimtab.systems.discovery.vendors.choice import Vendors

SYSTEM = "urn:ietf:params:xml:ns:yang:ietf-system"
LIBRARY = "urn:ietf:params:netconf:capability:yang-library:"
"""A device with a YANG library need not name its modules in the hello (RFC 7950 §5.6.4)."""
SYSTEM_PATHS = (
    NetconfPath(key="hostname", path="system/hostname"),
    NetconfPath(key="version", path="system-state/platform/os-release"),
    NetconfPath(key="platform", path="system-state/platform/machine"),
)
SYSTEM_FILTER = (
    f'<system xmlns="{SYSTEM}"><hostname/></system>'
    f'<system-state xmlns="{SYSTEM}"><platform><os-release/><machine/></platform></system-state>'
)


class NetconfIdentifier:
    """An Identifier. It keeps nothing between devices."""

    def __init__(self, vendors: Vendors) -> None:
        self._vendors = vendors

    async def identify(self, access: Access) -> Identified:
        """NotIdentified when the device lets nobody in, breaks, or lets us read nothing."""
        profile = access.profile
        async with logged_in(access) as login:
            session = await NetconfSession.open(login, profile.preferred_netconf_version, profile.timeout.seconds)
            choice = self._vendors.netconf(session.capabilities)
            values = await self._of_vendor(session, choice.profile, choice.spec) if choice.spec else None
            if values is None:
                values = await self._of_any(session)
            await session.close()
            return identified("netconf", choice, values, login.pin)

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _of_vendor(self, session: NetconfSession, name: str, vendor: NetconfVendor) -> dict[Key, str] | None:
        """What its profile reads; None when the device answers with an error."""
        entries = tuple(entry for entry in vendor.paths if local_names(entry.path))
        if not entries:
            return {}
        subtree = vendor.filter or xml.subtree(local_names(entry.path) for entry in entries)
        values, errors = await self._get(session, subtree, entries)
        if any(error.tag == "access-denied" for error in errors):
            raise NotIdentified(
                Outcome.PROTOCOL_ERROR,
                f"The login worked, but its user may not read what vendor profile {name} asks for (access-denied). "
                "Let the user read it.",
            )
        return None if errors else values

    async def _of_any(self, session: NetconfSession) -> dict[Key, str]:
        if not any(each.startswith((SYSTEM, LIBRARY)) for each in session.capabilities):
            return {}
        values, _ = await self._get(session, SYSTEM_FILTER, SYSTEM_PATHS)
        return values

    async def _get(
        self, session: NetconfSession, subtree: str, entries: Sequence[NetconfPath]
    ) -> tuple[dict[Key, str], tuple[xml.RpcError, ...]]:
        answer = await session.get(subtree, [local_names(entry.path) for entry in entries])
        texts = ((entry, answer.first(("data", *local_names(entry.path)))) for entry in entries)
        return self._vendors.values(texts), answer.errors


def local_names(path: str) -> xml.Path:
    """The names of a path, without prefixes; empty when it is no path of names."""
    names = tuple(name.rpartition(":")[2] for name in path.strip("/").split("/"))
    return names if all(_NAME.fullmatch(name) for name in names) else ()


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
