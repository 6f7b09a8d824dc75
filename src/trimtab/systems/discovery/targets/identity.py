"""When two answers come from one device: ordered evidence, cleaned of what many devices say alike.

The strongest kind of evidence that both have decides. A serial number that two devices share is a clone when something
else that no two devices share differs: that is a Conflict, and such devices are kept apart.
"""

from __future__ import annotations

import enum
import hashlib
import ipaddress
import re

import msgspec
from msgspec import UNSET

from trimtab.model.names import label_value_problems
from trimtab.systems.discovery.kinds import Evidence

KINDS = ("serial_number", "engine_id", "ssh_host_key", "tls_key", "mac_address", "hostname")
"""Strongest first."""

HARD = KINDS[1:5]
"""What no two devices share, though one device may change it."""

WORDS = {
    "serial_number": "serial number",
    "engine_id": "SNMP engine ID",
    "ssh_host_key": "SSH host key",
    "tls_key": "TLS key",
    "mac_address": "MAC address",
    "hostname": "host name",
}


class Verdict(enum.Enum):
    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """They have no kind of evidence in common."""
    CONFLICT = "conflict"
    """The strongest is equal, and a weaker hard one differs."""


def cleaned(evidence: Evidence) -> Evidence:
    """In one spelling, and without what is no evidence: placeholders, default names, addresses that nobody owns."""
    return Evidence(
        serial_number=_serial(evidence.serial_number or "") or UNSET,
        engine_id=_engine(evidence.engine_id or "") or UNSET,
        ssh_host_key=_key(evidence.ssh_host_key or "") or UNSET,
        tls_key=_key(evidence.tls_key or "") or UNSET,
        mac_address=_mac(evidence.mac_address or "") or UNSET,
        hostname=_hostname(evidence.hostname or "") or UNSET,
    )


def compare(one: Evidence, other: Evidence) -> Verdict:
    """Whether two pieces of cleaned evidence mean one device."""
    kind = deciding(one, other)
    if not kind:
        return Verdict.UNKNOWN
    if getattr(one, kind) != getattr(other, kind):
        return Verdict.DIFFERENT
    return Verdict.CONFLICT if differing(one, other) else Verdict.SAME


def deciding(one: Evidence, other: Evidence) -> str:
    """The strongest kind that both have; empty when there is none."""
    return next((kind for kind in KINDS if getattr(one, kind) and getattr(other, kind)), "")


def differing(one: Evidence, other: Evidence) -> str:
    """The strongest hard kind that both have and that differs; empty when there is none."""
    for kind in HARD:
        mine, theirs = getattr(one, kind), getattr(other, kind)
        if mine and theirs and mine != theirs:
            return kind
    return ""


def strongest(evidence: Evidence) -> str:
    """The strongest kind that is there; empty for no evidence."""
    return next((kind for kind in KINDS if getattr(evidence, kind)), "")


def merged(known: Evidence, newer: Evidence) -> Evidence:
    """What is known of a device after it said more. The newer word counts."""
    changes = {kind: getattr(newer, kind) for kind in KINDS if getattr(newer, kind)}
    return msgspec.structs.replace(known, **changes) if changes else known


def key(evidence: Evidence, address: str, *, whole: bool = False) -> str:
    """A short name of the identity, which is a valid label value: a hash of the strongest evidence, or of all of it
    (`whole`, for devices that share the strongest). The address when there is no evidence."""
    kind = strongest(evidence)
    if not kind:
        return address if not label_value_problems(address) else f"address-{_short(address)}"
    kinds = (k for k in KINDS if k != "hostname") if whole else (kind,)
    text = "\n".join(f"{k}={getattr(evidence, k)}" for k in kinds if getattr(evidence, k))
    return f"{_PREFIXES[kind]}-{_short(text or str(getattr(evidence, kind)))}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _serial(text: str) -> str:
    serial = " ".join(text.split()).upper()
    if not 4 <= len(serial) <= MAX_LENGTH or not serial.isprintable():
        return ""
    bare = re.sub(r"[^A-Z0-9]", "", serial)
    if len(set(bare)) < 2 or bare in _NO_SERIALS or bare in _COUNTING:
        return ""
    return serial


