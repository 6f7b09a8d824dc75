"""A revision of a repository, read: its documents, what is wrong with them, and its other files by their blobs.

What a blob's bytes mean never changes, so parsed files are kept by blob, and a new revision costs what is new in it.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from trimtab.runtime.git.errors import NoSuchRef
from trimtab.runtime.git.objects import FileKind
from trimtab.runtime.git.paths import checked
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.parsing import (
    IGNORE_FILE,
    Ignore,
    Limits,
    Parsed,
    ParsedFile,
    Problem,
    TooLong,
    gather,
    is_hidden,
    is_json,
    is_read,
    parse_file,
    parse_quickly,
)
from trimtab.systems.gitops.parsing_apart import MANY, MUCH, parsed_apart
from trimtab.systems.gitops.served import Served

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror
    from trimtab.runtime.git.objects import TreeFile
    from trimtab.runtime.workers import Workers
    from trimtab.systems.gitops.inventory import Inventory

MAX_FILES = 50_000
MAX_BYTES = 512 << 20
MAX_LIST = 1 << 20
KEPT = 50_000
FEW = 32
"""Changed files that are looked up one by one."""
SLICE, SLOW = 64 << 10, 8
"""Bytes that are parsed before others get their turn in this process; of what is not quick, SLOW files."""


class Contents(Protocol):
    """The bytes of blobs (`Mirror`)."""

    async def read(
        self, oids: Iterable[str], *, max_bytes: int, sizes: Mapping[str, int] = MappingProxyType({})
    ) -> Mapping[str, bytes]: ...


class Snapshot(msgspec.Struct, frozen=True):
    """A folder of a commit. Paths are relative to the folder; `files` has all of them, `parsed` the documents."""

    commit: str
    root: str
    files: Mapping[str, TreeFile]
    parsed: Parsed
    read: Mapping[str, ParsedFile] = {}
    """What the files with documents say, each by itself."""
    ignore: Ignore = Ignore()

    @property
    def lacks_folder(self) -> bool:
        """Whether the commit has no such folder: Git keeps none without files."""
        return bool(self.commit and self.root and not self.files)

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.parsed.problems


class Reader:
    """Parsed files of this process, by blob."""

    def __init__(
        self, served: Served, knowledge: Knowledge, limits: Limits | None = None, workers: Workers | None = None
    ) -> None:
        self._served, self._knowledge, self._workers = served, knowledge, workers
        self._limits = limits or Limits()
        self._kept: OrderedDict[tuple[str, bool], ParsedFile] = OrderedDict()

    async def read(
        self, mirror: Mirror, commit: str, root: str, namespace: str, before: Snapshot | None = None
    ) -> Snapshot:
        """The documents below `root`; those without a namespace are of `namespace`. `before` is another revision of the
        same folder: what is the same in it is not listed again. RemoteError."""
        files = await _files(mirror, commit, root, before)
        return await self.snapshot(Snapshot(commit, root, files, Parsed()), mirror, namespace, before)

    async def snapshot(
        self, bare: Snapshot, contents: Contents, namespace: str, before: Snapshot | None = None
    ) -> Snapshot:
        """One of which only the files are known, with what is in them."""
        files = bare.files
        ignore, problems = await self._ignore(contents, files)
        read = _unchanged(files, before)
        wanted = {
            path: file for path, file in files.items() if path not in read and file.regular and is_read(path, ignore)
        }
        if len(read) + len(wanted) > MAX_FILES:
            problems.append(Problem("", 0, f"there are more than {MAX_FILES} files with documents: split the sync"))
            read, wanted = {}, {}
        read |= await self._parsed(contents, wanted)
        await self._served.know(kinds_of(read))
        self._served.announce(definitions_of(read))
        found = self.gathered(read, namespace)
        problems += irregular(files, ignore, found.artifacts)
        found = msgspec.structs.replace(found, problems=(*sorted(problems), *found.problems))
        return msgspec.structs.replace(bare, parsed=found, read=read, ignore=ignore)

    def gathered(self, parsed: Mapping[str, ParsedFile], namespace: str) -> Parsed:
        """Files as one revision. `know` its kinds first."""
        return gather(
            parsed,
            artifacts=self._knowledge.file_names,
            namespace=namespace,
            namespaced=self._served.namespaced,
            home=lambda group: self._served.home(group, self._knowledge.suffix),
        )

    async def _parsed(self, contents: Contents, wanted: Mapping[str, TreeFile]) -> dict[str, ParsedFile]:
        absent = {
            file.oid: path
            for path, file in wanted.items()
            if (file.oid, is_json(path)) not in self._kept and file.size <= self._limits.file_bytes
        }
        sizes = {oid: wanted[path].size for oid, path in absent.items()}
        got = await contents.read(absent, max_bytes=MAX_BYTES, sizes=sizes) if absent else {}
        await self._parse({path: got[oid] for oid, path in absent.items()}, wanted)
        found: dict[str, ParsedFile] = {}
        for path, file in wanted.items():
            key = (file.oid, is_json(path))
            kept = self._kept.get(key)
            if kept is None and file.size > self._limits.file_bytes:
                problem = Problem("", 0, f"is larger than {self._limits.file_bytes // 1024} KiB")
                kept = ParsedFile(problems=(problem,))
            elif kept is None:  # the same blob under a name of the other sort, or more files than are kept
                data = got.get(file.oid) or (await contents.read([file.oid], max_bytes=MAX_BYTES))[file.oid]
                kept = parse_file(data, json=key[1], limits=self._limits)
                self._keep(key, kept)
            else:
                self._kept.move_to_end(key)
            found[path] = kept
        return found

    async def _parse(self, given: Mapping[str, bytes], wanted: Mapping[str, TreeFile]) -> None:
        """Keep what these files say. What is quick to read is read here, and all the rest elsewhere when it is much."""
        slow: dict[str, bytes] = {}
        spent = 0
        for path, data in given.items():
            quick = parse_quickly(data, json=is_json(path), limits=self._limits)
            if quick is None:
                slow[path] = data
            else:
                self._keep((wanted[path].oid, is_json(path)), quick)
            spent += len(data)
            if spent > SLICE:
                spent = 0
                await asyncio.sleep(0)
        much = len(slow) >= MANY or sum(map(len, slow.values())) > MUCH
        if self._workers is not None and much:
            for path, parsed in (await parsed_apart(self._workers, slow, self._limits)).items():
                self._keep((wanted[path].oid, is_json(path)), parsed)
            return
        for number, (path, data) in enumerate(slow.items()):
            self._keep((wanted[path].oid, is_json(path)), parse_file(data, json=is_json(path), limits=self._limits))
            if number % SLOW == SLOW - 1:
                await asyncio.sleep(0)

    def _keep(self, key: tuple[str, bool], file: ParsedFile) -> None:
        self._kept[key] = file
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    async def _ignore(self, contents: Contents, files: Mapping[str, TreeFile]) -> tuple[Ignore, list[Problem]]:
        """A list that cannot be taken is a problem: without it, what it leaves out would be applied."""
        file = files.get(IGNORE_FILE)
        if file is None:
            return Ignore(), []
        if not file.regular:
            return Ignore(), [
                Problem(IGNORE_FILE, 0, f"is a {file.kind}: it is not followed; put the list itself here")
            ]
        if file.size > MAX_LIST:
            return Ignore(), [Problem(IGNORE_FILE, 0, f"is larger than {MAX_LIST >> 10} KiB")]
        data = (await contents.read([file.oid], max_bytes=MAX_LIST))[file.oid]
        try:
            return Ignore.of(data.decode("utf-8", "surrogateescape")), []
        except TooLong as error:
            return Ignore(), [Problem(IGNORE_FILE, 0, str(error))]


def irregular(files: Mapping[str, TreeFile], ignore: Ignore, artifacts: Iterable[str] = ()) -> list[Problem]:
    """What looks like a file of documents and is none, and repositories within this one: what was there before must not go
    without a word. Files that documents name are judged with them."""
    odd = [path for path, file in files.items() if not file.regular]
    named = set(artifacts) if odd else set()
    found = []
    for path in odd:
        if path in named or is_hidden(path) or path == IGNORE_FILE:
            continue
        module = files[path].kind is FileKind.SUBMODULE
        if ignore.ignores(path, is_folder=True) if module else not is_read(path, ignore):
            continue
        put = "put the files here" if module else "put the file here"
        readable = path.encode(errors="surrogateescape").decode(errors="replace")
        message = f"is a {files[path].kind}: it is not followed; {put}, or name it in {IGNORE_FILE}"
        found.append(Problem(readable, 0, message))
    return found


def linked(snapshot: Snapshot, inventory: Inventory) -> list[Problem]:
    """Links where folders with documents that were applied have been. Of others nobody knows whether documents are meant."""
    links = {path for path, file in snapshot.files.items() if file.kind is FileKind.SYMLINK}
    links = {path for path in links if not snapshot.ignore.ignores(path)}
    still = {document.identity for document in snapshot.parsed.documents} if links else set()
    gone = (entry.path for entry in inventory if entry.identity not in still) if links else ()
    folders = {str(folder) for path in gone for folder in PurePosixPath(path).parents}
    message = "is a symlink, and was a folder with documents: it is not followed; put the folder here, or name it in"
    return [Problem(path, 0, f"{message} {IGNORE_FILE}") for path in sorted(links & folders)]


def _unchanged(files: Mapping[str, TreeFile], before: Snapshot | None) -> dict[str, ParsedFile]:
    """What was read of files that are still the same entries of the tree, and as much to be read as then."""
    if before is None or before.files.get(IGNORE_FILE) is not files.get(IGNORE_FILE):
        return {}
    there = before.files
    return {path: said for path, said in before.read.items() if files.get(path) is there[path]}


async def _files(mirror: Mirror, commit: str, root: str, before: Snapshot | None) -> dict[str, TreeFile]:
    if before is not None and before.files:
        try:
            changed = await mirror.changed(before.commit, commit, root)
        except NoSuchRef:  # the mirror was made anew
            changed = None
        if changed is not None and len(changed) <= FEW:
            files = dict(before.files)
            for path in under_names(changed, root):
                files.pop(path, None)
            for path in changed:
                files.update(under(await mirror.files(commit, path), root))
            return files
    return under(await mirror.files(commit, root), root)


def under_names(paths: Iterable[str], root: str) -> list[str]:
    prefix = f"{root}/" if root else ""
    return [path.removeprefix(prefix) for path in paths]


def under(files: Mapping[str, TreeFile], root: str) -> dict[str, TreeFile]:
    """Paths from the root of the repository, as paths from the synced folder."""
    prefix = f"{root}/" if root else ""
    return {path.removeprefix(prefix): file for path, file in files.items() if path.startswith(prefix)}


def in_repository(root: str, path: str) -> str:
    """A path of the synced folder, from the root of the repository."""
    return posixpath.join(root, path) if root else path


def normal_root(path: str, field: str = "spec.path") -> str:
    """The folder that a GitSync names, as Git has it. ValueError when it leaves the repository, or can be no folder in it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f'{field}: "{path}" leaves the repository; it must be a folder in it')
    try:
        return "/".join(checked("/".join(parts)) if parts else ())
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def definitions_of(parsed: Mapping[str, ParsedFile]) -> list[dict[str, Any]]:
    kind = "CustomResourceDefinition"
    return [found.document for file in parsed.values() for found in file.documents if found.document["kind"] == kind]


def kinds_of(parsed: Mapping[str, ParsedFile]) -> set[tuple[str, str]]:
    return {
        (str(found.document["apiVersion"]), str(found.document["kind"]))
        for file in parsed.values()
        for found in file.documents
    }
