"""The few calls to the kernel that a sweep makes thousands of times a second. Linux.

Python's socket module gives up the interpreter's lock around each call. When the event loop is busy, getting it back
takes 5 ms, so a sweep would make 200 calls a second. None of these calls blocks, so the lock is kept (ctypes.PyDLL),
and datagrams go and come many at a time. Only epoll_wait, in loop.py, lets go of it.

Failures are returned as errno, not raised. Addresses are `sockaddr` in bytes.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct
import sys
from collections.abc import Sequence

_libc = ctypes.PyDLL(None, use_errno=True)
_NONBLOCKING_STREAM = socket.SOCK_STREAM | getattr(socket, "SOCK_NONBLOCK", 0) | getattr(socket, "SOCK_CLOEXEC", 0)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_EPOLL_CTL_ADD = 1
_EPOLLOUT = 4
_PADDING = bytes(8)
_NO_SCOPE = bytes(4)
_NAME = 28  # sockaddr_in6
_CONTROL = 128
_CONTROL_HEADER = 16  # cmsghdr; sock_extended_err follows
_MSG_ERRQUEUE = 0x2000
_ICMP_ORIGINS = (2, 3)


class Names:
    """Addresses at one port as `sockaddr`, and back. What tells peers apart is the packed address."""

    def __init__(self, port: int) -> None:
        self._port = struct.pack("!H", port)
        self._four = struct.pack("=H", socket.AF_INET) + self._port
        self._six = struct.pack("=H", socket.AF_INET6) + self._port + bytes(4)

    def of(self, address: str) -> tuple[bytes, bytes]:
        """Its name, and its packed address. ValueError when it is not an address."""
        try:
            if ":" in address:
                host = socket.inet_pton(socket.AF_INET6, address)
                return self._six + host + _NO_SCOPE, host
            host = socket.inet_pton(socket.AF_INET, address)
            return self._four + host + _PADDING, host
        except OSError:
            raise ValueError(f"{address[:64]!r} is not an address: resolve names before a sweep") from None

    def host(self, name: bytes) -> bytes:
        """The packed address; empty when the name is of another port."""
        if name[2:4] != self._port:
            return b""
        return name[4:8] if len(name) < _NAME else name[8:24]


def family(name: bytes) -> int:
    return int.from_bytes(name[:2], sys.byteorder)


class Streams:
    """TCP sockets of one thread that do not block, no more than `limit` at a time, watched by one epoll."""

    def __init__(self, epoll: int, limit: int) -> None:
        self.free = limit
        self._epoll = epoll
        self._scratch = ctypes.create_string_buffer(_NAME)
        self._length = ctypes.c_uint(0)
        self._length_at = ctypes.pointer(self._length)
        self._event = _Event(_EPOLLOUT, 0)
        self._event_at = ctypes.pointer(self._event)

    def open(self, address_family: int) -> tuple[int, int]:
        """A socket, and errno."""
        fd: int = _libc.socket(address_family, _NONBLOCKING_STREAM, 0)
        if fd < 0:
            return fd, ctypes.get_errno()
        self.free -= 1
        return fd, 0

    def connect(self, fd: int, name: bytes) -> int:
        """EINPROGRESS when it is on its way: then epoll tells the end."""
        if _libc.connect(fd, name, len(name)) == 0:
            return 0
        code = ctypes.get_errno()
        if code == errno.EINPROGRESS:
            self._event.data = fd
            if _libc.epoll_ctl(self._epoll, _EPOLL_CTL_ADD, fd, self._event_at) < 0:
                return ctypes.get_errno()
        return code

    def connected(self, fd: int) -> bool:
        self._length.value = _NAME
        return bool(_libc.getpeername(fd, self._scratch, self._length_at) == 0)

    def error(self, fd: int) -> int:
        """SO_ERROR: how a connect ended."""
        self._length.value = 4
        _libc.getsockopt(fd, socket.SOL_SOCKET, socket.SO_ERROR, self._scratch, self._length_at)
        return int.from_bytes(self._scratch.raw[:4], sys.byteorder)

    def close(self, fd: int) -> None:
        _libc.close(fd)
        self.free += 1

    def reset(self, fd: int) -> None:
        """Closes a connection by RST: nothing stays behind on either side."""
        _libc.setsockopt(fd, socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE, len(_RESET_ON_CLOSE))
        self.close(fd)


class Outbox:
    """Sends one payload to many at a time (sendmmsg)."""

    SIZE = 128

    def __init__(self, payload: bytes) -> None:
        self._payload = ctypes.create_string_buffer(payload, max(1, len(payload)))
        self._vector = _Vector(ctypes.addressof(self._payload), len(payload))
        self._names = ctypes.create_string_buffer(self.SIZE * _NAME)
        self._view = memoryview(self._names).cast("B")
        self._messages = (_Message * self.SIZE)()
        self._length = 0
        for message in self._messages:
            message.header.vector = ctypes.addressof(self._vector)
            message.header.vectors = 1

    def send(self, fd: int, names: Sequence[bytes]) -> tuple[int, int]:
        """To no more than `SIZE` names of one family. How many went, and errno of the first if none did."""
        if len(names[0]) != self._length:
            self._lay(len(names[0]))
        packed = b"".join(names)
        self._view[: len(packed)] = packed
        sent: int = _libc.sendmmsg(fd, self._messages, len(names), 0)
        return (0, ctypes.get_errno()) if sent < 0 else (sent, 0)

    def _lay(self, length: int) -> None:
        """Names of this length will follow each other."""
        self._length = length
        for place, message in enumerate(self._messages):
            message.header.name = ctypes.addressof(self._names) + place * length
            message.header.name_length = length


class Inbox:
    """Receives many datagrams at a time (recvmmsg)."""

    SIZE = 64

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._names = ctypes.create_string_buffer(self.SIZE * _NAME)
        self._data = ctypes.create_string_buffer(self.SIZE * longest)
        self._control = ctypes.create_string_buffer(self.SIZE * _CONTROL)
        self._name_view = memoryview(self._names).cast("B")
        self._data_view = memoryview(self._data).cast("B")
        self._control_view = memoryview(self._control).cast("B")
        self._vectors = (_Vector * self.SIZE)()
        self._messages = (_Message * self.SIZE)()
        for place, message in enumerate(self._messages):
            self._vectors[place] = _Vector(ctypes.addressof(self._data) + place * longest, longest)
            header = message.header
            header.name, header.name_length = ctypes.addressof(self._names) + place * _NAME, _NAME
            header.vector, header.vectors = ctypes.addressof(self._vectors) + place * ctypes.sizeof(_Vector), 1
            header.control, header.control_length = ctypes.addressof(self._control) + place * _CONTROL, _CONTROL

    def receive(self, fd: int) -> list[tuple[bytes, bytes]]:
        """Pairs of sender and data; fewer than `SIZE` when that was all."""
        received = []
        for place in range(self._fill(fd, socket.MSG_DONTWAIT)):
            message = self._messages[place]
            name, data = place * _NAME, place * self._longest
            received.append(
                (
                    bytes(self._name_view[name : name + message.header.name_length]),
                    bytes(self._data_view[data : data + message.length]),
                )
            )
            message.header.name_length = _NAME
            message.header.control_length = _CONTROL
        return received

    def complaints(self, fd: int) -> list[tuple[bytes, int]]:
        """What routers and peers said of datagrams that we sent (ICMP): to whom they went, and errno."""
        received = []
        for place in range(self._fill(fd, socket.MSG_DONTWAIT | _MSG_ERRQUEUE)):
            header = self._messages[place].header
            name, control = place * _NAME, place * _CONTROL + _CONTROL_HEADER
            code, origin = struct.unpack_from("=IB", self._control_view, control)
            if header.control_length > _CONTROL_HEADER and origin in _ICMP_ORIGINS:
                received.append((bytes(self._name_view[name : name + header.name_length]), code))
            header.name_length, header.control_length = _NAME, _CONTROL
        return received

    def _fill(self, fd: int, flags: int) -> int:
        count = -1
        for _ in range(4):  # a complaint is told once by the next call, whatever that is
            count = _libc.recvmmsg(fd, self._messages, self.SIZE, flags, None)
            if count >= 0 or ctypes.get_errno() == errno.EAGAIN:
                break
        return max(0, count)


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vector", ctypes.c_void_p),
        ("vectors", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    _fields_ = (("header", _Header), ("length", ctypes.c_uint))


class _Event(ctypes.Structure):
    if platform.machine() == "x86_64":
        _pack_ = 1
    _fields_ = (("events", ctypes.c_uint32), ("data", ctypes.c_uint64))


_libc.socket.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int)
_libc.connect.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
_libc.getpeername.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint))
_libc.getsockopt.argtypes = (
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
)
_libc.setsockopt.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
_libc.close.argtypes = (ctypes.c_int,)
