"""References from one object to another, as fields of kinds."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trimtab.model.resource import Spec

Name = Annotated[str, Meta(min_length=1, max_length=253)]


class KindRef(Spec):
    """Names an object of any kind, in the namespace of the object that refers."""

    group: Annotated[str, Meta(max_length=253, description="The API group; empty for the core group.")]
    version: Annotated[str, Meta(min_length=1, max_length=63, description="The version of the API group.")]
    kind: Annotated[str, Meta(min_length=1, max_length=63, description="The kind, in CamelCase.")]
    name: Annotated[Name, Meta(description="The name of the object.")]
