"""Namespace, ConfigMap, Secret, ServiceAccount."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_label_name
from trimtab.model.names import label_key_problems
from trimtab.server.builtin import names
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, each, forbidden, immutable, invalid, required, too_long
from trimtab.server.strategy import Document

MAX_DATA = 1024 * 1024
"""The most that all values of a ConfigMap or a Secret may hold together, in bytes."""

FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"
FROZEN = "field is immutable when `immutable` is set"


class Namespace(Native):
    graceful = False
    returns_deleted = True
    verbs = tuple(verb for verb in Native.verbs if verb != "deletecollection")
    subresources = ("finalize",)
    name_check = staticmethod(dns_label_name)
    selectable: Mapping[str, str] = {"status.phase": "status.phase"}
    shown = (NAME, Column("Status", ".status.phase", description="The status of the namespace"), AGE)

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        if subresource == "status":
            super().prepare(new, old, subresource)
            return
        spec = new["spec"] if isinstance(new.get("spec"), dict) else {}
        if old is None:
            given = spec.get("finalizers")
            finalizers = list(given) if isinstance(given, list) else []
            if FINALIZER not in finalizers:
                finalizers.append(FINALIZER)
            new["spec"] = {**spec, "finalizers": finalizers}
            new["status"] = {"phase": "Active"}
            self.complete(new)  # a generated name was not known before
            return
        new["status"] = old.get("status", {})
        if subresource != "finalize":
            new["spec"] = old.get("spec", {})

    def complete(self, obj: Document) -> None:
        """Every namespace carries its name as a label, so that selectors can choose it."""
        name = obj["metadata"].get("name")
        labels = obj["metadata"].get("labels")
        if name and (labels is None or isinstance(labels, dict)):
            obj["metadata"]["labels"] = {**(labels or {}), NAME_LABEL: name}
        if isinstance(obj.get("status"), dict) and not obj["status"].get("phase"):
            obj["status"]["phase"] = "Active"

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            phase = at(new, "status", "phase") or ""
            terminating = bool(new["metadata"].get("deletionTimestamp"))
            if terminating and phase != "Terminating":
                return [invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
            if not terminating and phase != "Active":
                return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
            return ()
        errors = []
        for index, finalizer in enumerate(at(new, "spec", "finalizers") or []):
            path = f"spec.finalizers[{index}]" if subresource == "finalize" else "spec.finalizers"
            errors += each(path, finalizer, label_key_problems(finalizer))
            if "/" not in finalizer and finalizer not in (FINALIZER, "orphan", "foregroundDeletion"):
                errors.append(
                    invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")
                )
        return errors

    def deleting(self, obj: Document) -> None:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}

    def held(self, obj: Document) -> bool:
        """A namespace goes when its content is gone: who empties it takes the finalizer away."""
        return bool(at(obj, "spec", "finalizers"))

    def fields(self, obj: Document) -> dict[str, str]:
        return {"status.phase": at(obj, "status", "phase") or "", "name": obj["metadata"].get("name", "")}

    def row(self, obj: Document) -> Sequence[Any]:
        return (at(obj, "status", "phase") or "",)


class ConfigMap(Native):
    shown = (NAME, Column("Data", ".data", description="The number of keys"), AGE)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        errors = _frozen(new, old, "data", "binaryData")
        data, binary = new.get("data") or {}, new.get("binaryData") or {}
        size = 0
        for key, value in data.items():
            if problems := names.config_key(key):
                errors += each(f"data[{key}]", key, problems)
            if key in binary:
                errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
            size += len(value.encode())
        for key, value in binary.items():
            errors += each(f"binaryData[{key}]", key, names.config_key(key))
            size += _decoded_size(value)
        if size > MAX_DATA:
            errors.append(too_long("[]", MAX_DATA))
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        return (len(obj.get("data") or {}) + len(obj.get("binaryData") or {}),)


class Secret(Native):
    selectable: Mapping[str, str] = {"type": "type"}
    shown = (NAME, Column("Type", ".type"), Column("Data", ".data", description="The number of keys"), AGE)

    def complete(self, obj: Document) -> None:
        """`stringData` is written and never read back: it goes into `data`."""
        plain, data = obj.get("stringData"), obj.get("data")
        if isinstance(plain, dict) and all(isinstance(v, str) for v in plain.values()):
            if plain and (data is None or isinstance(data, dict)):
                encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
                obj["data"] = {**(data or {}), **encoded}
            del obj["stringData"]

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        errors = immutable("type", new.get("type"), old.get("type")) if old is not None else []
        errors += _frozen(new, old, "data")
        data = new.get("data") or {}
        for key in data:
            if problems := names.config_key(key):
                errors += each(f"data[{key}]", key, problems)
        if sum(_decoded_size(value) for value in data.values()) > MAX_DATA:
            errors.append(too_long("data", MAX_DATA))
        return [*errors, *_missing_keys(new, data)]

    def fields(self, obj: Document) -> dict[str, str]:
        return {"type": obj.get("type") or ""}

    def row(self, obj: Document) -> Sequence[Any]:
        return (obj.get("type") or "", len(obj.get("data") or {}))


class ServiceAccount(Native):
    returns_deleted = True
    subresources = ("token",)
    shown = (NAME, Column("Secrets", ".secrets", description="The number of secrets"), AGE)

    def row(self, obj: Document) -> Sequence[Any]:
        return (len(obj.get("secrets") or ()),)


def _frozen(new: Document, old: Document | None, *fields: str) -> list[FieldError]:
    if old is None or not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", FROZEN)]
    return errors + [forbidden(field, FROZEN) for field in fields if (new.get(field) or {}) != (old.get(field) or {})]


def _decoded_size(value: str) -> int:
    """How many bytes a base64 text holds, without decoding it."""
    return len(value) // 4 * 3 - value[-2:].count("=")


def _missing_keys(secret: Document, data: dict[str, str]) -> list[FieldError]:
    """The keys that each well-known type of Secret must have."""
    match secret.get("type"):
        case "kubernetes.io/service-account-token":
            key = "kubernetes.io/service-account.name"
            found = at(secret, "metadata", "annotations", key)
            return [] if found else [required(f"metadata.annotations[{key}]")]
        case "kubernetes.io/dockercfg":
            return _json_key(data, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            return _json_key(data, ".dockerconfigjson")
        case "kubernetes.io/basic-auth" if not {"username", "password"} & data.keys():
            return [required("data[username]"), required("data[password]")]
        case "kubernetes.io/ssh-auth" if not data.get("ssh-privatekey"):
            return [required("data[ssh-privatekey]")]
        case "kubernetes.io/tls":
            return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _json_key(data: dict[str, str], key: str) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        text = base64.b64decode(data[key])
    except binascii.Error:
        return []
    if not text:
        why = "unexpected end of JSON input"
    else:
        try:
            if isinstance(orjson.loads(text), dict):
                return []
            why = "json: cannot unmarshal into Go value of type map[string]interface {}"
        except orjson.JSONDecodeError as error:
            why = str(error)
    return [invalid(f"data[{key}]", "<secret contents redacted>", why)]


STRATEGIES = (
    ConfigMap(kind("io.k8s.api.core.v1.ConfigMap", "configmaps", short=("cm",))),
    Namespace(kind("io.k8s.api.core.v1.Namespace", "namespaces", namespaced=False, short=("ns",), status=True)),
    Secret(kind("io.k8s.api.core.v1.Secret", "secrets")),
    ServiceAccount(kind("io.k8s.api.core.v1.ServiceAccount", "serviceaccounts", short=("sa",))),
)
