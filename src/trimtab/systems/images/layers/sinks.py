"""What takes the bodies of files that are read: whole ones, and executables of any size."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.systems.images.packages import executables, golang
from trimtab.systems.images.packages.package import Body

Done = Callable[[Body], None]


class Whole:
    """Collects a file. Its size was checked by whoever made this."""

    def __init__(self, size: int, done: Done) -> None:
        self._body: _Filled | None = None
        self._size = size
        self._done = done

    def write(self, data: memoryview) -> bool:
        if len(data) == self._size:  # the usual case: the file lies within one piece
            self._done(bytes(data))
            self._done = _nothing
            return False
        if self._body is None:
            self._body = _Filled(self._size)
        self._body.add(data)
        return True

    def close(self) -> None:
        self._done(b"" if self._body is None else self._body.content)


class Executable:
    """Looks at the first bytes of a file. An executable is collected, or searched in passing when it is large."""

    def __init__(self, size: int, held: int, done: Done) -> None:
        self._size = size
        self._held = held
        self._done = done
        self._body: _Filled | golang.Search | None = None
        self._head = b""

    def write(self, data: memoryview) -> bool:
        if self._body is None:
            head = self._head + bytes(data[:4])
            if len(head) < 4:
                self._head = head
                return True
            if not executables.is_executable(head[:4]):
                return False
            if len(data) == self._size:
                self._done(bytes(data))
                return False
            if self._size <= self._held:
                self._body = _Filled(self._size)
                self._body.add(memoryview(self._head))
            else:
                self._body = golang.Search(self._head)
        if isinstance(self._body, golang.Search):
            return self._body.feed(data)
        self._body.add(data)
        return True

    def close(self) -> None:
        if isinstance(self._body, golang.Search):
            self._done(self._body.found)
        elif self._body is not None:
            self._done(self._body.content)


class _Filled:
    """A body in pieces. It is made in its full size at once: one that grows is copied again and again."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)
        self._at = 0

    def add(self, data: memoryview) -> None:
        end = self._at + len(data)
        memoryview(self.content)[self._at : end] = data  # straight into its place
        self._at = end


def _nothing(body: Body) -> None:
    """It was done before the end."""
