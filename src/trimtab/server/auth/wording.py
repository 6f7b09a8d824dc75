"""Lists of strings as the reference server prints them in messages: Go's `%q`."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.model.schema.gotext import quoted

__all__ = ["quoted", "quoted_list"]


def quoted_list(texts: Iterable[str]) -> str:
    return "[" + " ".join(map(quoted, texts)) + "]"
