"""What a type cannot say of a field, said in `Annotated`: `rule_ref: Annotated[KindRef, Immutable()]`.

Some markers become schema and CEL, so that any API server enforces them; the others are for our own writers (client,
Terraform, Git write-back), which find them through `fields_of`. Each says which it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Marker:
    """Base of all markers."""


@dataclass(frozen=True)
class Immutable(Marker):
    """Never changes once the object exists: setting it later and taking it away are changes too. CEL."""


@dataclass(frozen=True)
class CreateOnly(Marker):
    """May be given only at creation. It may be left out later, but neither given anew nor changed. CEL."""


@dataclass(frozen=True)
class ReadOnly(Marker):
    """Written by the system, never by a user: writers leave it out."""


@dataclass(frozen=True)
class WriteOnly(Marker):
    """Given by users and never shown again by the world behind it: no drift is read from it."""


@dataclass(frozen=True)
class Sensitive(Marker):
    """Kept out of logs, plans and Git. `format: password` in the schema of a string."""


@dataclass(frozen=True)
class Initial(Marker):
    """Set at creation, then someone else's: later writes of ours leave it out."""


@dataclass(frozen=True)
class AlwaysEmit(Marker):
    """Sent even when it has its default value."""


@dataclass(frozen=True)
class Artifact(Marker):
    """Names a blob by its digest; the blob lives as long as the object."""


@dataclass(frozen=True)
class Unordered(Marker):
    """A list of scalars whose order means nothing and in which nothing is twice: `x-kubernetes-list-type: set`."""


@dataclass(frozen=True, init=False)
class Keyed(Marker):
    """A list of structs told apart by these fields: `x-kubernetes-list-type: map`. Names are those on the wire."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        if not keys:
            raise TypeError("Keyed needs the name of a field")
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True)
class Ref(Marker):
    """Names another object of this kind: `Target`, or `Deployment.apps` for a kind of another group."""

    kind: str


@dataclass(frozen=True)
class Rule(Marker):
    """A CEL rule of one's own on a field, or on a class by `rules=`. `self` is the value. CEL."""

    rule: str
    message: str
    reason: str = ""  # FieldValueInvalid, FieldValueForbidden, FieldValueRequired or FieldValueDuplicate
    field: str = ""  # where the problem is, when it is not the value itself: `.spec.max`


@dataclass(frozen=True, init=False)
class OneOf(Marker):
    """Exactly one of these fields of a class is set; at most one when not `required`. Given by `one_of=`. CEL.

    Names are those on the wire.
    """

    names: tuple[str, ...]
    required: bool = True

    def __init__(self, *names: str, required: bool = True) -> None:
        if len(names) < 2:
            raise TypeError("OneOf needs the names of two fields or more")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "required", required)
