"""What is wrong with a vendor profile by itself, for admission and for those who cannot refuse it any more.

The same key may stand in several entries: they are alternatives in their order, and the first that gives a value wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from msgspec import UNSET

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    GnmiVendor,
    NetconfVendor,
    SnmpVendor,
    SshVendor,
)
from trimtab.systems.discovery.kinds.vendor import UNKNOWN
from trimtab.systems.discovery.vendors.extends import BLOCKS, ENTRIES
from trimtab.systems.discovery.vendors.values import BadExpression, expression, pattern

LARGEST_ARC = (1 << 32) - 1
MOST_ARCS = 128

_PATTERNS = {
    "netconf": {"capability_match": "capabilityMatch"},
    "ssh": {"banner_match": "bannerMatch", "probe_match": "probeMatch"},
    "snmp": {"description_match": "descriptionMatch"},
}


def check(profile: DiscoveryVendorProfile) -> list[FieldError]:
    """Everything wrong with it, but for what it extends: that is another object, which may come later."""
    return list(_problems(profile.name, profile.spec))


def _problems(name: str, spec: DiscoveryVendorProfileSpec) -> Iterator[FieldError]:
    if name == UNKNOWN:
        yield _invalid("metadata.name", name, "it means that no profile knows the device: take another name")
    if spec.extends is not UNSET and spec.extends == name:
        yield _invalid("spec.extends", name, "a profile cannot extend itself")
    for block in BLOCKS:
        vendor = getattr(spec, block)
        if vendor is UNSET:
            continue
        for field, shown in _PATTERNS.get(block, {}).items():
            yield from _regex(f"spec.{block}.{shown}", getattr(vendor, field))
        for place, entry in enumerate(getattr(vendor, ENTRIES[block])):
            path = f"spec.{block}.{ENTRIES[block]}[{place}]"
            yield from _regex(f"{path}.regex", entry.regex)
            yield from _transform(f"{path}.transform", entry.transform)
    if isinstance(spec.gnmi, GnmiVendor):
        for place, gnmi_path in enumerate(spec.gnmi.paths):
            yield from _gnmi_path(f"spec.gnmi.paths[{place}].path", gnmi_path.path)
    if isinstance(spec.netconf, NetconfVendor):
        yield from _filter(spec.netconf)
    if isinstance(spec.ssh, SshVendor):
        yield from _probe(spec.ssh)
        yield from _command("spec.ssh.probeCommand", spec.ssh.probe_command)
        for place, command in enumerate(spec.ssh.commands):
            yield from _command(f"spec.ssh.commands[{place}].command", command.command)
    if isinstance(spec.snmp, SnmpVendor):
        yield from _oid("spec.snmp.objectId", spec.snmp.object_id)
        for place, entry in enumerate(spec.snmp.oids):
            yield from _oid(f"spec.snmp.oids[{place}].oid", entry.oid)


def _regex(path: str, regex: Any) -> Iterator[FieldError]:
    if regex is UNSET:
        return
    try:
        pattern(regex)
    except BadExpression as error:
        yield _invalid(path, regex, f"RE2 refuses it: {error}")


def _transform(path: str, transform: Any) -> Iterator[FieldError]:
    if transform is UNSET:
        return
    try:
        expression(transform)
    except BadExpression as error:
        yield _invalid(path, transform, f"it must be CEL over `value` that gives a string: {error}")


def _gnmi_path(path: str, written: str) -> Iterator[FieldError]:
    from trimtab.systems.discovery.identify.gnmi_paths import parse  # with the messages of gNMI

    try:
        parse(written)
    except ValueError as error:
        yield _invalid(path, written, str(error))


def _oid(path: str, oid: Any) -> Iterator[FieldError]:
    if oid is UNSET:
        return
    arcs = [int(arc) for arc in oid.split(".")]
    if len(arcs) > MOST_ARCS:
        yield _invalid(path, oid, f"an object identifier has {MOST_ARCS} parts at most")
    elif max(arcs) > LARGEST_ARC:
        yield _invalid(path, oid, f"a part of an object identifier is {LARGEST_ARC} at most")
    elif arcs[0] < 2 and arcs[1] > 39:
        yield _invalid(path, oid, "under 0 and 1 the second part of an object identifier is 39 at most")


def _probe(ssh: SshVendor) -> Iterator[FieldError]:
    if (ssh.probe_command is UNSET) != (ssh.probe_match is UNSET):
        missing = "probeCommand" if ssh.probe_command is UNSET else "probeMatch"
        yield FieldError(
            f"spec.ssh.{missing}", FieldProblem.REQUIRED, detail="probeCommand and probeMatch need each other"
        )


def _command(path: str, command: Any) -> Iterator[FieldError]:
    """A device would take a line break for the end of the command, and the rest for another one."""
    if command is not UNSET and not command.isprintable():
        yield _invalid(path, command, "one line without control characters: give each command an entry of its own")


def _filter(netconf: NetconfVendor) -> Iterator[FieldError]:
    if netconf.filter is UNSET or not netconf.filter:
        return
    path = "spec.netconf.filter"
    if "<!" in netconf.filter or "<?" in netconf.filter:
        yield _invalid(path, netconf.filter, "XML elements only: no declarations, comments or instructions")
        return
    try:
        expat.ParserCreate().Parse(f"<filter>{netconf.filter}</filter>", True)
    except expat.ExpatError as error:
        yield _invalid(path, netconf.filter, f"it is not well-formed XML: {error}")


def _invalid(path: str, value: object, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value, detail)
