"""A file of somebody's own with one hub kind: published versions, and files."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.hub import File, HubKind, HubResource, Sharing
from trimtab.model.resource import Spec
from trimtab.runtime.system import System


class LetterSpec(Spec):
    version: Annotated[str, Meta(max_length=63)] = ""
    text: str = ""
    files: tuple[File, ...] = ()
    sharing: Sharing = Sharing()


class LetterStatus(Spec):
    phase: str | UnsetType = UNSET


class Letter(HubResource, group="letters", version="v1", plural="letters", short=("ltr",)):
    """Something that is written."""

    spec: LetterSpec
    status: LetterStatus | UnsetType = UNSET

    def version(self) -> str:
        return self.spec.version

    def files(self) -> tuple[File, ...]:
        return self.spec.files


SYSTEM = System(name="letters", hub=(HubKind(cls=Letter),))
