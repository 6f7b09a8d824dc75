"""LimitRanges: what containers of a namespace get that say nothing, and how much or little a pod may ask for.

They are fed through `upsert` and `remove` and asked for pods that are created; an existing pod is never judged again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from trimtab.model.errors import forbidden
from trimtab.model.quantity import Quantity
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.builtin.pod import qos_class
from trimtab.server.quota.amounts import Amounts, amounts_of
from trimtab.server.quota.usage import is_pod, pod_amounts

Document = dict[str, Any]

ANNOTATION = "kubernetes.io/limit-ranger"


class Limits:
    def __init__(self) -> None:
        self._ranges: dict[str, dict[str, list[Document]]] = {}  # namespace → name → limits

    def upsert(self, document: Mapping[str, Any]) -> None:
        metadata = document["metadata"]
        limits = (document.get("spec") or {}).get("limits") or []
        self._ranges.setdefault(metadata["namespace"], {})[metadata["name"]] = limits

    def remove(self, namespace: str, name: str) -> None:
        self._ranges.get(namespace, {}).pop(name, None)
        if not self._ranges.get(namespace):
            self._ranges.pop(namespace, None)

    def replace(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self._ranges.clear()
        for document in documents:
            self.upsert(document)

    def concerns(self, request: AdmissionRequest) -> bool:
        """Hot: without LimitRanges it costs nothing."""
        return bool(
            self._ranges
            and request.namespace in self._ranges
            and request.operation is Operation.CREATE
            and not request.subresource
            and is_pod(request.kind)
        )

    def filled(self, request: AdmissionRequest) -> Document:
        """The pod with what its containers did not say."""
        pod: Document = orjson.loads(orjson.dumps(request.object))
        for limits in self._of(request):
            _fill(pod, limits)
        if isinstance(pod.get("status"), dict):
            pod["status"]["qosClass"] = qos_class(pod.get("spec"))
        return pod

    def check(self, request: AdmissionRequest) -> None:
        """Raises StatusError 403 when a pod asks for too little or too much."""
        for limits in self._of(request):
            problems = list(dict.fromkeys(_problems(request.object or {}, limits)))
            if problems:
                why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                raise forbidden(request.kind.plural, request.kind.group, request.name, why)

    def _of(self, request: AdmissionRequest) -> list[list[Document]]:
        return [limits for _, limits in sorted(self._ranges.get(request.namespace, {}).items())]


def _fill(pod: Document, limits: list[Document]) -> None:
    defaults: dict[str, Document] = {"requests": {}, "limits": {}}
    for limit in limits:
        if limit.get("type") == "Container":
            defaults["requests"] |= limit.get("defaultRequest") or {}
            defaults["limits"] |= limit.get("default") or {}
    spec = pod.get("spec") or {}
    told = []
    for field, what in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or ():
            resources = container.setdefault("resources", {})
            for part, word in (("requests", "request"), ("limits", "limit")):
                added = sorted(defaults[part].keys() - (resources.get(part) or {}).keys())
                if added:
                    resources[part] = {**(resources.get(part) or {}), **{n: defaults[part][n] for n in added}}
                    told.append(f"{', '.join(added)} {word} for {what} {container.get('name', '')}")
    if told:
        annotations = pod["metadata"].get("annotations") or {}
        pod["metadata"]["annotations"] = {**annotations, ANNOTATION: f"LimitRanger plugin set: {'; '.join(told)}"}


def _problems(pod: Document, limits: list[Document]) -> Iterator[str]:
    spec = pod.get("spec") or {}
    for limit in limits:
        if limit.get("type") == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                yield from _asked(limit, amounts_of(resources.get("requests")), amounts_of(resources.get("limits")))
        elif limit.get("type") == "Pod":
            yield from _asked(limit, pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))


def _asked(limit: Document, requests: Amounts, limits: Amounts) -> Iterator[str]:
    per = limit["type"]
    for name, least in sorted(amounts_of(limit.get("min")).items()):
        said = f"minimum {name} usage per {per} is {least}"
        if name not in requests:
            yield f"{said}.  No request is specified"
        elif requests[name] < least:
            yield f"{said}, but request is {requests[name]}"
        elif name in limits and limits[name] < least:
            yield f"{said}, but limit is {limits[name]}"
    for name, most in sorted(amounts_of(limit.get("max")).items()):
        said = f"maximum {name} usage per {per} is {most}"
        if name not in limits:
            yield f"{said}.  No limit is specified"
        elif limits[name] > most:
            yield f"{said}, but limit is {limits[name]}"
        elif name in requests and requests[name] > most:
            yield f"{said}, but request is {requests[name]}"
    for name, ratio in sorted(amounts_of(limit.get("maxLimitRequestRatio")).items()):
        yield from _ratio(
            f"{name} max limit to request ratio per {per} is {ratio}", ratio, requests.get(name), limits.get(name)
        )


def _ratio(said: str, ratio: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if not request:
        yield f"{said}, but no request is specified or request is 0"
    elif not limit:
        yield f"{said}, but no limit is specified or limit is 0"
    elif (given := limit.nanos / request.nanos) * 1000 > ratio.milli_value:
        yield f"{said}, but provided ratio is {given:f}"
