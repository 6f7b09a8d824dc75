"""Devices on loopback addresses: one UDP socket that answers as any of them, and TCP listeners."""

import contextlib
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

IP_PKTINFO = 8


class Datagram(NamedTuple):
    data: bytes
    to: str
    """The address that was asked."""
    count: int
    """How many came for this address, with this one."""


@contextlib.contextmanager
def udp_devices(answer: Callable[[Datagram], bytes | None]) -> Iterator[int]:
    """A port at which all of 127.0.0.0/8 answers what `answer` says; None is silence."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        server.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        server.bind(("0.0.0.0", 0))
        port = server.getsockname()[1]
        thread = threading.Thread(target=_serve, args=(server, answer))
        thread.start()
        try:
            yield port
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(_END, ("127.0.0.1", port))
            thread.join()


@contextlib.contextmanager
def udp_devices_apart() -> Iterator[int]:
    """The same in a process of its own, which does not wait for our interpreter. They answer "here"."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.communicate()  # the end of its input is its end


@contextlib.contextmanager
def tcp_devices(addresses: list[str]) -> Iterator[int]:
    """A port at which these addresses accept connections."""
    with contextlib.ExitStack() as held:
        port = 0
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            server = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((address, port))
            server.listen(64)
            port = server.getsockname()[1]
        yield port


def _serve(server: socket.socket, answer: Callable[[Datagram], bytes | None]) -> None:
    counts: dict[str, int] = {}
    while True:
        data, control, _, sender = server.recvmsg(65535, 256)
        if data == _END:
            return
        _, _, info = control[0]
        destination = info[8:12]
        address = socket.inet_ntoa(destination)
        counts[address] = counts.get(address, 0) + 1
        said = answer(Datagram(data, address, counts[address]))
        if said is not None:
            source = struct.pack("=i4s4s", 0, destination, bytes(4))
            server.sendmsg([said], [(socket.IPPROTO_IP, IP_PKTINFO, source)], 0, sender)


_END = b"that is all"


if __name__ == "__main__":
    with udp_devices(lambda asked: b"here") as own:
        print(own, flush=True)
        sys.stdin.read()
