"""From the system to Git: edits of files, one commit, then one push that expects the branch where we read it.

Guarantees: comments and layout of files stay. What is secret (Secrets, sensitive fields and files) is not written. A push that
meets another one raises Moved, and nothing was pushed. When nobody can tell whether a push arrived, the branch is fetched and
looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.client.api import ApiClient
from trimtab.model.clock import Clock
from trimtab.runtime.git.errors import Moved, NoSuchRef, Uncertain
from trimtab.systems.gitops import artifacts, elsewhere
from trimtab.systems.gitops.authors import author_of, together
from trimtab.systems.gitops.hiding import for_git
from trimtab.systems.gitops.inventory import Entry, Inventory
from trimtab.systems.gitops.kinds import Committer
from trimtab.systems.gitops.knowing import Knowledge, without
from trimtab.systems.gitops.merging import Base, normal
from trimtab.systems.gitops.parsing import (
    IGNORE_FILE,
    Identity,
    Ignore,
    Parsed,
    SourceDocument,
    is_json,
    is_read,
    parse_file,
)
from trimtab.systems.gitops.planning import FileEdit, Refusal
from trimtab.systems.gitops.reading import Snapshot, in_repository, under

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror

MAX_BYTES = 256 << 20
SUBJECT = 72


class Target(msgspec.Struct, frozen=True):
    """Where changes are written."""

    mirror: Any
    branch: str
    root: str


class By(msgspec.Struct, frozen=True, kw_only=True):
    """Who commits."""

    committer: Committer
    sync: str
    clock: Clock
    sign: Any = None


class Committed(msgspec.Struct, frozen=True):
    """`commit`, which is to be pushed upon `parent`, is "" when there was nothing to commit. `written` are the edits that
    the branch has then, as they were made there; `skipped` those that could not be made, and why."""

    commit: str = ""
    written: tuple[FileEdit, ...] = ()
    skipped: tuple[Refusal, ...] = ()
    files: dict[str, bytes | None] = {}
    """Files beside documents, by path; None for those that went."""
    parent: str = ""


class Prepared(msgspec.Struct, frozen=True):
    """What a commit upon `parent` would have: the `changes` of files of documents. `files` are what is there now, `edits`
    those that can be made and `skipped` those that cannot; of the documents in `gone` nothing is there any more."""

    parent: str
    files: Mapping[str, Any]
    edits: tuple[FileEdit, ...]
    changes: dict[str, bytes | None]
    skipped: tuple[Refusal, ...] = ()
    gone: tuple[FileEdit, ...] = ()


async def prepare(
    target: Target,
    snapshot: Snapshot,
    edits: Sequence[FileEdit],
    *,
    knowledge: Knowledge,
    raw: Mapping[Identity, dict[str, Any]],
    exports: Inventory | None = None,
) -> Prepared:
    """See `commit`. Nothing is written. RemoteError."""
    mirror: Mirror = target.mirror
    parent, files = await _there(target, snapshot, same=exports is None)
    content = await _content(mirror, files, {edit.path for edit in edits})
    if exports is not None:
        edits = [_elsewhere(edit, content) for edit in edits]
    gone = tuple(edit for edit in edits if not edit.path)
    wanted = [hidden(edit, knowledge) for edit in edits if edit.path]
    there = snapshot.parsed.documents if exports is None else elsewhere.documents(exports)
    barred = artifacts.unwritable(wanted, raw, there, knowledge)
    barred |= await _in_the_way(mirror, parent, target.root, files, wanted)
    if exports is None:
        barred |= _unread(wanted, snapshot.ignore)
    skipped = [_skipped(edit, barred[edit.identity]) for edit in wanted if edit.identity in barred]
    wanted = [edit for edit in wanted if edit.identity not in barred]
    changes, failed = await asyncio.to_thread(_edited, content, wanted)  # of many files it takes long
    skipped += failed
    left = {refusal.identity for refusal in skipped}
    made = tuple(edit for edit in wanted if edit.identity not in left)
    return Prepared(parent, files, made, changes, tuple(skipped), gone)


async def commit(
    target: Target,
    snapshot: Snapshot,
    edits: Sequence[FileEdit],
    by: By,
    *,
    knowledge: Knowledge,
    client: ApiClient,
    raw: Mapping[Identity, dict[str, Any]],
    exports: Inventory | None = None,
) -> Committed:
    """One commit of these edits, which no branch has until it is pushed. `raw` are the objects as the server has them, with
    what tells of their files. `exports`: what was written to the target before, which is not where the snapshot was read.
    RemoteError."""
    from trimtab.runtime.git.objects import Person

    mirror: Mirror = target.mirror
    prepared = await prepare(target, snapshot, edits, knowledge=knowledge, raw=raw, exports=exports)
    parent, wanted, skipped = prepared.parent, prepared.edits, prepared.skipped
    beside = await artifacts.download(client, wanted, raw, prepared.files, mirror, knowledge)
    changes = prepared.changes | beside
    changed = {in_repository(target.root, path): data for path, data in changes.items()}
    written = (*wanted, *prepared.gone)
    if not changed:
        return Committed(written=written, skipped=skipped)
    author, trailers = together((author_of(raw.get(edit.identity) or edit.live) for edit in wanted), by.committer)
    committer = Person(name=by.committer.name, email=by.committer.email)
    made = await mirror.commit(
        parent or None,
        changed,
        message=message_of(wanted, by.sync, trailers),
        author=Person(name=author[0], email=author[1]),
        committer=committer,
        sign=by.sign,
    )
    if made == parent:
        return Committed(written=written, skipped=skipped)
    return Committed(made, written, skipped, beside, parent)


async def push(mirror: Mirror, commit: str, branch: str, expected: str | None) -> None:
    """Until it is known whether it arrived. Moved when it did not, and the branch is elsewhere."""
    try:
        await mirror.push(commit, branch, expected=expected)
    except Uncertain:
        try:
            head = (await mirror.fetch(branch))[branch]
        except NoSuchRef:
            head = ""
        if head == commit or (head and await mirror.is_ancestor(commit, head)):
            return  # it arrived
        raise Moved(f"the push to {branch} did not arrive; it is made anew") from None


def hidden(edit: FileEdit, knowledge: Knowledge) -> FileEdit:
    """The edit without what must not be read in Git: sensitive fields stay there as they are, new ones are left out."""
    if edit.document is None:
        return edit
    names = (str(edit.document.get("apiVersion", "")), str(edit.document.get("kind", "")))
    document = for_git(edit.document, edit.before, knowledge.sensitive(*names))
    for path in knowledge.read_only(*names):
        document = without(document, path)
    return edit if document is edit.document else msgspec.structs.replace(edit, document=document)


def record(inventory: Inventory, edits: Iterable[FileEdit], parsed: Parsed) -> None:
    """What was written is the base from now on. `parsed` is the revision that has it."""
    current = {document.identity: document for document in parsed.documents}
    for edit in edits:
        if edit.action == "delete":
            inventory.remove(edit.identity)
            continue
        entry = inventory.get(edit.identity) or Entry(edit.identity)
        document = current.get(edit.identity)
        if document is None:
            continue  # it is not read
        git = document.document
        inventory.put(
            msgspec.structs.replace(
                entry,
                version=str(git.get("apiVersion", entry.version)),
                uid=str((edit.live or {}).get("metadata", {}).get("uid") or entry.uid),
                path=document.path,
                index=document.index,
                item=document.item,
                digest=document.digest,
                base=Base.of(git, edit.live) if edit.live is not None else entry.base,
            )
        )
    for document in parsed.documents:  # deletions move what comes after them in a file
        known = inventory.get(document.identity)
        if known is not None and known.digest == document.digest:
            place = (document.path, document.index, document.item)
            if (known.path, known.index, known.item) != place:
                inventory.put(msgspec.structs.replace(known, path=place[0], index=place[1], item=place[2]))


def message_of(edits: Sequence[FileEdit], sync: str, trailers: Iterable[str] = ()) -> str:
    """A subject that names what changed, then a line a document."""
    words = {"create": "Add", "update": "Change", "delete": "Remove"}
    if len(edits) == 1:
        subject = f"{words[edits[0].action]} {edits[0].identity.kind} {edits[0].identity.name}"
    else:
        actions = {edit.action for edit in edits}
        subject = f"{words[actions.pop()] if len(actions) == 1 else 'Change'} {len(edits)} documents"
    lines = [f"{words[edit.action]} {edit.identity}" for edit in sorted(edits, key=lambda e: e.identity)[:100]]
    body = "\n".join(lines) if len(edits) > 1 else ""
    footer = "\n".join((f"Synced-By: {sync}", *trailers))
    return "\n\n".join(part for part in (subject[:SUBJECT], body, footer) if part) + "\n"


async def _there(target: Target, snapshot: Snapshot, *, same: bool) -> tuple[str, Mapping[str, Any]]:
    """The commit to build upon, and its files below the root."""
    if same:
        return snapshot.commit, snapshot.files
    try:
        head = (await target.mirror.fetch(target.branch))[target.branch]
    except NoSuchRef:
        return "", {}
    return head, under(await target.mirror.files(head, target.root), target.root)


async def _content(mirror: Mirror, files: Mapping[str, Any], paths: Iterable[str]) -> dict[str, bytes]:
    found = {path: files[path] for path in paths if path in files and files[path].regular}
    if not found:
        return {}
    read = await mirror.read([file.oid for file in found.values()], max_bytes=MAX_BYTES)
    return {path: read[file.oid] for path, file in found.items()}


def _edited(content: Mapping[str, bytes], edits: Iterable[FileEdit]) -> tuple[dict[str, bytes | None], list[Refusal]]:
    """The files that change, and the edits that cannot be made; those of one file are made together, or none of them."""
    from trimtab.systems.gitops.editing import EditError, apply_edits

    by_file: dict[str, list[FileEdit]] = {}
    for edit in edits:
        by_file.setdefault(edit.path, []).append(edit)
    changes: dict[str, bytes | None] = {}
    skipped: list[Refusal] = []
    for path, its in by_file.items():
        try:
            changes |= apply_edits({path: content[path]} if path in content else {}, its)
        except EditError as error:
            skipped += [_skipped(edit, str(error)) for edit in its]
    return changes, skipped


def _unread(edits: Iterable[FileEdit], ignore: Ignore) -> dict[Identity, str]:
    """New documents that Git would have and no run would find: each would write them anew."""
    unread = [edit for edit in edits if edit.action == "create" and not is_read(edit.path, ignore)]
    return {edit.identity: f"no file of this name is read: see {IGNORE_FILE}, or exclude the object" for edit in unread}


async def _in_the_way(
    mirror: Mirror, parent: str, root: str, files: Mapping[str, Any], edits: Iterable[FileEdit]
) -> dict[Identity, str]:
    """New documents that would be below what is no folder, or in the place of one."""
    new = [edit for edit in edits if edit.action == "create"]
    if not new:
        return {}
    for folder in (root, *_above(root)) if parent and not files else ():
        if folder and folder in await mirror.files(parent, folder):
            return {edit.identity: f"{folder} is no folder" for edit in new}
    folders = {folder for path in files for folder in _above(path)}
    found = {}
    for edit in new:
        blocking = next((path for path in _above(edit.path) if path in files), "")
        if blocking or edit.path in folders:
            found[edit.identity] = f"{blocking} is no folder" if blocking else f"{edit.path} is a folder"
    return found


def _above(path: str) -> list[str]:
    """The folders that a path is in."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(1, len(names))]