def _engine(text: str) -> str:
    """RFC 3411, SnmpEngineID: 5 to 32 octets; with the first bit set the fifth says what the rest is."""
    digits = re.sub(r"[\s:.-]", "", text.strip().lower().removeprefix("0x"))
    if not re.fullmatch(r"([0-9a-f]{2}){5,32}", digits):
        return ""
    octets = bytes.fromhex(digits)
    rest = octets[5:] if octets[0] & 0x80 else octets[4:]
    if len(set(octets)) < 2 or len(set(rest)) < 2 or octets in _NO_ENGINES:
        return ""
    if octets[0] & 0x80:
        form = octets[4]
        if form in (1, 2) and len(rest) in (4, 16) and _nobodys(rest):
            return ""
        if form == 3 and len(rest) == 6 and not _mac(rest.hex()):
            return ""
        if form == 4 and not _hostname(rest.decode("latin-1")):
            return ""
    return digits


def _nobodys(octets: bytes) -> bool:
    address = ipaddress.ip_address(octets)
    return address.is_loopback or address.is_unspecified or address.is_link_local


def _key(text: str) -> str:
    fingerprint = text.strip()
    return fingerprint if 16 <= len(fingerprint) <= MAX_LENGTH and fingerprint.isprintable() else ""


def _mac(text: str) -> str:
    digits = re.sub(r"[\s:.-]", "", text.strip().lower().removeprefix("0x"))
    if not re.fullmatch(r"[0-9a-f]{12}", digits):
        return ""
    multicast = int(digits[1], 16) & 1
    if multicast or len(set(digits)) < 2 or digits.startswith(_SHARED_MACS) or digits in _NO_MACS:
        return ""
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


def _hostname(text: str) -> str:
    name = text.strip().rstrip(".").lower()
    if not 0 < len(name) <= 253 or not name.isprintable() or name.strip("()<>[]-_. ") in _NO_HOSTS:
        return ""
    return "" if _is_address(name) else name


def _is_address(text: str) -> bool:
    if not (text[-1].isdigit() or ":" in text):  # cheaper than to ask
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


MAX_LENGTH = 128

_PREFIXES = dict(zip(KINDS, ("serial", "engine", "ssh", "tls", "mac", "host"), strict=True))
_COUNTING = frozenset(
    row[start:end]
    for row in ("01234567890123456789", "ABCDEFGHIJKLMNOP", "98765432109876543210")
    for start in range(len(row))
    for end in range(start + 4, len(row) + 1)
)
_NO_SERIALS = frozenset(
    """UNKNOWN NONE NULL NIL NOTAVAILABLE NOTAPPLICABLE NOTSPECIFIED UNSPECIFIED NOTSET UNSET NOTPRESENT NOTDEFINED
    UNDEFINED NOTFOUND NOTPROVIDED NOTSUPPORTED UNSUPPORTED EMPTY BLANK DEFAULT DEFAULTSTRING TOBEFILLEDBYOEM OEM
    SYSTEMSERIALNUMBER CHASSISSERIALNUMBER BASEBOARDSERIALNUMBER SERIALNUMBER SERIAL SERIALNO INVALID ERROR TEST DUMMY
    SAMPLE EXAMPLE PLACEHOLDER VIRTUAL SIMULATED NOASSETTAG NOSERIAL NOSERIALNUMBER TBD TODO NAN FALSE TRUE OTHER
    NOSUCHINSTANCE NOSUCHOBJECT VMWARE QEMU ABC123 ABCD1234 A1B2C3D4 DEADBEEF""".split()  # noqa: SIM905 - a list of words
)
_NO_ENGINES = frozenset(
    bytes.fromhex(digits)
    for digits in (
        "800000020109840301",  # an example that was copied into many configurations
        "80001f8880000000000000000000",  # net-snmp's own format with nothing in it
        "0102030405", "010203040506", "0102030405060708",
        "800000000102030405", "800000090300000000000000",
    )
)  # fmt: skip
_SHARED_MACS = ("00005e0001", "00005e0002", "00000c07ac", "00000c9ff", "0007b400")
"""Of VRRP (RFC 9568), HSRP and GLBP: of whichever router is up."""
_NO_MACS = frozenset(("020000000000", "001122334455", "123456789abc", "0123456789ab", "deadbeefcafe", "000000000001"))
_NO_HOSTS = frozenset(
    """localhost localhost.localdomain localhost.localdomain6 localhost6 localhost4 none null unknown undefined default
    host hostname name sysname router switch gateway firewall device test example noname unnamed unset empty n/a na
    cisco ios ios-xr nx-os nexus arista eos junos juniper amnesiac nokia srlinux srl sros huawei quidway h3c hpe hp
    procurve aruba dell os10 sonic cumulus vyos openwrt mikrotik ubnt ubiquiti fortigate pfsense opnsense linux debian
    ubuntu centos alpine raspberrypi ruckus extreme zyxel tp-link netgear d-link""".split()  # noqa: SIM905 - a list of words
) | {""}
