"""Files that belong to documents: from beside the document in Git to `/artifacts/<path>` of its object, and back.

Which bytes are on both sides is in the inventory, as `<sha256 of the bytes> <blob in Git>`: with what each side has now, that
tells who changed a file, and nothing is sent twice. Sensitive files are never written to Git; a file that Git does not have is
not taken away from the object: somebody may have put it there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.artifacts import artifacts as listed
from trimtab.client.artifacts import upload as sent
from trimtab.client.protocol import Named
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.model.hub import File
from trimtab.storage.blobs import digest_of
from trimtab.systems.gitops.inventory import Entry, Inventory
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.merging import FileSides
from trimtab.systems.gitops.parsing import Identity, Parsed, PathError, Problem, SourceDocument, artifact_path
from trimtab.systems.gitops.planning import ACTS, FileEdit, FileStep, Plan, Refusal
from trimtab.systems.gitops.reading import Contents, Snapshot

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror

MAX_BYTES = 32 << 20
OCTETS = "application/octet-stream"
PIECE = 1 << 20

Guard = Callable[[], AbstractAsyncContextManager[Any]]


class Unsent(msgspec.Struct, frozen=True):
    """A file that the server did not take."""

    identity: Identity
    path: str
    reason: str
    message: str


def problems(documents: Iterable[SourceDocument], snapshot: Snapshot, knowledge: Knowledge) -> list[Problem]:
    """Files that leave the folder of their document, or are no files."""
    found = []
    for document in documents:
        for name in knowledge.file_names(document.document):
            try:
                path = artifact_path(document.path, name)
            except PathError as error:
                found.append(Problem(document.path, document.line, str(error)))
                continue
            file = snapshot.files.get(path)
            if file is not None and not file.regular:
                found.append(Problem(document.path, document.line, f'"{name}" is no plain file'))
            elif file is not None and file.size > MAX_BYTES:
                found.append(Problem(document.path, document.line, _over(name)))
    return found


def overtaken(parsed: Parsed, inventory: Inventory) -> list[Problem]:
    """Documents that were applied and are named as files now: nobody who names a file means to delete an object."""
    if not parsed.claimed:
        return []
    still = {document.identity for document in parsed.documents}
    found = []
    for claim in parsed.claimed:
        document = claim.document
        entry = inventory.get(document.identity)
        if entry is not None and entry.path == document.path and document.identity not in still:
            message = f"is a document that was applied, and is named as a file by {claim.by}: {document.identity}"
            hint = "would be deleted; rename the file, if it is meant so"
            found.append(Problem(document.path, document.line, f"{message} {hint}"))
    return found


def moved(snapshot: Snapshot, inventory: Inventory, knowledge: Knowledge) -> frozenset[Identity]:
    """Objects of which Git has other files than the last sync left there."""
    found = set()
    for document in snapshot.parsed.documents:
        names = knowledge.file_names(document.document)
        entry = inventory.get(document.identity) if names else None
        for name in names if entry is not None and entry.uid else ():
            file = snapshot.files.get(_path(document.path, name))
            if entry is not None and file is not None and _recorded(entry, name)[1] != file.oid:
                found.add(document.identity)
    return frozenset(found)


def touched(
    entries: Iterable[Entry], raw: Mapping[Identity, dict[str, Any]], knowledge: Knowledge
) -> frozenset[Identity]:
    """Objects whose files somebody changed in the system since the last sync."""
    found = set()
    for entry in entries:
        for file in knowledge.files(raw.get(entry.identity, {})):
            was = _recorded(entry, file.name)[0]
            if was and file.digest and file.digest != was:
                found.add(entry.identity)
    return frozenset(found)


async def compared(
    documents: Iterable[SourceDocument],
    raw: Mapping[Identity, dict[str, Any]],
    read: Container[Identity],
    inventory: Inventory,
    snapshot: Snapshot,
    knowledge: Knowledge,
    contents: Contents,
) -> dict[Identity, tuple[FileSides, ...]]:
    """The files of documents that are not on both sides as the last sync left them. `raw` are the live objects among
    `read`, as the server has them; of others the files are taken to be as they were. Bytes of Git are only read when
    neither side is as it was."""
    taken: set[str] = set()
    found: dict[Identity, tuple[FileSides, ...]] = {}
    for document in documents:
        live = raw.get(document.identity)
        named, held = knowledge.file_names(document.document), knowledge.files(live) if live else ()
        if not named and not held:
            continue
        taken = taken or {*snapshot.parsed.artifacts, *(each.path for each in snapshot.parsed.documents)}
        entry = inventory.get(document.identity)
        if document.identity in read and not _is_same(entry, live):
            entry = None  # its files are those of another object
        if document.identity not in read and entry is not None:
            held = tuple(File(name=name, digest=_recorded(entry, name)[0]) for name in entry.artifacts)
        sides = _sides(document, {file.name: file for file in held}, entry, snapshot, taken, knowledge)
        if sides:
            found[document.identity] = tuple([await _known(each, snapshot, contents) for each in sides])
    return found


async def upload(
    client: ApiClient, contents: Contents, steps: Iterable[FileStep], inventory: Inventory, *, guard: Guard
) -> list[Unsent]:
    """Send what the system is to get, and know what is on both sides then."""
    failed = []
    for step in steps:
        entry = inventory.get(step.identity)
        if entry is None or not entry.uid:
            continue
        digest = step.digest
        if step.send:
            data = (await contents.read([step.oid], max_bytes=MAX_BYTES))[step.oid]
            try:
                async with guard():
                    digest = await _send(client, entry.version, step.identity, step.name, data)
            except StatusError as error:
                failed.append(Unsent(step.identity, step.path, error.reason or "Refused", error.message[:1024]))
                continue
        _record(inventory, entry, step.name, digest, step.oid)
    return failed


def readable(plan: Plan, knowledge: Knowledge, large: Mapping[Identity, str] = MappingProxyType({})) -> Plan:
    """The plan without what would write a document to Git that could not be read from there again: that is refused. `large`
    are the objects with files that are too large, and which."""
    refused = {
        edit.identity: Refusal(edit.identity, edit.path, f"it is not written to Git: {why}")
        for edit in plan.write_back
        if edit.action != "delete" and (why := _unreadable(edit, knowledge) or large.get(edit.identity, ""))
    }
    if not refused:
        return plan
    left = {name: tuple(s for s in getattr(plan, name) if s.identity not in refused) for name in ACTS}
    return msgspec.structs.replace(plan, **left, refused=(*plan.refused, *refused.values()))


async def too_large(
    client: ApiClient, edits: Iterable[FileEdit], raw: Mapping[Identity, dict[str, Any]], knowledge: Knowledge
) -> dict[Identity, str]:
    """Of the files that edits write, those that have more bytes than are read from Git."""
    found = {}
    for edit in edits:
        live = raw.get(edit.identity, {})
        names = {file.name for file in knowledge.files(live) if file.digest and not file.sensitive}
        written = names if edit.action == "create" else names & {*edit.files}
        if edit.action == "delete" or not written:
            continue
        kind = Named(str(live["apiVersion"]), str(live["kind"]))
        for file in await listed(client, kind, edit.identity.name, namespace=edit.identity.namespace):
            if file.path in written and (file.size or 0) > MAX_BYTES:
                found[edit.identity] = _over(file.path)
    return found


def unwritable(
    edits: Iterable[FileEdit],
    raw: Mapping[Identity, dict[str, Any]],
    documents: Iterable[SourceDocument],
    knowledge: Knowledge,
) -> dict[Identity, str]:
    """Edits that must not be made, and why: a file of theirs would be written over a document, or over another one's file."""
    edits = tuple(edits)
    owners: dict[str, Identity | None] = {edit.path: None for edit in edits}  # None: it is a document itself
    for document in documents:
        owners[document.path] = None
        for name in knowledge.file_names(document.document):
            owners.setdefault(_path(document.path, name), document.identity)
    found: dict[Identity, str] = {}
    for edit in edits:
        live = raw.get(edit.identity, {}) if edit.action != "delete" else {}
        for path in (_path(edit.path, file.name) for file in knowledge.files(live)):
            owner = owners.setdefault(path, edit.identity)
            if owner != edit.identity:
                found[edit.identity] = (
                    f"{edit.path}: its file {path} is {'a document' if owner is None else f'of {owner}'}"
                )
    return found


