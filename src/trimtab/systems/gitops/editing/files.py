"""All edits of a sync in all of their files: what is written, and which files go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimtab.systems.gitops.editing import json_files, yaml_files
from trimtab.systems.gitops.editing.dumping import arranged, block
from trimtab.systems.gitops.editing.yaml_files import Change, EditError
from trimtab.systems.gitops.parsing import is_json, parse_file
from trimtab.systems.gitops.planning import FileEdit

BOM = "\ufeff"


def apply_edits(files: Mapping[str, bytes], edits: Sequence[FileEdit]) -> dict[str, bytes | None]:
    """The files that change; None for those that go. `files` has every path that an edit names, but for new ones. Raises
    EditError."""
    by_file: dict[str, list[FileEdit]] = {}
    for edit in edits:
        by_file.setdefault(edit.path, []).append(edit)
    changed: dict[str, bytes | None] = {}
    for path, its in sorted(by_file.items()):
        try:
            data = changed[path] = _applied(files.get(path), path, its)
            _check(data, path)
        except EditError as error:
            raise EditError(f"{path}: {error}") from None
    return {path: data for path, data in changed.items() if data != files.get(path)}


def _applied(data: bytes | None, path: str, edits: Sequence[FileEdit]) -> bytes | None:
    if edits[0].action == "create":
        if data is not None or len(edits) > 1:
            raise EditError("exists")
        return new_file(edits[0].document or {}, path)
    if data is None:
        raise EditError("does not exist")
    if any(edit.action == "create" for edit in edits):
        raise EditError("exists")
    return _changed(data, path, [_change(edit) for edit in edits])


def _check(data: bytes | None, path: str) -> None:
    """EditError when it could not be read again: too large, nested too deeply, with a key that is too long for YAML. Then
    nothing of the revision would be applied."""
    problems = parse_file(data, json=is_json(path)).problems if data is not None else ()
    if problems:
        raise EditError(f"what would be written cannot be read again: {problems[0].message}")


def _change(edit: FileEdit) -> Change:
    return Change(edit.index, edit.item, edit.before or {}, None if edit.action == "delete" else edit.document or {})


def new_file(document: dict[str, Any], path: str = "") -> bytes:
    """A new file of one document: stable YAML (JSON by its suffix)."""
    return (json_files.new(arranged(document)) if is_json(path) else block(document)).encode()


def edit_document(
    data: bytes, path: str, index: int, before: dict[str, Any], after: dict[str, Any], *, item: int = -1
) -> bytes:
    """The file with the change from `before` to `after` (both normalised) made in one of its documents."""
    return _changed(data, path, [Change(index, item, before, after)]) or b""


def delete_document(data: bytes, path: str, index: int, *, item: int = -1) -> bytes | None:
    """The file without one of its documents; None when nothing is left in it."""
    return _changed(data, path, [Change(index, item, {}, None)])


def _changed(data: bytes, path: str, changes: Sequence[Change]) -> bytes | None:
    return _kept(data, lambda text: (json_files if is_json(path) else yaml_files).edit(text, changes))


def _kept(data: bytes, change: Callable[[str], str | None]) -> bytes | None:
    """Change the text; its byte order mark and its line ends stay."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise EditError("is not UTF-8") from None
    mark = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(BOM)
    windows = "\r\n" in text and "\n" not in text.replace("\r\n", "")
    found = change(text.replace("\r\n", "\n") if windows else text)
    if found is None:
        return None
    return (mark + (found.replace("\n", "\r\n") if windows else found)).encode()
