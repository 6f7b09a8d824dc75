"""How the server treats hub kinds: two more words of metadata, of which one is the namespace; who changed a resource last, which
cannot be forged; files that keep the digests of their bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from trimtab.hub.artifacts.digests import FilePaths, keep_digests
from trimtab.hub.contract import Refused
from trimtab.hub.proxies.default import Defaulter, complete
from trimtab.hub.scheme import HubScheme
from trimtab.hub.versions import from_hub, to_hub
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.kind import Kind
from trimtab.server.actor import ACTOR
from trimtab.server.custom import Custom
from trimtab.server.strategy import Document

MAX_DESCRIPTION = 4096


class HubStrategy(Custom):
    """Of one hub kind, in the group that a suffix gives it. `changed_by` and `lineage` are annotations: who changed it last,
    and where it was synced from."""

    own_metadata = ("project", "description")

    def __init__(
        self,
        kind: Kind,
        *,
        changed_by: str,
        lineage: str = "",
        files: FilePaths = FilePaths(),  # noqa: B008
        defaulter: Defaulter | None = None,
    ) -> None:
        super().__init__(kind)
        self._changed_by = changed_by
        self._aside = {changed_by, lineage}
        self._defaulter = defaulter
        self.files = files

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        self.settle(new, old, subresource, walked=True)

    def settle(self, new: Document, old: Document | None, subresource: str, *, walked: bool) -> None:
        """`walked`: by this kind's schema."""
        super().prepare(new, old, subresource)
        if self.files and subresource != "artifacts":  # that door writes them
            keep_digests(new, old, self.files)
        if not subresource:
            # so that it is compared with what is there in one spelling; what is of a shape that a defaulter cannot complete
            # is told further below, with everything else that is wrong
            with contextlib.suppress(Exception):
                complete(new, self.kind, self._defaulter, walked=walked)
        self._attribute(new, old)

    def _attribute(self, new: Document, old: Document | None) -> None:
        """Who changed it last is what the server knows, whatever a writer says."""
        metadata = new["metadata"]
        user = ACTOR.get() if old is None or self._differs(new, old) else ""
        if not user and old is not None:
            user = _annotations(old).get(self._changed_by, "")
        annotations = {name: value for name, value in _annotations(new).items() if name != self._changed_by}
        if user:
            annotations[self._changed_by] = user
        metadata.pop("annotations", None)
        if annotations:
            metadata["annotations"] = annotations

    def _differs(self, new: Document, old: Document) -> bool:
        """Whether anything changed that people write: the rest of metadata is for machines."""
        if self.bumps_generation(new, old):
            return True
        after, before = new["metadata"], old["metadata"]
        if any((after.get(word) or None) != (before.get(word) or None) for word in ("labels", "description")):
            return True
        one, other = _annotations(new), _annotations(old)
        return any(one.get(name) != other.get(name) for name in (one.keys() | other.keys()) - self._aside)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        return [*super().validate(new, old, subresource), *self.about(new)]

    def about(self, new: Document) -> list[FieldError]:
        """What is wrong with the two words of metadata."""
        metadata = new["metadata"]
        errors: list[FieldError] = []
        project, namespace = metadata.get("project", ""), metadata.get("namespace", "")
        if self.kind.namespaced and project != namespace:
            why = f'a project is the namespace of its name: it must be "{namespace}", or ask for namespace "{project}"'
            errors.append(FieldError("metadata.project", FieldProblem.INVALID, project, why))
        if not self.kind.namespaced and project:
            why = "not allowed on this type: it belongs to no project"
            errors.append(FieldError("metadata.project", FieldProblem.FORBIDDEN, "", why))
        if len(metadata.get("description") or "") > MAX_DESCRIPTION:
            why = f"must have at most {MAX_DESCRIPTION} characters"
            errors.append(FieldError("metadata.description", FieldProblem.INVALID, "…", why))
        return errors


class OlderStrategy(Custom):
    """Of another version of a hub kind: what is written and read goes through the version that is kept."""

    own_metadata = HubStrategy.own_metadata

    def __init__(self, kind: Kind, kept: HubStrategy, scheme: HubScheme) -> None:
        super().__init__(kind)
        self._kept = kept
        self._scheme = scheme

    @property
    def storage(self) -> str:
        return self._kept.kind.resource

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        super().prepare(new, old, subresource)
        with contextlib.suppress(Refused):  # of another shape: told when it is checked
            kept = self.to_storage(new)
            self._kept.settle(kept, None if old is None else self.to_storage(old), subresource, walked=False)
            new.update(self.from_storage(kept))

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        return [*super().validate(new, old, subresource), *self._kept.about(new)]

    def to_storage(self, obj: Document) -> Document:
        return to_hub(obj, self._scheme)

    def from_storage(self, obj: Document) -> Document:
        return from_hub(obj, self.kind.api_version, self._scheme)


def _annotations(document: Document) -> dict[str, str]:
    found: dict[str, str] = document["metadata"].get("annotations") or {}
    return found
