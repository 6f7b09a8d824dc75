"""Which object a write is about: names that the server makes, and what of it admission may change.

As in kube-apiserver, a webhook may give another name to an object that a POST creates, and never another namespace. Where the
URL names the object, kube-apiserver would store it there under a name by which nobody finds it: that is refused here.
"""

from __future__ import annotations

import secrets

from trimtab.model.errors import bad_request
from trimtab.server.strategy import Document
from trimtab.server.target import Target

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words
MAX_GENERATED = 63
OF_THE_SERVER = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")
ELSEWHERE = "the namespace of the provided object does not match the namespace sent on the request"


def generated(prefix: str) -> str:
    """A name for `generateName`."""
    return prefix[: MAX_GENERATED - 5] + "".join(secrets.choice(SUFFIX_ALPHABET) for _ in range(5))


def identify(mutated: Document, new: Document, target: Target, *, creates: bool) -> None:
    """Settle what admission left in `mutated` of the identity of `new`. What it may not change of a name that is there
    already, validation refuses."""
    metadata, before = mutated.get("metadata"), new["metadata"]
    if not isinstance(metadata, dict):
        metadata = mutated["metadata"] = {}
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and namespace not in ("", before.get("namespace", "")):
        raise bad_request(ELSEWHERE)
    for field in ("namespace", *OF_THE_SERVER):
        metadata.pop(field, None)
        if field in before:
            metadata[field] = before[field]
    if not metadata.get("name"):
        prefix = metadata.get("generateName")
        metadata["name"] = generated(prefix) if creates and prefix and isinstance(prefix, str) else ""
    if creates and target.name and metadata["name"] != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    mutated["apiVersion"], mutated["kind"] = new["apiVersion"], new["kind"]