def _skipped(edit: FileEdit, why: str) -> Refusal:
    return Refusal(edit.identity, edit.path, f"is not written to Git: {why.removeprefix(f'{edit.path}: ')}")


def _elsewhere(edit: FileEdit, content: Mapping[str, bytes]) -> FileEdit:
    """An edit of what a destination of its own has now, so that it says all that the document does. What is there and is not
    this document is not touched; of one that is gone already there is no path."""
    data = content.get(edit.path)
    found = _document_in(data, edit) if data is not None else None
    if edit.action == "delete":
        place = {"index": found.index, "item": found.item} if found is not None else {"path": ""}
        return msgspec.structs.replace(edit, **place)
    if found is None:
        return msgspec.structs.replace(edit, action="create", index=0, item=-1, before=None)
    before, document = normal(found.document), normal(edit.document or {})
    return msgspec.structs.replace(
        edit, action="update", index=found.index, item=found.item, before=before, document=document
    )


def _document_in(data: bytes, edit: FileEdit) -> SourceDocument | None:
    """Where the document of an edit is in a file; one without a namespace is of ours."""
    wanted = edit.identity
    for found in parse_file(data, json=is_json(edit.path)).documents:
        named = msgspec.structs.replace(found.identity, namespace=found.identity.namespace or wanted.namespace)
        if named == wanted:
            return found
    return None


__all__ = [
    "By",
    "Committed",
    "Prepared",
    "Target",
    "commit",
    "hidden",
    "message_of",
    "normal",
    "prepare",
    "push",
    "record",
]
