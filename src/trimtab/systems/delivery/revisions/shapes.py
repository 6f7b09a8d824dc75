"""What in a pod template says the same as leaving it out: defaults of Kubernetes, and where an empty value has a meaning.

Every entry is part of the hash. One that is changed or removed changes revisions, and `changes` must then take the new
ones for the old. Adding a default is harmless only for templates that never wrote it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trimtab.model.quantity import Quantity

Document = Mapping[str, Any]
RESERVED_PREFIX = "delivery.trimtab.dev/"
RESERVED = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One struct of a template, or the items of a list of them."""

    below: Mapping[str, Shape] = {}
    defaults: Mapping[str, tuple[Any, ...]] = {}
    """The values of a field that mean the same as none."""
    kept: frozenset[str] = frozenset()
    """Fields whose empty value means something else than none."""
    free: bool = False
    """The names are the user's own: all values count, empty ones too."""
    quantity: bool = False
    """The value is an amount."""
    adjust: Callable[[Document], Document] | None = None
    """For what depends on several fields, before anything else."""


def thousandths(value: Any) -> int | None:
    """An amount; None for what is none. Kubernetes keeps nothing finer of what a pod asks for."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return Quantity(value if isinstance(value, str | int) else repr(value)).milli_value
    except ValueError:
        return None


def pull_policy(image: Any) -> str:
    """The policy of an image that names none: a tag that moves is always pulled."""
    name, at, _ = str(image or "").partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return "Always" if tag == "latest" or not (colon or at) else "IfNotPresent"


def _metadata(given: Document) -> Document:
    """Only these reach a pod, and what is ours is no part of what the user wants."""
    kept = {name: value for name, value in given.items() if name in ("labels", "annotations", "finalizers")}
    for name in ("labels", "annotations"):
        if isinstance(kept.get(name), Mapping):
            kept[name] = {key: value for key, value in kept[name].items() if not _is_reserved(key)}
    return kept


def _is_reserved(key: str) -> bool:
    return key.startswith(RESERVED_PREFIX) or key in RESERVED


def _container(given: Document) -> Document:
    if given.get("imagePullPolicy") == pull_policy(given.get("image")):
        return _without(given, "imagePullPolicy")
    return given


def _image_volume(given: Document) -> Document:
    if given.get("pullPolicy") == pull_policy(given.get("reference")):
        return _without(given, "pullPolicy")
    return given


def _resources(given: Document) -> Document:
    """A limit without a request requests as much."""
    limits, requests = given.get("limits"), given.get("requests")
    if not isinstance(limits, Mapping) or not isinstance(requests, Mapping):
        return given
    own = {name: value for name, value in requests.items() if not _same_amount(value, limits.get(name))}
    return {**given, "requests": own}


def _same_amount(one: Any, other: Any) -> bool:
    amount = thousandths(one)
    return amount is not None and amount == thousandths(other)


def _pod(given: Document) -> Document:
    """`serviceAccount` is the old name of `serviceAccountName`."""
    account = given.get("serviceAccountName") or given.get("serviceAccount")
    others = _without(given, "serviceAccount", "serviceAccountName")
    return others if account in (None, "", "default") else {**others, "serviceAccountName": account}


def _without(given: Document, *names: str) -> Document:
    return {name: value for name, value in given.items() if name not in names}


PLAIN = Shape()
FREE = Shape(free=True)
AMOUNT = Shape(quantity=True)
AMOUNTS = Shape(free=True, below={"*": AMOUNT})
_SELECTOR = Shape(below={"matchLabels": FREE})
_OPTIONAL = Shape(defaults={"optional": (False,)})
_FIELD = Shape(defaults={"apiVersion": ("v1",)})
_RESOURCE_FIELD = Shape(below={"divisor": AMOUNT}, defaults={"divisor": ("0m",)})
_ITEM = Shape(below={"fieldRef": _FIELD, "resourceFieldRef": _RESOURCE_FIELD})
_RESOURCES = Shape(below={"limits": AMOUNTS, "requests": AMOUNTS}, adjust=_resources)
_ACTION = Shape(below={"httpGet": Shape(defaults={"path": ("/",), "scheme": ("HTTP",)})})
_PROBE = Shape(
    below=_ACTION.below,
    defaults={
        "failureThreshold": (3, 0),
        "initialDelaySeconds": (0,),
        "periodSeconds": (10, 0),
        "successThreshold": (1, 0),
        "timeoutSeconds": (1, 0),
    },
)
_ENV = Shape(
    below={
        "valueFrom": Shape(
            below={
                "configMapKeyRef": _OPTIONAL,
                "fieldRef": _FIELD,
                "resourceFieldRef": _RESOURCE_FIELD,
                "secretKeyRef": _OPTIONAL,
            }
        )
    }
)
_CONTAINER = Shape(
    below={
        "env": _ENV,
        "envFrom": Shape(below={"configMapRef": _OPTIONAL, "secretRef": _OPTIONAL}),
        "lifecycle": Shape(below={"postStart": _ACTION, "preStop": _ACTION}),
        "livenessProbe": _PROBE,
        "ports": Shape(defaults={"hostPort": (0,), "protocol": ("TCP",)}),
        "readinessProbe": _PROBE,
        "resources": _RESOURCES,
        "securityContext": Shape(defaults={"privileged": (False,), "procMount": ("Default",)}),
        "startupProbe": _PROBE,
        "volumeMounts": Shape(
            defaults={"mountPropagation": ("None",), "readOnly": (False,), "recursiveReadOnly": ("Disabled",)}
        ),
    },
    defaults={
        "stdin": (False,),
        "stdinOnce": (False,),
        "terminationMessagePath": ("/dev/termination-log",),
        "terminationMessagePolicy": ("File",),
        "tty": (False,),
    },
    adjust=_container,
)
_FILES = Shape(defaults={"defaultMode": (420,), "optional": (False,)})
_READ_ONLY = Shape(defaults={"readOnly": (False,)})
_CLAIM = Shape(
    below={"resources": _RESOURCES, "selector": _SELECTOR},
    defaults={"volumeMode": ("Filesystem",)},
    kept=frozenset({"selector", "storageClassName"}),
)
_SOURCES = Shape(
    below={
        "configMap": _OPTIONAL,
        "downwardAPI": Shape(below={"items": _ITEM}),
        "secret": _OPTIONAL,
        "serviceAccountToken": Shape(defaults={"expirationSeconds": (3600,)}),
    }
)
_VOLUME_SOURCES = {
    "awsElasticBlockStore": _READ_ONLY,
    "azureDisk": Shape(
        defaults={"cachingMode": ("ReadWrite",), "fsType": ("ext4",), "kind": ("Shared",), "readOnly": (False,)}
    ),
    "azureFile": _READ_ONLY,
    "cephfs": _READ_ONLY,
    "cinder": _READ_ONLY,
    "configMap": _FILES,
    "csi": Shape(below={"volumeAttributes": FREE}, defaults={"readOnly": (False,)}),
    "downwardAPI": Shape(below={"items": _ITEM}, defaults={"defaultMode": (420,)}),
    "emptyDir": Shape(below={"sizeLimit": AMOUNT}),
    "ephemeral": Shape(
        below={
            "volumeClaimTemplate": Shape(
                below={"metadata": Shape(below={"annotations": FREE, "labels": FREE}), "spec": _CLAIM}
            )
        }
    ),
    "fc": _READ_ONLY,
    "flexVolume": Shape(below={"options": FREE}, defaults={"readOnly": (False,)}),
    "gcePersistentDisk": _READ_ONLY,
    "glusterfs": _READ_ONLY,
    "hostPath": PLAIN,
    "image": Shape(adjust=_image_volume),
    "iscsi": Shape(defaults={"iscsiInterface": ("default",), "readOnly": (False,)}),
    "nfs": _READ_ONLY,
    "persistentVolumeClaim": _READ_ONLY,
    "projected": Shape(below={"sources": _SOURCES}, defaults={"defaultMode": (420,)}),
    "rbd": Shape(
        defaults={"keyring": ("/etc/ceph/keyring",), "pool": ("rbd",), "readOnly": (False,), "user": ("admin",)}
    ),
    "scaleIO": Shape(defaults={"fsType": ("xfs",), "readOnly": (False,), "storageMode": ("ThinProvisioned",)}),
    "secret": _FILES,
}
_VOLUME = Shape(below=_VOLUME_SOURCES, kept=frozenset(_VOLUME_SOURCES) - {"emptyDir"})  # that is what none is
_POD_AFFINITY_TERM = Shape(
    below={"labelSelector": _SELECTOR, "namespaceSelector": _SELECTOR},
    kept=frozenset({"labelSelector", "namespaceSelector"}),  # {} selects everything, and none nothing
)
_POD_AFFINITY = Shape(
    below={
        "preferredDuringSchedulingIgnoredDuringExecution": Shape(below={"podAffinityTerm": _POD_AFFINITY_TERM}),
        "requiredDuringSchedulingIgnoredDuringExecution": _POD_AFFINITY_TERM,
    }
)
_SPREAD = Shape(
    below={"labelSelector": _SELECTOR},
    defaults={"minDomains": (1,), "nodeAffinityPolicy": ("Honor",), "nodeTaintsPolicy": ("Ignore",)},
    kept=frozenset({"labelSelector"}),
)
_POD = Shape(
    below={
        "affinity": Shape(below={"podAffinity": _POD_AFFINITY, "podAntiAffinity": _POD_AFFINITY}),
        "containers": _CONTAINER,
        "initContainers": _CONTAINER,
        "nodeSelector": FREE,
        "overhead": AMOUNTS,
        "resources": _RESOURCES,
        "securityContext": Shape(defaults={"fsGroupChangePolicy": ("Always",), "supplementalGroupsPolicy": ("Merge",)}),
        "tolerations": Shape(defaults={"operator": ("Equal",)}),
        "topologySpreadConstraints": _SPREAD,
        "volumes": _VOLUME,
    },
    defaults={
        "dnsPolicy": ("ClusterFirst",),
        "enableServiceLinks": (True,),
        "hostIPC": (False,),
        "hostNetwork": (False,),
        "hostPID": (False,),
        "hostUsers": (True,),
        "preemptionPolicy": ("PreemptLowerPriority",),
        "restartPolicy": ("Always",),
        "schedulerName": ("default-scheduler",),
        "setHostnameAsFQDN": (False,),
        "shareProcessNamespace": (False,),
        "terminationGracePeriodSeconds": (30,),
    },
    adjust=_pod,
)
TEMPLATE = Shape(below={"metadata": Shape(below={"annotations": FREE, "labels": FREE}, adjust=_metadata), "spec": _POD})