async def download(
    client: ApiClient,
    edits: Sequence[FileEdit],
    raw: Mapping[Identity, dict[str, Any]],
    files: Mapping[str, Any],
    mirror: Mirror,
    knowledge: Knowledge,
) -> dict[str, bytes | None]:
    """The files of documents that are written to Git; None for those of documents that go."""
    found: dict[str, bytes | None] = {}
    for edit in edits:
        if edit.action == "delete":
            for name in knowledge.file_names(edit.before or {}):
                path = _path(edit.path, name)
                if path in files:
                    found[path] = None
            continue
        live = raw.get(edit.identity, {})
        there = {file.name: file for file in knowledge.files(live)}
        for name in there if edit.action == "create" else edit.files:
            file, path = there.get(name), _path(edit.path, name)
            if file is not None and file.digest:
                data = None if file.sensitive else await _read(client, live, edit.identity, name)
                if data is not None and not await _is_there(mirror, files.get(path), data):
                    found[path] = data
            elif path in files:
                found[path] = None
    return found


def remember(
    inventory: Inventory,
    edits: Iterable[FileEdit],
    written: Mapping[str, bytes | None],
    snapshot: Snapshot,
    knowledge: Knowledge,
) -> None:
    """What was `written` to Git, by its path, is on both sides now. `snapshot` is the revision that has it."""
    documents = {document.identity: document for document in snapshot.parsed.documents}
    for edit in edits:
        document = documents.get(edit.identity)
        names = knowledge.file_names(document.document) if document is not None else ()
        for name in dict.fromkeys((*edit.files, *names)):
            path, entry = _path(edit.path, name), inventory.get(edit.identity)
            if path not in written or entry is None:
                continue
            data, there = written[path], snapshot.files.get(path)
            if data is None or there is None:
                _record(inventory, entry, name, "", "")
            else:
                _record(inventory, entry, name, digest_of(data), there.oid)


