"""Why a device was not identified by SNMP, in words for people."""

from __future__ import annotations

import socket

from trimtab.systems.discovery.findings import Access, NotIdentified, Outcome
from trimtab.systems.discovery.kinds import Evidence

NOTHING = Evidence()


def silent(access: Access, evidence: Evidence = NOTHING) -> NotIdentified:
    """A device is asked only after it answered a probe, be it some seconds ago: it is there, and took too long."""
    detail = f"the device did not answer SNMP on port {access.profile.used_port} within {access.profile.timeout}"
    if not access.answer and "snmp-user" not in access.login.values:
        detail += f"; a wrong community is met with silence too: check the Secret {access.login.secret}"
    return NotIdentified(Outcome.TIMED_OUT, detail, evidence=evidence)


def malformed(access: Access, why: str, evidence: Evidence = NOTHING) -> NotIdentified:
    detail = f"the device's answer on port {access.profile.used_port} is not valid SNMP: {why}"
    return NotIdentified(Outcome.PROTOCOL_ERROR, detail, evidence=evidence)


def refused(detail: str, evidence: Evidence = NOTHING) -> NotIdentified:
    return NotIdentified(Outcome.AUTHENTICATION_FAILED, detail, evidence=evidence)


def not_sent(access: Access, error: OSError | ValueError, evidence: Evidence = NOTHING) -> NotIdentified:
    """What the kernel said of our datagram."""
    port = access.profile.used_port
    if isinstance(error, ConnectionRefusedError):
        detail = f"nothing listens any more on UDP port {port}"
        return NotIdentified(Outcome.DISCONNECTED, detail, evidence=evidence)
    if isinstance(error, socket.gaierror | ValueError):
        return NotIdentified(Outcome.NOT_RESOLVED, f"{access.address} is not an IP address", evidence=evidence)
    detail = f"this machine could not send to UDP port {port}: {error.strerror or type(error).__name__}"
    return NotIdentified(Outcome.NOT_SENT, detail, evidence=evidence)
