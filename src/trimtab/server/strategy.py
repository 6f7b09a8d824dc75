"""How the server treats a kind beyond what its schema says. The base class is a custom resource; built-in kinds override.

Every hook is pure: it sees documents and changes only the one it is given. I/O belongs to verbs and admission.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trimtab.model.document import same
from trimtab.model.errors import FieldError
from trimtab.model.kind import Column, Kind
from trimtab.model.metadata import dns_subdomain_name

if TYPE_CHECKING:
    from trimtab.server.auth.identity import User

Document = dict[str, Any]


class Strategy:
    """The rules of one kind. `subresource` is "", "status", "scale", …: which door the write came through."""

    unconditional_update = False  # PUT without a resourceVersion is allowed
    create_on_update = False  # PUT or apply of an absent object creates it (apply always may)
    has_generation = True
    native = False  # decoded into a Go struct by the real server: other messages for wrong types, null means absent
    graceful = True  # a deletion that waits says for how long, and counts as a change of the desired state
    terminating = False  # the kind itself is being deleted: nothing new is created
    returns_deleted = False  # DELETE answers with the object, not with a Status
    orphans = False  # a deletion that names no propagation policy leaves what the object owns
    deletion_warning = ""  # said to who names no propagation policy
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    subresources: tuple[str, ...] = ()  # beside status and scale
    name_check: Callable[..., Sequence[str]] = staticmethod(dns_subdomain_name)
    selectable: Mapping[str, str] = {}  # fields of field selectors, beside name and namespace → as `fields` names them
    unselectable = "field label not supported: {}"  # said of other fields, where there are any
    finalizers_on_delete: tuple[str, ...] = ()  # added when a deletion begins
    own_metadata: tuple[str, ...] = ()  # strings in metadata beyond those that every object may have

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    @property
    def storage(self) -> str:
        """The resource under which objects are stored; two kinds may share one (Event in both its groups)."""
        return self.kind.resource

    def to_storage(self, obj: Document) -> Document:
        return obj

    def from_storage(self, obj: Document) -> Document:
        return obj

    def default(self, obj: Document) -> None:
        """Defaults that depend on other fields; the schema's own were set before."""

    def deleting(self, obj: Document) -> None:
        """What changes in an object whose deletion has begun and must wait for finalizers."""

    def held(self, obj: Document) -> bool:
        """Whether something beside `metadata.finalizers` keeps a deleted object from going."""
        return False

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        """Reset what this door may not write. `old` is None on create. Metadata was dealt with before."""
        if not self.kind.status:
            return
        if subresource == "status" and old is not None:
            for field in [f for f in new if f not in ("apiVersion", "kind", "metadata", "status")]:
                del new[field]
            new.update({f: v for f, v in old.items() if f not in ("apiVersion", "kind", "metadata", "status")})
        elif old is None:
            new.pop("status", None)
        elif "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)

    def reset(self, subresource: str) -> dict[str, Any] | None:
        """The fields that this door does not write, so that who writes there does not own them; None: the usual ones."""
        return None if self.kind.status else {}

    def authored(self, new: Document, user: User) -> None:
        """Write down who creates an object, where the kind wants to know."""

    def bumps_generation(self, new: Document, old: Document) -> bool:
        """Whether the change between two states is one of the desired state."""
        ignored = {"metadata", "status"} if self.kind.status else {"metadata"}
        keys = (new.keys() | old.keys()) - ignored
        return any(not same(new.get(key), old.get(key)) for key in keys)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        """What schema and metadata checks cannot say (immutable fields, references between fields)."""
        return ()

    def warnings(self, new: Document, old: Document | None) -> Sequence[str]:
        return ()

    def fields(self, obj: Document) -> dict[str, str]:
        """What field selectors may ask for, beside metadata.name and metadata.namespace."""
        return {}

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.kind.columns

    def cells(self, obj: Document) -> list[Any] | None:
        """One table row, in the order of `columns`; None: find the cells by the columns' paths."""
        return None
