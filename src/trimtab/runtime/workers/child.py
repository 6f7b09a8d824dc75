"""The inside of a worker process: takes jobs from a socket, one at a time, and answers each.

It is run as a file, with the standard library only, so that it starts quickly whatever the package around it imports.
The parent sends its `sys.path`, then for each job a head and the pickled arguments. The answer is one frame: a letter for
what it is, a letter for whether this process should be replaced, and what belongs to it.

A job may take `memory` bytes beyond what the process held at its start, counted as the kernel counts RLIMIT_DATA.
"""

# ruff: noqa: S301 - what is unpickled comes from the parent, over a socket that nobody else has

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import traceback
from types import ModuleType
from typing import Any

HEADER = struct.Struct("!Q")
RESULT, RAISED, MEMORY, LARGE = b"R", b"E", b"M", b"L"
FRESH, WORN = b"f", b"w"
SLACK = 1 << 20  # what an answer that is no result may have
MAIN = "__mp_main__"
"""What multiprocessing calls the main module in a child; the parent has it under this name too."""

_TRACE = 16 * 1024
_WORN_SHARE = 4
_NICENESS = 5
_PR_SET_PDEATHSIG = 1

Head = tuple[str, str, str, int, int]
"""Module, its file, the function's qualified name, memory, largest answer."""


def serve(descriptor: int, parent: int) -> None:
    _settle(parent)
    connection = socket.socket(fileno=descriptor)
    path = receive(connection)
    if path is None:
        return
    sys.path[:] = pickle.loads(path)
    at_start = _data()
    while (head := receive(connection)) is not None:
        arguments = receive(connection)
        if arguments is None:
            return
        job: Head = pickle.loads(head)
        kind, payload = _perform(job, arguments, at_start)
        worn = kind == MEMORY or _data() - at_start > job[3] // _WORN_SHARE
        connection.sendall(HEADER.pack(len(payload) + 2) + kind + (WORN if worn else FRESH))
        connection.sendall(payload)


def receive(connection: socket.socket) -> bytes | None:
    """One frame; None when the parent is gone."""
    header = _exactly(connection, HEADER.size)
    return None if header is None else _exactly(connection, HEADER.unpack(header)[0])


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        count = connection.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return bytes(buffer)


def _perform(job: Head, arguments: bytes, at_start: int) -> tuple[bytes, bytes]:
    module, file, name, memory, most = job
    try:
        _limit(at_start + memory)
        try:
            function: Any = _module(module, file)
            for part in name.split("."):
                function = getattr(function, part)
            args, kwargs = pickle.loads(arguments)
            result = pickle.dumps(function(*args, **kwargs), protocol=5)
        finally:
            _limit(None)
    except MemoryError:
        return MEMORY, b""
    except BaseException as error:  # whatever it is, the parent must know
        return RAISED, _told(error)
    return (RESULT, result) if len(result) <= most else (LARGE, str(len(result)).encode())


def _told(error: BaseException) -> bytes:
    """The exception if it survives the journey, and what it says in any case."""
    trace = "".join(traceback.format_exception(error))[-_TRACE:]
    carried: bytes | None = None
    if isinstance(error, Exception):
        with contextlib.suppress(Exception):  # an exception may be made of anything
            packed = pickle.dumps(error.with_traceback(None), protocol=5)
            if len(packed) <= SLACK // 2 and type(pickle.loads(packed)) is type(error):
                carried = packed
    text = "".join(traceback.format_exception_only(error)).strip()[:_TRACE]
    return pickle.dumps((carried, text, trace), protocol=5)


def _module(name: str, file: str) -> ModuleType:
    """By its name, or from its file when only the parent's main module or its loader knows it."""
    if name != MAIN:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not file or error.name is None or not (name + ".").startswith(error.name + "."):
                raise
    elif MAIN in sys.modules:
        return sys.modules[MAIN]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{name} cannot be loaded from {file}", name=name)
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    if name == MAIN:
        sys.modules["__main__"] = made
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[name]
        raise
    return made


def _limit(size: int | None) -> None:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = hard if size is None else size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data() -> int:
    """Bytes that count against RLIMIT_DATA; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), 0)
    except OSError:
        return 0


def _settle(parent: int) -> None:
    """Die with the parent, leave Ctrl-C to it, leave no core behind, and let it run first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICENESS)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it went before we could ask to be told
        os._exit(1)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
