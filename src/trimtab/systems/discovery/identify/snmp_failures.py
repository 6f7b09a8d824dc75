"""Why a device was not identified by SNMP, in words for people."""

from __future__ import annotations

import socket

from trimtab.systems.discovery.findings import Access, NotIdentified, Outcome


def silent(access: Access) -> NotIdentified:
    """A device is asked only after it answered a probe, be it some seconds ago: it is there, and took too long."""
    detail = f"the device did not answer SNMP on port {access.profile.used_port} within {access.profile.timeout}"
    if not access.answer and access.profile.spoken_snmp(access.login.values) != "v3":
        detail += f"; a wrong community is met with silence too: check the Secret {access.login.secret}"
    return NotIdentified(Outcome.TIMED_OUT, detail)


def malformed(access: Access, why: str) -> NotIdentified:
    detail = f"the device's answer on port {access.profile.used_port} is not valid SNMP: {why}"
    return NotIdentified(Outcome.PROTOCOL_ERROR, detail)


def refused(detail: str) -> NotIdentified:
    return NotIdentified(Outcome.AUTHENTICATION_FAILED, detail)


def not_sent(access: Access, error: OSError | ValueError) -> NotIdentified:
    """What the kernel said of our datagram."""
    port = access.profile.used_port
    if isinstance(error, ConnectionRefusedError):
        detail = f"nothing listens any more on UDP port {port}"
        return NotIdentified(Outcome.DISCONNECTED, detail)
    if isinstance(error, socket.gaierror | ValueError):
        return NotIdentified(Outcome.NOT_RESOLVED, f"{access.address} is not an IP address")
    detail = f"this machine could not send to UDP port {port}: {error.strerror or type(error).__name__}"
    return NotIdentified(Outcome.NOT_SENT, detail)
