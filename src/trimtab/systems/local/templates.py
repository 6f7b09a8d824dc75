"""A Pod from a Deployment's template, and the hash that tells which template a pod is from. Pure but for its name.

Caveat: the hash is of the template as the API serves it. A later version of the API that fills in more defaults, when the
Deployment is written again, makes it another, and the pods are replaced.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.kubernetes import Deployment, Pod
from trimtab.model.objectmeta import OwnerReference
from trimtab.runtime.owners import owner_reference
from trimtab.systems.local.pods.names import FINALIZER, HASH, NODE

Document = Mapping[str, Any]
LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no words come of these


def template_hash(template: Document) -> str:
    """Ten letters. The same for the same template, whatever the order of its fields."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="deterministic")).digest()
    return "".join(LETTERS[byte % len(LETTERS)] for byte in digest[:10])


def pod_of(deployment: Deployment, template: Document, hashed: str, chance: random.Random) -> Pod:
    """A new pod of the Deployment."""
    metadata = template.get("metadata") or {}
    tail = "".join(chance.choices(LETTERS, k=5))
    return _pod(
        name=f"{_stem(deployment)}-{hashed}-{tail}",
        deployment=deployment,
        labels={**(metadata.get("labels") or {}), HASH: hashed},
        annotations=metadata.get("annotations") or {},
        spec=template.get("spec") or {},
    )


def pod_like(deployment: Deployment, pod: Pod, chance: random.Random) -> Pod:
    """One more of a pod that is there."""
    labels = dict(pod.metadata.labels or {})
    tail = "".join(chance.choices(LETTERS, k=5))
    return _pod(
        name=f"{_stem(deployment)}-{labels.get(HASH, '')}-{tail}",
        deployment=deployment,
        labels=labels,
        annotations=dict(pod.metadata.annotations or {}),
        spec=pod.spec or {},
    )


def _stem(deployment: Deployment) -> str:
    """With the rest a name of 63 letters at most, which is also a host's."""
    return deployment.name[:45].rstrip("-.")


def _pod(*, name: str, deployment: Deployment, labels: Document, annotations: Document, spec: Document) -> Pod:
    owner: OwnerReference = owner_reference(deployment)
    return msgspec.convert(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": deployment.namespace,
                "labels": dict(labels),
                "annotations": dict(annotations),
                "finalizers": [FINALIZER],
                "ownerReferences": [msgspec.to_builtins(owner)],
            },
            "spec": {**spec, "nodeName": NODE},
        },
        Pod,
    )
