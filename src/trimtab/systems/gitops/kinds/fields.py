"""What the kinds of Git sync share: names, times, and the annotations that users see."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trimtab.model.markers import Rule
from trimtab.model.resource import Spec

Name = Annotated[str, Meta(min_length=1, max_length=253)]
Path = Annotated[str, Meta(max_length=1024)]
Text = Annotated[str, Meta(max_length=1024)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Generation = Annotated[int, Meta(ge=0, description="The metadata.generation that this speaks of.")]
Count = Annotated[int, Meta(ge=0)]
Commit = Annotated[str, Meta(max_length=64)]
LEAST = Rule("self.matches('[dw]') ? self.matches('[1-9]') : duration(self) >= duration('1s')", "must be 1s at least")
"""Of a period: shorter ones would keep the Git server and us busy for nothing. CEL's durations know no days and weeks."""

SYNC_NOW = "hub.trimtab.dev/sync-now"
"""Annotation of a GitSync: a new value asks for a run at once."""
CONFIRM = "hub.trimtab.dev/confirm"
"""Annotation of a GitSync: the held plan (`status.held.plan`) that may go on. Means nothing for any other."""
AUTHOR = "hub.trimtab.dev/changed-by"
"""Annotation of any object: who changed it, `Name <mail>`; the author of the commit that carries the change."""
SUSPENDED_BY = "hub.trimtab.dev/suspended-because"
"""Annotation of a GitSync: why it was suspended, for people."""


class SecretName(Spec):
    """A Secret of the same namespace."""

    name: Annotated[Name, Meta(description="Of the Secret.")]


class SecretKey(Spec):
    """One key of a Secret of the same namespace."""

    name: Annotated[Name, Meta(description="Of the Secret.")]
    key: Annotated[str, Meta(min_length=1, max_length=253, description="In it.")] = "token"
