"""What is wrong with one container of a pod template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.quantity import Quantity
from trimtab.systems.delivery.problems.findings import items, keyed, mapping, missing, repeated, text, whole, wrong


def container_problems(path: str, container: Mapping[str, Any], volumes: frozenset[str]) -> Iterator[FieldError]:
    yield from label_problems(f"{path}.name", text(container.get("name")))
    image = container.get("image")
    if not image and not items(container.get("command")) and isinstance(image, str | None):
        yield missing(f"{path}.image", "an image; or a command, where workloads are processes of this machine")
    elif isinstance(image, str) and image != image.strip():
        yield wrong(f"{path}.image", image, "must not have leading or trailing whitespace")
    ports = [mapping(one) for one in items(container.get("ports"))]
    for i, port in enumerate(ports):
        name = text(port.get("name"))
        if name and not is_port_name(name):
            detail = "must be at most 15 of a-z, 0-9 and -, with a letter among them"
            yield wrong(f"{path}.ports[{i}].name", name, detail)
    yield from repeated((f"{path}.ports[{i}].name", p["name"]) for i, p in enumerate(ports) if text(p.get("name")))
    for i, mount in enumerate(map(mapping, items(container.get("volumeMounts")))):
        if text(mount.get("name")) and mount["name"] not in volumes:
            yield wrong(f"{path}.volumeMounts[{i}].name", mount["name"], "there is no such volume in the template")
    for i, variable in enumerate(map(mapping, items(container.get("env")))):
        if variable.get("name") == "" or "=" in text(variable.get("name")):
            yield wrong(f"{path}.env[{i}].name", variable["name"], "must not be empty, nor have a = in it")
        yield from _source_problems(f"{path}.env[{i}].valueFrom", variable.get("valueFrom"), _VALUES)
        if text(variable.get("value")) and mapping(variable.get("valueFrom")):
            yield wrong(f"{path}.env[{i}].valueFrom", variable["valueFrom"], "must not be given together with value")
    for i, source in enumerate(items(container.get("envFrom"))):
        yield from _source_problems(f"{path}.envFrom[{i}]", source, ("configMapRef", "secretRef"))
    yield from _resource_problems(f"{path}.resources", mapping(container.get("resources")))
    for kind in ("readinessProbe", "livenessProbe", "startupProbe"):
        if isinstance(container.get(kind), Mapping):
            yield from _probe_problems(f"{path}.{kind}", container[kind], ports)


def _source_problems(path: str, source: Any, known: tuple[str, ...]) -> Iterator[FieldError]:
    if isinstance(source, Mapping) and not any(isinstance(source.get(name), Mapping) for name in source):
        yield missing(path, f"one of {', '.join(known)}")


def _resource_problems(path: str, resources: Mapping[str, Any]) -> Iterator[FieldError]:
    limits = mapping(resources.get("limits"))
    for name, asked in mapping(resources.get("requests")).items():
        request, limit = _amount(asked), _amount(limits.get(name))
        if request is not None and limit is not None and request > limit:
            yield wrong(keyed(f"{path}.requests", name), asked, f"must not be more than the limit ({limit})")


def _amount(value: Any) -> Quantity | None:
    try:
        return Quantity(str(value)) if isinstance(value, str | int | float) else None
    except ValueError:
        return None


def _probe_problems(path: str, probe: Mapping[str, Any], ports: list[Mapping[str, Any]]) -> Iterator[FieldError]:
    handlers = [name for name in _HANDLERS if probe.get(name) is not None]
    if len(handlers) != 1:
        yield wrong(path, ", ".join(handlers) or "none", f"must have exactly one of {', '.join(_HANDLERS)}")
    for name in ("httpGet", "tcpSocket"):
        port = mapping(probe.get(name)).get("port")
        if isinstance(port, str):
            if port not in [one.get("name") for one in ports]:
                yield wrong(f"{path}.{name}.port", port, "this container has no port of that name")
        elif whole(port) is not None and not 1 <= (whole(port) or 0) <= 65535:
            yield wrong(f"{path}.{name}.port", port, "must be between 1 and 65535")


def is_port_name(name: str) -> bool:
    """IANA's service names (RFC 6335 §5.1), in lower case as Kubernetes wants them."""
    return bool(_PORT_NAME.fullmatch(name)) and "--" not in name and any(char.isalpha() for char in name)


def label_problems(path: str, name: str) -> Iterator[FieldError]:
    if name and not (len(name) <= 63 and _LABEL.fullmatch(name)):
        yield wrong(path, name, "must be at most 63 of a-z, 0-9 and -, and begin and end with a letter or a digit")


_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_VALUES = ("configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PORT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
