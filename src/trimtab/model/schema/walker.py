"""A schema compiled to closures that prune, default and validate an object in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trimtab.model.errors import FieldError


class Walk(msgspec.Struct):
    """What a walk found. The object itself was pruned and defaulted in place."""

    errors: list[FieldError]
    unknown: list[str]  # paths of the fields that were pruned: "spec.foo", "spec.items[0].bar"


class Schema:
    """A structural schema (OpenAPI v3 with x-kubernetes extensions). Compiled at first use."""

    def __init__(self, document: Mapping[str, Any] | Callable[[], Mapping[str, Any]]) -> None:
        self._document = document

    @property
    def document(self) -> Mapping[str, Any]:
        if callable(self._document):
            self._document = self._document()
        return self._document

    def walk(self, obj: dict[str, Any]) -> Walk:
        """Prune, default and validate `obj` (not its apiVersion, kind and metadata) in place."""
        raise NotImplementedError

    def rules(self, obj: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        """What `x-kubernetes-validations` say of a walked object."""
        raise NotImplementedError
