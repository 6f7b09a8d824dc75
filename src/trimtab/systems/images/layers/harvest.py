"""What is gathered from a layer's entries while they pass: packages, distributions, licences, whiteouts, paths.

It is the visitor of the walker: it says which bodies are wanted, has them read, and keeps what they say, never them. Only
rpm databases in SQLite wait for the end, as their newest pages may be in a log beside them.
"""

from __future__ import annotations

from array import array
from functools import partial

import msgspec

from trimtab.systems.images.layers.problems import LIMITS, LayerTooLarge, Limits
from trimtab.systems.images.layers.result import Finding, LayerResult, path_digest
from trimtab.systems.images.layers.sinks import Executable, Whole
from trimtab.systems.images.layers.tar import Entry, Kind, Sink
from trimtab.systems.images.layers.tar_header import clean
from trimtab.systems.images.packages import debian_copyright, executables, rpm
from trimtab.systems.images.packages.distro import read_os_release
from trimtab.systems.images.packages.formats import Read, is_os_release, recognise
from trimtab.systems.images.packages.package import Body, Distro, Package
from trimtab.systems.images.packages.problems import Unreadable

_FILE, _DIRECTORY, _SYMLINK, _HARDLINK = Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK, Kind.HARDLINK  # quick to look up
_DATABASES = frozenset(
    {
        "var/lib/dpkg", "var/lib/dpkg/status", "var/lib/dpkg/status.d", "lib/apk/db", "lib/apk/db/installed",
        "usr/lib/apk/db", "usr/lib/apk/db/installed", "var/lib/rpm", "usr/lib/sysimage/rpm", "usr/share/rpm",
    }
)  # fmt: skip
"""Where package databases are, and their folders: some of these are links to others by custom."""
_MAX_NAME, _MAX_LICENSES = 1000, 20_000  # characters


