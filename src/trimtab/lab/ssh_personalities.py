"""Devices to play: what each says before a login, at its prompt, and by NETCONF. Written after what such devices print."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec


class Exec(enum.Enum):
    """What becomes of `exec`."""

    SERVED = enum.auto()
    REFUSED = enum.auto()
    WAITS = enum.auto()
    """It is taken, and then nothing happens."""
    ONCE = enum.auto()
    """The device hangs up after the first, as some do."""


class Fault(enum.Enum):
    """How the device misbehaves."""

    NONE = "none"
    SILENT = "accepts connections and says nothing"
    GARBAGE = "sends bytes that are no SSH"
    GARBAGE_PACKETS = "sends bytes that are no SSH after its version line"
    SLOW = "sends its version line one byte a second"
    CHATTER = "sends lines before its version line, without end"
    BANNER = "sends a banner without end"
    DROP_AT_LOGIN = "hangs up when it gets a credential"
    HANG_AT_LOGIN = "never answers a credential"
    DROP_AFTER_LOGIN = "hangs up once it has let somebody in"
    HANG = "never answers a command or a get"
    FLOOD = "prints without end"
    DROP_IN_ANSWER = "hangs up in the middle of an answer"
    BAD_FRAMING = "answers a get with a malformed chunk"
    BAD_XML = "answers a get with a document type and entities"


class Netconf(msgspec.Struct, frozen=True, kw_only=True):
    """The netconf subsystem: what the hello lists, and what every `<get>` is answered with."""

    capabilities: tuple[str, ...] = ()
    versions: tuple[str, ...] = ("1.0", "1.1")
    reply: str = "<data/>"


class Personality(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of device."""

    version: str
    """What follows SSH-2.0- in the version line."""
    banner: str = ""
    welcome: str = ""
    prompt: str
    commands: Mapping[str, str] = {}
    error: str = "% Invalid input detected at '^' marker."
    page: int = 0
    """Lines after which the pager stops; 0 for none. `terminal length 0` switches it off."""
    pager: str = " --More-- "
    echo: bool = True
    exec: Exec = Exec.SERVED
    netconf: Netconf | None = None


_IOS_VERSION = """Cisco IOS Software, C2960X Software (C2960X-UNIVERSALK9-M), Version 15.2(7)E6, RELEASE SOFTWARE (fc2)
Technical Support: http://www.cisco.com/techsupport
Compiled Thu 10-Mar-22 10:05 by mcpre

ROM: Bootstrap program is C2960X boot loader

access-sw7 uptime is 1 year, 12 weeks, 3 days, 2 hours, 17 minutes
System returned to ROM by power-on
System image file is "flash:/c2960x-universalk9-mz.152-7.E6.bin"

cisco WS-C2960X-24TS-L (APM86XXX) processor (revision V02) with 524288K bytes of memory.
Processor board ID FOC2042W0AB
Last reset from power-on
24 Gigabit Ethernet interfaces
The password-recovery mechanism is enabled.

512K bytes of flash-simulated non-volatile configuration memory.
Base ethernet MAC Address       : 00:5D:73:12:AB:80
Motherboard assembly number     : 73-16688-04
Model number                    : WS-C2960X-24TS-L
System serial number            : FOC2042W0AB

Configuration register is 0xF
"""

IOS = Personality(
    version="Cisco-1.25",
    banner="Authorized access only.\r\n",
    prompt="access-sw7#",
    commands={"show version": _IOS_VERSION},
    page=10,
    exec=Exec.REFUSED,
)

_EOS_VERSION = """Arista DCS-7050SX3-48YC8-F
Hardware version: 11.00
Serial number: JPE21160AB1
Hardware MAC address: 948e.d3aa.0102
System MAC address: 948e.d3aa.0102

Software image version: 4.30.2F
Architecture: x86_64
Internal build version: 4.30.2F-33092087.4302F

Uptime: 31 weeks, 5 days, 3 hours and 8 minutes
Total memory: 8099732 kB
Free memory: 6115352 kB
"""

_EOS_STATE = """<data><system xmlns="http://openconfig.net/yang/system"><state><hostname>leaf-11</hostname>\
<software-version>4.30.2F</software-version></state></system>\
<components xmlns="http://openconfig.net/yang/platform"><component><name>Chassis</name><state>\
<serial-no>JPE21160AB1</serial-no><part-no>DCS-7050SX3-48YC8-F</part-no></state></component></components></data>"""

EOS = Personality(
    version="OpenSSH_8.7",
    prompt="leaf-11#",
    commands={"show version": _EOS_VERSION, "show hostname": "Hostname: leaf-11\nFQDN:     leaf-11\n"},
    exec=Exec.ONCE,
    netconf=Netconf(
        capabilities=(
            "http://arista.com/yang/openconfig/platform/augments?module=arista-platform&revision=2022-01-31",
            "http://openconfig.net/yang/system?module=openconfig-system&revision=2022-09-28",
        ),
        reply=_EOS_STATE,
    ),
)

LINUX = Personality(
    version="OpenSSH_9.2p1 Debian-2+deb12u3",
    welcome="Linux web01 6.1.0-18-amd64 #1 SMP x86_64\r\n",
    prompt="admin@web01:~$",
    commands={"uname -a": "Linux web01 6.1.0-18-amd64 #1 SMP x86_64 GNU/Linux\n", "hostname": "web01\n"},
    error="bash: command not found",
)

PERSONALITIES: Mapping[str, Personality] = {"ios": IOS, "eos": EOS, "linux": LINUX}
