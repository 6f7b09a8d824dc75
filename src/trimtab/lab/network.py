"""A network of two machines on this one: two network namespaces, joined by a cable, with no way out.

    with Bed() as bed:                                    # A asks, B answers
        snmpd = bed.popen(bed.b, ["snmpd", …])            # as 10.77.0.0 to 10.77.15.255, if it binds 0.0.0.0
        Sweeper(limits, enter=bed.a.enter)                # the thread is in A

10.77.0.0/16 is routed from A to B by one next hop, so the neighbour table stays small. 10.77.0.0/20 is local in B: one
server there answers as 4,096 devices. The rest is dropped silently, as by a network in which nobody is.
fd77::/104 is routed likewise, and fd77::/116 is local in B.

Names carry the process that made them; those of processes that are gone are removed by the next bed.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PREFIX = "10.77.0.0/16"
LIVE = "10.77.0.0/20"
PREFIX_6 = "fd77::/104"
LIVE_6 = "fd77::/116"
CABLE = "v0"
"""What the interface to the other side is called, on both."""
MAC_A = "02:00:00:00:77:0a"
MAC_B = "02:00:00:00:77:0b"

_FOLDER = Path("/run/netns")
_NAME = re.compile(r"trimtab-(\d+)-\d+[ab]")
_CLONE_NEWNET = 0x40000000
_numbers = itertools.count()


class Space:
    """One network namespace."""

    def __init__(self, name: str) -> None:
        self.name = name

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command that runs in it."""
        return ["ip", "netns", "exec", self.name, *arguments]

    def popen(self, arguments: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """A process in it. End it by its own pid: `ip netns exec` becomes the command."""
        return subprocess.Popen(self.command(arguments), **options)  # noqa: S603 - the command is ours

    def run(self, *arguments: str) -> str:
        """What a short command in it printed."""
        return _run(*self.command(arguments))

    def set(self, name: str, value: int) -> None:
        """A setting of its kernel, as net/ipv4/ip_forward."""
        path = f"/proc/sys/{name}"
        if self.run("cat", path).strip() != str(value):
            self.run("sh", "-c", f"echo {value} > {path}")

    def enter(self) -> None:
        """Takes the calling thread there, and no other: sockets that it opens from now on are in it."""
        with (_FOLDER / self.name).open("rb") as opened:
            if ctypes.CDLL(None, use_errno=True).setns(opened.fileno(), _CLONE_NEWNET) != 0:
                code = ctypes.get_errno()
                raise OSError(code, f"cannot enter the namespace {self.name}: {os.strerror(code)}")


class Bed:
    """Two namespaces, from construction until `close`."""

    def __init__(self) -> None:
        reason = available()
        if reason:
            raise RuntimeError(f"a bed cannot be made: {reason}")
        _remove_orphans()
        stem = f"trimtab-{os.getpid()}-{next(_numbers)}"
        self.a, self.b = Space(f"{stem}a"), Space(f"{stem}b")
        try:
            self._lay()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Processes inside should be gone by then; a namespace lives as long as the last of them."""
        for space in (self.a, self.b):
            if (_FOLDER / space.name).exists():
                _run("ip", "netns", "delete", space.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lay(self) -> None:
        a, b = self.a, self.b
        for space in (a, b):
            _run("ip", "netns", "add", space.name)
            space.run("ip", "link", "set", "lo", "up")
        near = ["name", CABLE, "address", MAC_A, "netns", a.name]
        far = ["name", CABLE, "address", MAC_B, "netns", b.name]
        _run("ip", "link", "add", *near, "type", "veth", "peer", *far)
        for space, host, peer, peer_mac in ((a, 1, 2, MAC_B), (b, 2, 1, MAC_A)):
            space.run("ip", "address", "add", f"192.0.2.{host}/30", "dev", CABLE)
            space.run("ip", "-6", "address", "add", f"2001:db8::{host}/64", "dev", CABLE, "nodad")
            space.run("ip", "link", "set", CABLE, "up")
            for address in (f"192.0.2.{peer}", f"2001:db8::{peer}"):  # they know each other from the start
                space.run("ip", "neighbour", "replace", address, "lladdr", peer_mac, "dev", CABLE, "nud", "permanent")
        a.run("ip", "route", "add", PREFIX, "via", "192.0.2.2")
        a.run("ip", "-6", "route", "add", PREFIX_6, "via", "2001:db8::2")
        b.run("ip", "route", "add", "local", LIVE, "dev", "lo")
        b.run("ip", "-6", "route", "add", "local", LIVE_6, "dev", "lo")
        # not forwarded, and nothing said about it: what is not local in B goes nowhere
        b.set("net/ipv4/ip_forward", 0)
        b.set("net/ipv6/conf/all/forwarding", 0)


def available() -> str:
    """Why no bed can be made here; empty when one can."""
    if shutil.which("ip") is None:
        return "the command ip is not installed (Debian: iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"trimtab-{os.getpid()}-{next(_numbers)}a"
    try:
        _run("ip", "netns", "add", name)
    except RuntimeError as error:
        return str(error)
    _run("ip", "netns", "delete", name)
    return ""


def _remove_orphans() -> None:
    for entry in _FOLDER.glob("trimtab-*"):
        found = _NAME.fullmatch(entry.name)
        if found and not Path("/proc", found[1]).exists():
            _run("ip", "netns", "delete", entry.name)


def _run(*command: str) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the command is ours
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip() or ran.returncode}")
    return ran.stdout