class Harvest:
    """Of one layer."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._found: dict[str, tuple[Package, ...]] = {}
        self._held: dict[str, Body] = {}  # rpm databases in SQLite, and their logs
        self._distros: dict[str, Distro] = {}
        self._links: dict[str, str] = {}
        self._licenses: dict[str, tuple[str, ...]] = {}
        self._removed: set[str] = set()
        self._opaque: set[str] = set()
        self._paths = bytearray()
        self._warnings: list[str] = []
        self._packages = 0
        self._kept = 0

    def result(self, *, digest: str, diff_id: str, size: int, entries: int) -> LayerResult:
        """All of it, when the last entry has passed."""
        self._read_held()
        return LayerResult(
            digest=digest,
            diff_id=diff_id,
            size=size,
            entries=entries,
            findings=tuple(Finding(path, found) for path, found in sorted(self._found.items())),
            distros=self._distros,
            links=self._links,
            licenses=self._licenses,
            removed=tuple(sorted(self._removed)),
            opaque=tuple(sorted(self._opaque)),
            paths=array("Q", sorted(array("Q", bytes(self._paths)))).tobytes(),
            warnings=tuple(self._warnings),
        )

    def visit(self, entry: Entry) -> Sink | None:
        """Where the body of the entry goes, if it is wanted."""
        path, kind = entry.path, entry.kind
        folder, _, name = path.rpartition("/")
        if name.startswith(".wh."):
            self._whiteout(folder, name)
            return None
        if kind is _DIRECTORY:
            return None
        self._paths += path_digest(path)
        if path in self._found or path in self._held or path in self._distros or path in self._links:
            self._forget(path)
        if kind is _FILE:
            return self._file(entry, name)
        if kind is _HARDLINK:
            self._hardlink(entry)
        elif kind is _SYMLINK:
            self._symlink(entry)
        return None

    def _symlink(self, entry: Entry) -> None:
        path = entry.path
        if is_os_release(path):
            self._links[path] = link_target(path, entry.target, self._limits)
        elif path in _DATABASES and link_target(path, entry.target, self._limits) not in _DATABASES:
            self._warn(path, "it is a symbolic link, which is not followed: packages behind it are not seen")

    def _forget(self, path: str) -> None:
        """Of two entries with one path the later one counts."""
        if self._found.pop(path, None) is None and self._held.pop(path, None) is None:
            self._distros.pop(path, None)
            self._links.pop(path, None)

    def _whiteout(self, folder: str, name: str) -> None:
        self._keep(len(folder) + len(name))
        if name == ".wh..wh..opq":
            self._opaque.add(folder)
        elif not name.startswith(".wh..wh."):  # the bookkeeping of aufs
            self._removed.add(f"{folder}/{name[4:]}" if folder else name[4:])

    def _file(self, entry: Entry, name: str) -> Sink | None:
        path = entry.path
        if name == "copyright" and (package := debian_copyright.package_of(path)):
            return Whole(entry.size, lambda body: self._copyright(package, body)) if _is_short(entry) else None
        form = recognise(path, name)
        if form is None:
            if is_os_release(path):
                return Whole(entry.size, lambda body: self._os_release(path, body)) if _is_short(entry) else None
            if entry.size < executables.SMALLEST or entry.sparse:
                return None
            return Executable(
                entry.size, self._limits.executable_bytes, lambda body: self._read(path, executables.read, body)
            )
        if entry.sparse:
            self._warn(path, "it is stored as a sparse file, which is not read")
            return None
        cap = min(form.max_bytes, self._limits.held_bytes)
        if entry.size > cap:
            self._warn(path, f"it has {entry.size} bytes; {cap} are read at most")
            return None
        if rpm.is_sqlite(name):
            if entry.size + sum(map(len, self._held.values())) > cap:
                self._warn(path, f"it and the other rpm databases have more than {cap} bytes, which are held at most")
                return None
            return Whole(entry.size, lambda body: self._hold(path, body))
        return Whole(entry.size, lambda body: self._read(path, form.read, body))

    def _read(self, path: str, read: Read, body: Body) -> None:
        try:
            packages = read(path, body)
        except Unreadable as error:
            self._warn(path, str(error))
            packages = error.packages
        if any(_is_oversize(package) for package in packages):
            self._warn(path, f"it names packages with more than {_MAX_NAME} characters, which are left out")
            packages = tuple(package for package in packages if not _is_oversize(package))
        self._find(path, packages)

    def _find(self, path: str, packages: tuple[Package, ...]) -> None:
        self._packages += len(packages)
        if self._packages > self._limits.packages:
            raise LayerTooLarge(f"the layer names more than {self._limits.packages} packages")
        self._keep(sum(_length(package) for package in packages))
        if packages:
            self._found[path] = packages

    def _keep(self, size: int) -> None:
        self._kept += size
        if self._kept > self._limits.kept_bytes:
            raise LayerTooLarge(
                f"the packages and whiteouts of the layer take more than {self._limits.kept_bytes} bytes"
            )

    def _hold(self, path: str, body: Body) -> None:
        self._held[path] = body

    def _read_held(self) -> None:
        for path, body in sorted(self._held.items()):
            if path.endswith("-wal"):
                continue
            log = self._held.get(f"{path}-wal", b"")
            self._read(path, partial(rpm.read_sqlite, log=log), body)

    def _hardlink(self, entry: Entry) -> None:
        packages = self._found.get(entry.target)
        if packages is not None:
            self._find(entry.path, tuple(msgspec.structs.replace(each, path=entry.path) for each in packages))
        elif entry.target in self._distros:
            self._distros[entry.path] = self._distros[entry.target]
        elif recognise(entry.path, entry.path.rpartition("/")[2]) is not None:
            self._warn(entry.path, f"it is a hard link to {entry.target}, which was not read")

    def _os_release(self, path: str, body: Body) -> None:
        try:
            self._distros[path] = read_os_release(body)
        except Unreadable as error:
            self._warn(path, str(error))

    def _copyright(self, package: str, body: Body) -> None:
        licenses = debian_copyright.read(body)
        if licenses:
            self._keep(sum(map(len, licenses)))
            self._licenses[package] = licenses

    def _warn(self, path: str, why: str) -> None:
        if len(self._warnings) < self._limits.warnings:
            self._warnings.append(f"{path[:400]}: {why}")


def _is_short(entry: Entry) -> bool:
    """A text beside the packages; one that is too long says nothing that is needed."""
    return entry.size <= debian_copyright.MAX_BYTES and not entry.sparse


def _is_oversize(package: Package) -> bool:
    return max(map(len, _texts(package))) > _MAX_NAME or sum(map(len, package.licenses)) > _MAX_LICENSES


def _length(package: Package) -> int:
    return sum(map(len, _texts(package))) + sum(map(len, package.licenses)) + len(package.path)


def _texts(package: Package) -> tuple[str, ...]:
    return package.name, package.version, package.namespace, package.source, package.source_version, package.arch


def link_target(path: str, target: str, limits: Limits = LIMITS) -> str:
    """Where a symlink at the path leads, from the root of the image."""
    if target.startswith("/"):
        return clean(target, limits)
    return clean(f"{path.rpartition('/')[0]}/{target}", limits)
