"""What one does with an object whether or not its kind has a class."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from trimtab.client.protocol import AnyKind, Client, Named, Object
from trimtab.model.document import convert, plain
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped

O = TypeVar("O", bound=Object)  # noqa: E741 - an object
R = TypeVar("R", bound=Resource)


def kind_of(obj: Object) -> AnyKind:
    """By what to ask a client for objects of this one's kind."""
    return type(obj) if isinstance(obj, Resource) else Named(obj.api_version, obj.kind)


def uid_of(obj: Object) -> str:
    """Empty for one that did not come from the API."""
    return obj.metadata.uid or ""


def is_deleting(obj: Object) -> bool:
    return bool(obj.metadata.deletion_timestamp)


def with_metadata(obj: O, **changes: Any) -> O:
    """A copy with these fields of the metadata changed, named as ObjectMeta names them."""
    if isinstance(obj, Resource):
        return obj.replace(metadata=msgspec.structs.replace(obj.metadata, **changes))
    names = dict(zip(msgspec.structs.asdict(obj.metadata), obj.metadata.__struct_encode_fields__, strict=True))
    written = {names[name]: plain(value) for name, value in changes.items()}
    return Untyped({**obj.raw, "metadata": {**obj.raw.get("metadata", {}), **written}})  # type: ignore[return-value]


def uncached(client: Client) -> Client:
    """For a read that decides about a write: the client behind a cache, or the same one when there is none."""
    behind: Client = getattr(client, "live", client)
    return behind


def typed(obj: Object, cls: type[R]) -> R:
    """As `cls`. A client whose scheme does not know the class gives objects untyped."""
    return obj if isinstance(obj, cls) else convert(obj.raw, cls)