def _sides(
    document: SourceDocument,
    held: Mapping[str, File],
    entry: Entry | None,
    snapshot: Snapshot,
    taken: Container[str],
    knowledge: Knowledge,
) -> list[FileSides]:
    """Those that are not as they were. What Git has at the path of a file that only the object names is that file, unless it
    is a document's own, or another one's file."""
    named, found = knowledge.file_names(document.document), []
    for name in dict.fromkeys((*named, *held)):
        path, file = _path(document.path, name), held.get(name)
        there = snapshot.files.get(path) if name in named or path not in taken else None
        was_system, was_git = _recorded(entry, name) if entry is not None else ("", "")
        sides = FileSides(
            name=name,
            path=path,
            git=there.oid if there is not None and there.regular else "",
            system=(file.digest or "") if file is not None else "",
            was_git=was_git,
            was_system=was_system,
            in_git=name in named,
            in_system=file is not None,
            sensitive=file is not None and file.sensitive,
        )
        if sides.git_changed or sides.system_changed or not (sides.in_git and sides.in_system):
            found.append(sides)
    hidden = {file.name for file in knowledge.files(document.document) if file.sensitive} if found else ()
    return [msgspec.structs.replace(sides, sensitive=True) if sides.name in hidden else sides for sides in found]


async def _known(sides: FileSides, snapshot: Snapshot, contents: Contents) -> FileSides:
    """With the digest of the bytes in Git, where it has to be known."""
    if not (sides.git_changed and sides.system_changed) or snapshot.files[sides.path].size > MAX_BYTES:
        return sides
    data = (await contents.read([sides.git], max_bytes=MAX_BYTES))[sides.git]
    return msgspec.structs.replace(sides, git_digest=digest_of(data))


def _is_same(entry: Entry | None, live: Mapping[str, Any] | None) -> bool:
    return entry is not None and live is not None and live.get("metadata", {}).get("uid") == entry.uid


def _recorded(entry: Entry, name: str) -> tuple[str, str]:
    """The digest and the blob that a file had after the last sync."""
    digest, _, oid = entry.artifacts.get(name, "").partition(" ")
    return digest, oid


def _record(inventory: Inventory, entry: Entry, name: str, digest: str, oid: str) -> None:
    known = {each: value for each, value in entry.artifacts.items() if each != name}
    if digest or oid:
        known[name] = f"{digest} {oid}"
    inventory.put(msgspec.structs.replace(entry, artifacts=known))


async def _send(client: ApiClient, version: str, identity: Identity, name: str, data: bytes) -> str:
    """In pieces: a server takes no large body at once. Returns the digest that it has now."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), PIECE):
            yield data[start : start + PIECE]

    return await sent(
        client,
        Named(version, identity.kind),
        identity.name,
        name,
        pieces(),
        namespace=identity.namespace,
        size=len(data),
        expected=digest_of(data),
    )


async def _read(client: ApiClient, live: Mapping[str, Any], identity: Identity, name: str) -> bytes | None:
    place = await client.place(Named(str(live["apiVersion"]), str(live["kind"])))
    path = f"{place.path(identity.namespace, identity.name, 'artifacts')}/{quote(name)}"
    try:
        return (await client.transport.call(Call(method="GET", path=path, accept=f"{OCTETS},*/*"))).body
    except StatusError as error:
        if error.code == 404:
            return None
        raise


async def _is_there(mirror: Mirror, file: Any, data: bytes) -> bool:
    if file is None or not file.regular or file.size != len(data):
        return False
    return bool((await mirror.read([file.oid], max_bytes=MAX_BYTES))[file.oid] == data)


def _over(name: str) -> str:
    return f'"{name}" has more than {MAX_BYTES} bytes'


def _unreadable(edit: FileEdit, knowledge: Knowledge) -> str:
    for file in knowledge.files(edit.document or {}):
        try:
            artifact_path(edit.path, file.name)
        except PathError as error:
            return str(error)
    return ""


def _path(document: str, name: str) -> str:
    try:
        return artifact_path(document, name)
    except PathError:
        return ""
