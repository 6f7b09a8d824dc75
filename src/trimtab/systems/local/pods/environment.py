"""The environment of a container: what the pod says and no more than PATH and HOME of ours.

Values may refer to those before them (`$(NAME)`). Beside the pod's own variables a process gets HOSTNAME, POD_NAME,
POD_NAMESPACE and POD_IP: it shares the network with everybody, and has to bind to its own address.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimtab.client.protocol import Client
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.systems.local.pods.expansion import expand
from trimtab.systems.local.pods.names import NODE
from trimtab.systems.local.pods.problem import CONFIG, CannotStart

Document = Mapping[str, Any]


async def environment_of(client: Client, pod: Document, container: Document, address: str) -> dict[str, str]:
    """All variables of a container. CannotStart when something that they come from is not there."""
    metadata = pod["metadata"]
    namespace = metadata.get("namespace", "")
    values = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",  # python3 is the one we run by
        "HOME": os.environ.get("HOME", "/"),
        "HOSTNAME": metadata["name"],
        "POD_NAME": metadata["name"],
        "POD_NAMESPACE": namespace,
        "POD_IP": address,
    }
    for source in container.get("envFrom") or ():
        for field, kind in (("configMapRef", ConfigMap), ("secretRef", Secret)):
            if source.get(field):
                found = await data_of(client, kind, namespace, source[field])
                prefix = source.get("prefix") or ""
                values |= {prefix + key: text(value) for key, value in found.items() if _NAME.fullmatch(prefix + key)}
    for each in container.get("env") or ():
        source = each.get("valueFrom")
        if not source:
            values[each["name"]] = expand(each.get("value") or "", values)
            continue
        value = await _value_from(client, pod, source, address)
        if value is not None:
            values[each["name"]] = value
    if any("\0" in value for value in values.values()):
        raise CannotStart(CONFIG, "a variable has a zero byte in its value")
    return values


async def _value_from(client: Client, pod: Document, source: Document, address: str) -> str | None:
    for field, kind in (("configMapKeyRef", ConfigMap), ("secretKeyRef", Secret)):
        wanted = source.get(field)
        if wanted:
            found = await data_of(client, kind, pod["metadata"].get("namespace", ""), wanted)
            if wanted["key"] in found:
                return text(found[wanted["key"]])
            if wanted.get("optional"):
                return None
            raise CannotStart(CONFIG, f'{kind.__name__} "{wanted.get("name")}" has no key "{wanted["key"]}"')
    if source.get("fieldRef"):
        return field_of(pod, source["fieldRef"].get("fieldPath", ""), address)
    raise CannotStart(CONFIG, f"a variable from {', '.join(source)} cannot be had here")


async def data_of(client: Client, kind: type[ConfigMap | Secret], namespace: str, wanted: Document) -> dict[str, bytes]:
    """What a ConfigMap or Secret holds; nothing when it is not there and need not be."""
    name = wanted.get("name") or wanted.get("secretName") or ""
    try:
        found: Any = await client.get(kind, name, namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        if wanted.get("optional"):
            return {}
        raise CannotStart(CONFIG, f'{kind.__name__} "{name}" is not there') from None
    raw = found.raw if found.raw is not None else {}
    plain = {} if kind is Secret else {key: str(value).encode() for key, value in (raw.get("data") or {}).items()}
    encoded = (raw.get("data") if kind is Secret else raw.get("binaryData")) or {}
    try:
        return plain | {key: base64.b64decode(value) for key, value in encoded.items()}
    except (ValueError, binascii.Error):
        raise CannotStart(CONFIG, f'{kind.__name__} "{name}" is not base64') from None


def field_of(pod: Document, path: str, address: str) -> str:
    """A field of the pod itself, as the downward API names it."""
    metadata = pod["metadata"]
    spec = pod.get("spec") or {}
    fields = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata.get("namespace", ""),
        "metadata.uid": metadata.get("uid", ""),
        "spec.nodeName": NODE,
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.podIP": address,
        "status.podIPs": address,
        "status.hostIP": "127.0.0.1",
    }
    if path in fields:
        return str(fields[path])
    for field in ("labels", "annotations"):
        values = metadata.get(field) or {}
        if path == f"metadata.{field}":
            return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))
        if path.startswith(f"metadata.{field}['") and path.endswith("']"):
            return str(values.get(path[len(field) + 11 : -2], ""))
    raise CannotStart(CONFIG, f'there is no field "{path[:100]}" to refer to')


def text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
