"""What kinds of the hub can do beyond being read and written, as OpenAPI tells it: files, published versions, lineage.

A kind has what it has: nothing is told of the others.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.model.openapi_components import API_VERSION, KIND, META, flag, listed, number, object_, parameter, text

Document = dict[str, Any]


class Parts(msgspec.Struct, frozen=True):
    """Of one kind: whether it has files, published versions, and a lineage that may be asked for."""

    files: bool = False
    versions: bool = False
    lineage: bool = False


NONE = Parts()

VERSION = parameter("version", "string", "A published version, or latest. Without one: the object as it is now.")
LINEAGE = parameter(
    "includeLineage", "boolean", "Also where the object was synced from. It needs the verb lineage on the resource."
)
DIGEST = parameter("digest", "string", "sha256:… of the bytes. Others are refused.")
PATH = parameter("path", "string", "The path of a file, as the spec names it; its slashes stay as they are.", "path")

LINEAGE_TAKEN = ("get", "list", "patch", "post", "put")
"""Actions that show an object, or write one."""


def further(parts: Parts, action: str, sub: str = "") -> list[Document]:
    """Parameters that an operation on the object has, beside those of every kind."""
    found = [VERSION] if parts.versions and action == "get" and not sub else []
    return [*found, LINEAGE] if parts.lineage and action in LINEAGE_TAKEN else found


_ARTIFACT = {
    "digest": text("Of its bytes, once they were given."),
    "path": text("As the spec names it, relative to the document."),
    "sensitive": flag("Whether it never goes to Git in clear."),
    "size": number("In bytes, once they were given."),
}
_LIST_META: Document = {
    "description": "The state of the object that was looked at.",
    "allOf": [{"$ref": f"#/components/schemas/{META}ListMeta"}],
}


def schemas(prefix: str) -> dict[str, Document]:
    """What the parts answer. `prefix`: the name of the kind's definition; several kinds of a group have files."""
    head = {"apiVersion": API_VERSION, "kind": KIND}
    item = object_("One file.", _ARTIFACT, required=["path", "sensitive"])
    version = object_(
        "One published version.",
        {"created": text("When it was published.", format="date-time"), "version": text("Its name.")},
        required=["version"],
    )
    written = object_(
        "The state that the object has now.",
        {"generation": number("Counts changes of the desired state."), "resourceVersion": text("Its state. Opaque.")},
    )
    return {
        f"{prefix}.Artifact": object_(
            "A file that was written.", {**head, "metadata": written, **_ARTIFACT}, required=["path"]
        ),
        f"{prefix}.ArtifactList": object_(
            "The files of one object.",
            {**head, "metadata": _LIST_META, "items": listed("By their paths.", item)},
            required=["items"],
        ),
        f"{prefix}.VersionList": object_(
            "The published versions of one object.",
            {
                **head,
                "metadata": _LIST_META,
                "items": listed("The newest first.", version),
                "latest": text("The newest; empty for none."),
            },
            required=["items", "latest"],
        ),
    }
