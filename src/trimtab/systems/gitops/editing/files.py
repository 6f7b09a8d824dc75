"""All edits of a sync in all of their files: what is written, and which files go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimtab.systems.gitops.editing import json_files, yaml_files
from trimtab.systems.gitops.editing.dumping import arranged, block
from trimtab.systems.gitops.editing.yaml_files import EditError
from trimtab.systems.gitops.parsing import is_json
from trimtab.systems.gitops.planning import FileEdit

BOM = "\ufeff"


def apply_edits(files: Mapping[str, bytes], edits: Sequence[FileEdit]) -> dict[str, bytes | None]:
    """The files that change; None for those that go. `files` has every path that an edit names, but for new ones.

    Edits of one file are made from its end, so that the places of the others stay what they are. Raises EditError."""
    changed: dict[str, bytes | None] = {}
    for edit in sorted(edits, key=lambda edit: (edit.path, -edit.index, -edit.item)):
        data = changed[edit.path] if edit.path in changed else files.get(edit.path)
        try:
            changed[edit.path] = _applied(data, edit)
        except EditError as error:
            raise EditError(f"{edit.path}: {error}") from None
    return {path: data for path, data in changed.items() if data != files.get(path)}


def _applied(data: bytes | None, edit: FileEdit) -> bytes | None:
    if edit.action == "create":
        if data is not None:
            raise EditError("exists")
        return new_file(edit.document or {}, edit.path)
    if data is None:
        raise EditError("does not exist")
    if edit.action == "delete":
        return delete_document(data, edit.path, edit.index, item=edit.item)
    return edit_document(data, edit.path, edit.index, edit.before or {}, edit.document or {}, item=edit.item)


def new_file(document: dict[str, Any], path: str = "") -> bytes:
    """A new file of one document: stable YAML (JSON by its suffix)."""
    return (json_files.new(arranged(document)) if is_json(path) else block(document)).encode()


def edit_document(
    data: bytes, path: str, index: int, before: dict[str, Any], after: dict[str, Any], *, item: int = -1
) -> bytes:
    """The file with the change from `before` to `after` (both normalised) made in one of its documents."""

    def change(text: str) -> str | None:
        if is_json(path):
            return json_files.edit(text, item, before, after)
        return yaml_files.edit(text, index, item, before, after)

    return _kept(data, change) or b""


def delete_document(data: bytes, path: str, index: int, *, item: int = -1) -> bytes | None:
    """The file without one of its documents; None when nothing is left in it."""

    def change(text: str) -> str | None:
        return json_files.delete(text, item) if is_json(path) else yaml_files.delete(text, index, item)

    return _kept(data, change)


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
