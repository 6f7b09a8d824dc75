"""What a restore finds of a resource of the hub, and in which writes it comes back. Pure.

What was published under a version never changes, and `latest` is the version that was published last. So versions come back
in their order, each with its own files: the spec as a draft, the bytes of its files, then its version. A version that the
server has with other contents, or that would come after one that it was published before, cannot come back: that is a
conflict in which the archive never wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.cli.restore_plan import RESTORING, Act, Document, Verdict, differs
from trimtab.hub.artifacts.digests import digests
from trimtab.hub.offline import Kept

Spec = dict[str, Any]

WORDS = ("labels", "annotations", "description")
"""Of the metadata. Finalizers are those of whoever acts on a resource: they put them there again."""


def verdict(kept: Kept, present: Document | None, published: Mapping[str, Spec], missing: Mapping[str, str]) -> Verdict:
    """`published`: the versions that the server has, the oldest first. `missing`: files whose bytes the archive has not, by
    their digests."""
    found = _found(kept, present, published)
    if found.act is not Act.SAME and not found.settled and missing:
        name = next(iter(missing.values()))
        return Verdict(Act.LOST, f'the bytes of its file "{name}" are not in the archive')
    return found


def _found(kept: Kept, present: Document | None, published: Mapping[str, Spec]) -> Verdict:
    if present is None:
        return Verdict(Act.CREATE)
    if why := _unpublishable(kept, published):
        return Verdict(Act.CONFLICT, why, settled=True)
    annotations = present["metadata"].get("annotations") or {}
    if annotations.get(RESTORING) == kept.document["metadata"]["uid"]:
        return Verdict(Act.CREATE, "a restore of it was cut off")
    if difference := differs(kept.complete(kept.document), kept.complete(present), WORDS):
        return Verdict(Act.CONFLICT, f"{difference} is another on the server")
    for version in kept.versions:
        if version.name not in published:
            return Verdict(Act.CONFLICT, f"version {version.name} is not on the server")
    return Verdict(Act.SAME)


def _unpublishable(kept: Kept, published: Mapping[str, Spec]) -> str:
    """Why a version cannot come back; "" when all can, or are there."""
    for version in kept.versions:
        if version.name in published and unshared(published[version.name]) != unshared(version.spec):
            return f"version {version.name} is published there with other contents, and never changes"
    names = [version.name for version in kept.versions]
    absent = [name for name in names if name not in published]
    if absent and [*published] != names[: len(published)]:
        return f"version {absent[0]} cannot be published after {[*published][-1]}, which the server has"
    return ""


def stages(kept: Kept, published: Mapping[str, Spec]) -> list[Spec]:
    """The specs that a resource has in turn; the last is the one that it is left with."""
    found = [version.spec for version in kept.versions if version.name not in published]
    final = kept.document["spec"]
    return found if found and found[-1] == final else [*found, final]


def files_of(kept: Kept) -> dict[str, str]:
    """The bytes that a resource and its versions name: digest → name of a file."""
    specs = [kept.document["spec"], *(version.spec for version in kept.versions)]
    return {digest: name for spec in specs for name, digest in digests({"spec": spec}, kept.files).items()}


def draft(spec: Spec) -> Spec:
    """A spec that may still change."""
    return {word: value for word, value in spec.items() if word != "version"}


def unshared(spec: Spec) -> Spec:
    """A spec without what may change after it was published."""
    return {word: value for word, value in spec.items() if word != "sharing"}
