"""A schema compiled to closures that prune, default and validate an object in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema import budget, finding, shape

if TYPE_CHECKING:
    from trimtab.model.schema.rules import Rules

Document = Mapping[str, Any]


class Walk(msgspec.Struct):
    """What a walk found. The object itself was pruned and defaulted in place."""

    errors: list[FieldError]
    unknown: list[str]  # paths of the fields that were pruned: "spec.foo", "spec.items[0].bar"


class Schema:
    """A structural schema (OpenAPI v3 with x-kubernetes extensions). Compiled at first use.

    A native schema is that of a built-in kind: a Go struct. null is an absent field, `$ref`s point into `definitions`,
    there are no value validations or defaults, and the detail of a type error is the Go type that was expected.
    """

    def __init__(
        self,
        document: Document | Callable[[], Document],
        *,
        native: bool = False,
        definitions: Document | Callable[[], Document] | None = None,
    ) -> None:
        self._document = document
        self._definitions = definitions
        self._native = native
        self._check: finding.Check | None = None
        self._rules: Rules | None = None
        self._ruled: bool | None = None
        self.slow = False
        """Whether its rules took long, the last time."""

    @property
    def native(self) -> bool:
        return self._native

    @property
    def document(self) -> Document:
        if callable(self._document):
            self._document = self._document()
        return self._document

    @property
    def definitions(self) -> Document:
        if callable(self._definitions):
            self._definitions = self._definitions()
        return self._definitions or {}

    def walk(self, obj: dict[str, Any], old: dict[str, Any] | None = None) -> Walk:
        """Prune, default and validate `obj` (not its apiVersion, kind and metadata) in place.

        With the `old` state, errors in parts that did not change are forgiven (ratcheting)."""
        check = self._check or self._compile()
        budget.begin()
        try:
            found = check(obj)
        except RecursionError:
            return Walk([FieldError("<nil>", FieldProblem.INVALID, "", "exceeded max depth")], [])
        if found is None:
            return Walk([], [])
        unknown = finding.unknown(found)
        if old is not None and not self._native:
            from trimtab.model.schema.ratchet import forgive

            found = forgive(found, self.document, obj, old)
        return Walk(finding.errors(found), unknown)

    def default(self, obj: dict[str, Any]) -> None:
        """Put the defaults only: what was stored before the schema had them is read with them."""
        if not self._native:
            budget.begin()
            shape.default(obj, self.document)

    def prune(self, obj: dict[str, Any]) -> list[str]:
        """Remove unknown fields only; their paths."""
        if self._native:
            return self.walk(obj).unknown
        return shape.prune(obj, self.document, resource=True)

    @property
    def ruled(self) -> bool:
        """Whether there is any `x-kubernetes-validations`."""
        if self._ruled is None:
            self._ruled = not self._native and has_rules(self.document)
        return self._ruled

    def rules(
        self,
        obj: dict[str, Any],
        old: dict[str, Any] | None,
        errors: Sequence[FieldError] = (),
        warn: Callable[[str], None] | None = None,
    ) -> list[FieldError]:
        """What `x-kubernetes-validations` say of a walked object. `errors` are those found before: some leave the
        object in no state to be judged. `warn` is told what is forgiven because it did not change."""
        if not self.ruled:
            return []
        if any(error.problem in _BLOCKING for error in errors):
            return [FieldError("<nil>", FieldProblem.INVALID, None, _UNCHECKED)]
        if self._rules is None:
            from trimtab.model.schema.rules import Rules

            self._rules = Rules(self.document)
        return self._rules.evaluate(obj, old, warn)

    def _compile(self) -> finding.Check:
        if self._native:
            from trimtab.model.schema.native import compile_native

            self._check = compile_native(self.document, self.definitions)
        else:
            from trimtab.model.schema.compiler import compile_root

            self._check = compile_root(self.document)
        return self._check


_BLOCKING = frozenset(
    (
        FieldProblem.UNSUPPORTED,
        FieldProblem.REQUIRED,
        FieldProblem.TOO_LONG,
        FieldProblem.TOO_MANY,
        FieldProblem.TYPE_INVALID,
    )
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def has_rules(document: Any) -> bool:
    """Whether a schema has rules anywhere."""
    if isinstance(document, Mapping):
        if document.get("x-kubernetes-validations"):
            return True
        return any(has_rules(part) for part in document.values())
    return isinstance(document, list) and any(map(has_rules, document))
