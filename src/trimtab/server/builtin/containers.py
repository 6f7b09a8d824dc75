"""What containers and volumes of a pod must say."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.metadata import dns_label_problems
from trimtab.server.builtin import names
from trimtab.server.builtin.problems import duplicate, each, forbidden, invalid, not_negative, required, unsupported
from trimtab.server.builtin.quantities import resource_problems

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def volume_problems(volumes: list[dict[str, Any]], path: str) -> tuple[set[str], list[FieldError]]:
    """The names of the good volumes, and what is wrong with the others."""
    good: set[str] = set()
    errors = []
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", volume.get("name", "")
        sources = [field for field in volume if field != "name"]
        found = [forbidden(f"{where}.{extra}", "may not specify more than 1 volume type") for extra in sources[1:]]
        if not sources:
            found.append(required(where, "must specify a volume type"))
        found += _source(volume, where)
        if not name:
            found.append(required(f"{where}.name"))
        else:
            found += each(f"{where}.name", name, dns_label_problems(name))
        if name in good:
            found.append(duplicate(f"{where}.name", name))
        if not found:
            good.add(name)
        errors += found
    return good, errors


def _source(volume: dict[str, Any], path: str) -> list[FieldError]:
    errors = []
    for source, field in (("secret", "secretName"), ("configMap", "name"), ("persistentVolumeClaim", "claimName")):
        if source in volume and not volume[source].get(field):
            errors.append(required(f"{path}.{source}.{field}"))
    if "hostPath" in volume and not volume["hostPath"].get("path"):
        errors.append(required(f"{path}.hostPath.path"))
    return errors


def container_problems(
    containers: list[dict[str, Any]], path: str, volumes: set[str], taken: Collection[str], *, init: bool = False
) -> list[FieldError]:
    errors = []
    seen = set(taken)
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        errors += _container(container, where, volumes)
        name = container.get("name", "")
        if name in seen and name:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        restarts = container.get("restartPolicy")
        if not init and restarts is not None:
            errors.append(forbidden(f"{where}.restartPolicy", "may not be set for non-init containers"))
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            given = container.get(probe)
            if given is None:
                continue
            if init and restarts != "Always":
                why = "may not be set for init containers without restartPolicy=Always"
                errors.append(forbidden(f"{where}.{probe}", why))
            else:
                errors += _probe(given, f"{where}.{probe}", once=probe != "readinessProbe")
    return errors


def _container(container: dict[str, Any], path: str, volumes: set[str]) -> list[FieldError]:
    errors = []
    name = container.get("name", "")
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        errors += each(f"{path}.name", name, dns_label_problems(name))
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy")
    if policy not in ("File", "FallbackToLogsOnError"):
        allowed = ("File", "FallbackToLogsOnError")
        errors.append(unsupported(f"{path}.terminationMessagePolicy", policy, allowed))
    errors += _ports(container.get("ports") or [], f"{path}.ports")
    errors += _env(container.get("env") or [], f"{path}.env")
    errors += _mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", volumes)
    if container.get("imagePullPolicy") not in PULL_POLICIES:
        errors.append(unsupported(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES))
    return errors + resource_problems(container.get("resources") or {}, f"{path}.resources")


def _ports(ports: list[dict[str, Any]], path: str) -> list[FieldError]:
    errors = []
    seen = set()
    for index, port in enumerate(ports):
        where, name = f"{path}[{index}]", port.get("name")
        if name:
            problems = names.port_name(name)
            errors += each(f"{where}.name", name, problems)
            if not problems and name in seen:
                errors.append(duplicate(f"{where}.name", name))
            seen.add(name)
        number = port.get("containerPort") or 0
        if not number:
            errors.append(required(f"{where}.containerPort"))
        else:
            errors += each(f"{where}.containerPort", number, names.port_number(number))
        if port.get("hostPort"):
            errors += each(f"{where}.hostPort", port["hostPort"], names.port_number(port["hostPort"]))
        if port.get("protocol") not in PROTOCOLS:
            errors.append(unsupported(f"{where}.protocol", port.get("protocol"), PROTOCOLS))
    return errors


def _env(variables: list[dict[str, Any]], path: str) -> list[FieldError]:
    errors = []
    for index, variable in enumerate(variables):
        where, name = f"{path}[{index}]", variable.get("name", "")
        if not name:
            errors.append(required(f"{where}.name"))
        else:
            errors += each(f"{where}.name", name, names.env_name(name))
        source = variable.get("valueFrom")
        if source is None:
            continue
        if not source:
            why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            errors.append(invalid(f"{where}.valueFrom", "", why))
        elif variable.get("value"):
            errors.append(invalid(f"{where}.valueFrom", "", "may not be specified when `value` is not empty"))
        elif len(source) > 1:
            errors.append(invalid(f"{where}.valueFrom", "", "may not have more than one field specified at a time"))
    return errors


def _mounts(mounts: list[dict[str, Any]], path: str, volumes: set[str]) -> list[FieldError]:
    errors = []
    seen = set()
    for index, mount in enumerate(mounts):
        where, name, point = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{where}.name"))
        if name not in volumes:
            errors.append(FieldError(f"{where}.name", FieldProblem.NOT_FOUND, name))
        if not point:
            errors.append(required(f"{where}.mountPath"))
        if point in seen:
            errors.append(invalid(f"{where}.mountPath", point, "must be unique"))
        seen.add(point)
    return errors


def _probe(probe: dict[str, Any], path: str, *, once: bool) -> list[FieldError]:
    given = [handler for handler in HANDLERS if probe.get(handler) is not None]
    errors = [forbidden(f"{path}.{extra}", "may not specify more than 1 handler type") for extra in given[1:]]
    if not given:
        errors.append(required(path, "must specify a handler type"))
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if (probe.get(field) or 0) < 0:
            errors += not_negative(f"{path}.{field}", probe[field])
    if once and probe.get("successThreshold", 1) != 1:
        errors.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return errors
