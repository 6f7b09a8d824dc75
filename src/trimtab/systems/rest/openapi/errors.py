"""What is wrong with a document, in one line: where it is, what it is, and what would be right."""

from __future__ import annotations


class DocumentError(Exception):
    """`file` is relative to the document's root; `pointer` is a JSON pointer into it, "" for the whole file."""

    def __init__(self, file: str, pointer: str, why: str) -> None:
        self.file = file
        self.pointer = pointer
        self.why = why
        super().__init__(f"{file}#{pointer}: {why}" if pointer else f"{file}: {why}")
