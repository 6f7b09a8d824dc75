"""Go programs: the modules in the build information that the linker leaves in every program.

The block starts with a mark at an address divisible by 16. Since Go 1.18 the version and the list of modules follow it;
before, pointers to them did, which can be followed in ELF files only (`debug/buildinfo` of Go describes both).
"""

from __future__ import annotations

import struct

from trimtab.systems.images.packages import elf
from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

SECTION = b".go.buildinfo"
"""Where an ELF file has it."""

_MARK = b"\xff Go buildinf:"
_ALIGN = 16
_INLINE = 2
_BIG = 1
_MAX_TEXT = 4 << 20
_MAX_MODULES = 20_000


class Search:
    """Looks for the build information in a stream, for programs that are too large to hold."""

    def __init__(self, head: bytes = b"") -> None:
        self._tail = bytearray(head)
        self._at = 0  # where in the file the tail begins
        self._found = bytearray()

    def feed(self, data: memoryview) -> bool:
        """False when no more is needed."""
        if self._found:
            self._found += data
            return len(self._found) < _MAX_TEXT
        self._tail += data
        start = _aligned_mark(self._tail, self._at)
        if start >= 0:
            self._found = self._tail[start:]
            return len(self._found) < _MAX_TEXT
        keep = min(len(self._tail), _ALIGN)
        self._at += len(self._tail) - keep
        del self._tail[: len(self._tail) - keep]
        return True

    @property
    def found(self) -> bytearray:
        """The build information and what comes after it, or nothing."""
        return self._found


def read(path: str, body: Body) -> tuple[Package, ...]:
    """The main module, its dependencies as they were replaced, and the standard library. Unreadable."""
    start = _start(body)
    if start is None:
        return ()
    version, modules = _inline(body, start) if body[start + 15] & _INLINE else _pointed(body, start)
    return _packages(path, version, modules)


def _start(body: Body) -> int | None:
    if body[:4] == elf.MAGIC:
        found = elf.section(body, SECTION)
        if found is not None:
            start = found[0]
            return start if body[start : start + len(_MARK)] == _MARK and len(body) >= start + 32 else None
        if elf.section(body, b".shstrtab") is not None:
            return None
    start = _aligned_mark(body, 0)
    return start if start >= 0 and len(body) >= start + 32 else None


def _aligned_mark(body: Body, base: int) -> int:
    """A program that reads build information has the mark among its strings; the real one is aligned."""
    start = body.find(_MARK)
    while start >= 0:
        whole = len(body) >= start + _ALIGN
        if whole and (base + start) % _ALIGN == 0 and body[start + 14] in (4, 8) and body[start + 15] < 4:
            return start
        start = body.find(_MARK, start + 1)
    return -1


def _inline(body: Body, start: int) -> tuple[str, str]:
    version, at = _counted(body, start + 32)
    modules, _ = _counted(body, at)
    return version.decode("utf-8", "replace"), _unframed(modules)


def _counted(body: Body, at: int) -> tuple[bytes, int]:
    length = shift = 0
    while True:
        if at >= len(body) or shift > 28:
            raise Unreadable("its Go build information ends too early")
        byte = body[at]
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if length > _MAX_TEXT or at + length > len(body):
        raise Unreadable("its Go build information ends too early")
    return bytes(body[at : at + length]), at + length


def _pointed(body: Body, start: int) -> tuple[str, str]:
    if body[:4] != elf.MAGIC:
        raise Unreadable("it was built by Go before 1.18 and is no ELF file of a size that is read whole")
    size = body[start + 14]
    form = (">" if body[start + 15] & _BIG else "<") + ("Q" if size == 8 else "I")
    texts = []
    for place in (start + 16, start + 16 + size):
        try:
            (header,) = struct.unpack_from(form, body, place)
            at = elf.offset_of(body, header)
            if at is None:
                raise Unreadable("its Go build information points outside the file")
            address, length = struct.unpack_from(form + form[1:], body, at)
        except (struct.error, OverflowError):
            raise Unreadable("its Go build information ends too early") from None
        where = elf.offset_of(body, address) if length else 0
        if where is None or length > _MAX_TEXT or where + length > len(body):
            raise Unreadable("its Go build information points outside the file")
        texts.append(bytes(body[where : where + length]))
    return texts[0].decode("utf-8", "replace"), _unframed(texts[1])


def _unframed(modules: bytes) -> str:
    """The text stands between two marks of 16 bytes."""
    if len(modules) < 33 or modules[-17:-16] != b"\n":
        return ""
    return modules[16:-16].decode("utf-8", "replace")


def _packages(path: str, version: str, modules: str) -> tuple[Package, ...]:
    found: list[tuple[str, str]] = []
    settings: dict[str, str] = {}
    program = ""
    main = -1
    for line in modules.split("\n"):
        word, *rest = line.split("\t")
        if word in ("mod", "dep") and len(rest) >= 2:
            if word == "mod":
                main = len(found)
            found.append((rest[0], rest[1]))
        elif word == "=>" and len(rest) >= 2 and found:
            found[-1] = (rest[0], rest[1])
        elif word == "path" and rest:
            program = rest[0]
        elif word == "build" and rest:
            key, _, value = rest[0].partition("=")
            settings[key] = value
        if len(found) > _MAX_MODULES:
            raise Unreadable(f"its Go build information names more than {_MAX_MODULES} modules")
    if main >= 0:
        found[main] = (found[main][0], _main_version(found[main][1], settings))
    elif "/" in program:
        found.append((_module_of(program), ""))
    release = version.split(" ")[0].removeprefix("go")
    if release and found and not version.startswith("devel"):
        found.append(("stdlib", release))
    return tuple(Package(type="golang", name=name, version=number, path=path) for name, number in found if name)


def _main_version(version: str, settings: dict[str, str]) -> str:
    """A program built in its own checkout says `(devel)`; the commit says more, in the form of a pseudo-version."""
    revision, moment = settings.get("vcs.revision", ""), settings.get("vcs.time", "")
    digits = "".join(character for character in moment if character.isdigit())[:14]
    if version in ("(devel)", "") and revision and len(digits) == 14:
        return f"v0.0.0-{digits}-{revision[:12]}"
    return version


def _module_of(program: str) -> str:
    """A program built without modules names only its own package; on the known forges the repository is the module."""
    parts = program.split("/")
    return "/".join(parts[:3]) if parts[0] in ("github.com", "gitlab.com", "bitbucket.org") else program
