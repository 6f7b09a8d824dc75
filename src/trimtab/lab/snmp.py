"""A simulated SNMP v1 and v2c agent: many devices behind one port, each with a face of its own, and their bad habits.

One socket for each address that is served, or a single one on a wildcard address (then the devices are told apart by the
address that was asked, which Linux tells with each datagram). Run it: `python -m trimtab.lab.snmp --help`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import enum
import ipaddress
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import msgspec

from trimtab.lab.snmp_answers import Question, Scalar, read_question, response

SYSTEM = "1.3.6.1.2.1.1"
ENGINE_ID = "1.3.6.1.6.3.10.2.1.1.0"
_PKTINFO = getattr(socket, "IP_PKTINFO", 8)
NO_SUCH_NAME = 2


class Fault(enum.StrEnum):
    """What a device does wrong."""

    GARBAGE = "garbage"
    """Answers with what is not SNMP."""
    TRUNCATED = "truncated"
    """Its answer ends in the middle."""
    DROPS_FIRST = "drops-first"
    """Is silent to the first datagram, then answers."""
    OTHER_PORT = "other-port"
    """Answers from another port than it was asked at."""
    SLOW = "slow"
    """Answers after `delay`."""
    SILENT_AFTER_FIRST = "silent-after-first"
    """Answers once, then never again."""


class Personality(msgspec.Struct, frozen=True, kw_only=True):
    """What a device says of itself. `more` has other objects by their identifiers."""

    description: str = "Linux lab 6.1.0 #1 SMP x86_64"
    object_id: str = "1.3.6.1.4.1.8072.3.2.10"
    name: str = "lab"
    community: bytes = b"public"
    engine_id: bytes = b""
    more: Mapping[str, Scalar] = {}
    fault: Fault | None = None
    delay: float = 0.5
    error: int = 0
    """The error-status of every answer; 0 for none."""

    def objects(self) -> dict[str, Scalar]:
        known: dict[str, Scalar] = {
            f"{SYSTEM}.1.0": self.description.encode(),
            f"{SYSTEM}.2.0": self.object_id,
            f"{SYSTEM}.5.0": self.name.encode(),
            **self.more,
        }
        return {**known, ENGINE_ID: self.engine_id} if self.engine_id else known


class SnmpDevice:
    """`async with SnmpDevice({"127.9.0.1": Personality()}, port)`. `asked` counts the datagrams of each address.

    `faces` maps addresses to personalities, or is a function of the address for a whole range behind a wildcard; None
    means that nobody is there.
    """

    def __init__(
        self,
        faces: Mapping[str, Personality] | Callable[[str], Personality | None],
        port: int,
        *,
        listen: str = "",
    ) -> None:
        self._face: Callable[[str], Personality | None] = faces if callable(faces) else faces.get
        self._addresses = [listen] if listen else list(faces) if isinstance(faces, Mapping) else []
        self._port = port
        self._sockets: list[socket.socket] = []
        self._objects: dict[str, tuple[Personality, dict[str, Scalar]]] = {}
        self._later: set[asyncio.TimerHandle] = set()
        self.asked: dict[str, int] = {}

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for address in self._addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_DGRAM)
            self._sockets.append(sock)
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            if family == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_IP, _PKTINFO, 1)
            sock.bind((address, self._port))
            loop.add_reader(sock, self._read, sock, address)

    async def stop(self) -> None:
        loop = asyncio.get_running_loop()
        for timer in self._later:
            timer.cancel()
        for sock in self._sockets:
            loop.remove_reader(sock)
            sock.close()
        self._sockets.clear()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _read(self, sock: socket.socket, bound: str) -> None:
        for _ in range(256):  # then others may run
            try:
                data, ancillary, _, sender = sock.recvmsg(65535, 64)
            except BlockingIOError:
                return
            address, reply = bound, []
            for level, kind, content in ancillary:
                if (level, kind) == (socket.IPPROTO_IP, _PKTINFO):
                    address = socket.inet_ntoa(content[8:12])
                    # Answer from the address that was asked (in_pktinfo.ipi_spec_dst).
                    reply = [(level, kind, struct.pack("=I4s4s", 0, content[8:12], b"\0" * 4))]
            face = self._face(address)
            if face is not None:
                self._answer(sock, face, address, data, sender, reply)

    def _answer(
        self,
        sock: socket.socket,
        face: Personality,
        address: str,
        data: bytes,
        sender: tuple[str, int],
        reply: list[tuple[int, int, bytes]],
    ) -> None:
        count = self.asked[address] = self.asked.get(address, 0) + 1
        question = read_question(data)
        if question is None or question.community != face.community:
            return
        answer = self._said(face, address, question)
        if face.fault is Fault.DROPS_FIRST and count == 1:
            return
        if face.fault is Fault.SILENT_AFTER_FIRST and count > 1:
            return
        if face.fault is Fault.GARBAGE:
            answer = b"\x30\x82\xff\xff this is not SNMP"
        elif face.fault is Fault.TRUNCATED:
            answer = answer[:-7]
        if face.fault is Fault.OTHER_PORT:
            with socket.socket(sock.family, socket.SOCK_DGRAM) as other:
                other.bind((address, 0))
                other.sendto(answer, sender)
        elif face.fault is Fault.SLOW:
            loop = asyncio.get_running_loop()
            self._later.add(loop.call_later(face.delay, _send, sock, answer, reply, sender))
        else:
            _send(sock, answer, reply, sender)

    def _said(self, face: Personality, address: str, question: Question) -> bytes:
        if face.error:
            return response(question, [(oid, None) for oid in question.oids], error=face.error)
        known, objects = self._objects.get(address, (None, {}))
        if known is not face:
            objects = face.objects()
            self._objects[address] = (face, objects)
        missing = next((place for place, oid in enumerate(question.oids, 1) if oid not in objects), 0)
        if missing and question.version == 0:  # RFC 1157 4.1.2: one unknown object fails all
            return response(question, [(oid, None) for oid in question.oids], error=NO_SUCH_NAME, index=missing)
        return response(question, [(oid, objects.get(oid)) for oid in question.oids])


def _send(sock: socket.socket, answer: bytes, reply: list[tuple[int, int, bytes]], sender: tuple[str, int]) -> None:
    with contextlib.suppress(BlockingIOError, ConnectionRefusedError):  # as a wire would lose it
        sock.sendmsg([answer], reply, 0, sender)


def numbered(prefix: str, face: Personality) -> Callable[[str], Personality | None]:
    """A device at each address of the prefix: its own name and engine ID, all else as `face` has it."""
    network = ipaddress.ip_network(prefix)
    made: dict[str, Personality] = {}

    def of(address: str) -> Personality | None:
        if address not in made:
            number = ipaddress.ip_address(address)
            if number not in network:
                return None
            engine = face.engine_id or b"\x80\x00\x1f\x88\x04"
            name = f"{face.name}-{address.replace('.', '-').replace(':', '-')}"
            made[address] = msgspec.structs.replace(face, name=name, engine_id=engine + number.packed)
        return made[address]

    return of


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m trimtab.lab.snmp", description="Simulated SNMP v1/v2c devices.")
    parser.add_argument("--prefix", default="127.161.0.0/24", help="the addresses that are devices (%(default)s)")
    parser.add_argument("--listen", default="0.0.0.0", help="where to listen (%(default)s)")  # noqa: S104 - a lab
    parser.add_argument("--port", type=int, default=1161, help="UDP port (%(default)s)")
    parser.add_argument("--community", default="public")
    parser.add_argument("--description", default=Personality().description, help="sysDescr")
    parser.add_argument("--object-id", default=Personality().object_id, help="sysObjectID")
    parser.add_argument("--name", default="lab", help="sysName begins with it; the address follows")
    parser.add_argument("--fault", choices=[fault.value for fault in Fault], help="what all of them do wrong")
    options = parser.parse_args(arguments)
    face = Personality(
        description=options.description,
        object_id=options.object_id,
        name=options.name,
        community=options.community.encode(),
        fault=Fault(options.fault) if options.fault else None,
    )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(numbered(options.prefix, face), options.listen, options.port))


async def _serve(faces: Callable[[str], Personality | None], listen: str, port: int) -> None:
    async with SnmpDevice(faces, port, listen=listen):
        print(f"listening on {listen} UDP {port}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()
