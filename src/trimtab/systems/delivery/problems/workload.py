"""What is wrong with `spec.deployment`: a Deployment's spec of which two Deployments are made, stable and canary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.errors import FieldError, StatusError
from trimtab.model.label_requirements import Requirement, requirement
from trimtab.model.names import label_key_problems, label_value_problems
from trimtab.model.selectors import LabelSelector
from trimtab.systems.delivery.problems import known
from trimtab.systems.delivery.problems.containers import container_problems, label_problems
from trimtab.systems.delivery.problems.findings import (
    forbidden,
    items,
    keyed,
    mapping,
    missing,
    mistyped,
    object_name,
    repeated,
    text,
    unsupported,
    whole,
    wrong,
)
from trimtab.systems.delivery.problems.shapes import mistakes
from trimtab.systems.delivery.revisions.configs import MAX_CONFIGS, references

PATH = "spec.deployment"
TEMPLATE = f"{PATH}.template"
RESERVED = "delivery.trimtab.dev/"
"""What labels and annotations of pods begin with that are the controller's: they are no part of a revision."""
MOST_CONTAINERS = 100


def deployment_problems(document: Mapping[str, Any]) -> Iterator[FieldError]:
    """Types first; then what they mean, as far as they are right."""
    yield from mistakes(document, known.DEPLOYMENT, PATH)
    yield from _selector_problems(document)
    yield from _strategy_problems(mapping(document.get("strategy")))
    if document.get("paused") is True:
        yield forbidden(f"{PATH}.paused", "a paused Deployment takes no new revision; spec.suspend holds a run still")
    ready, deadline = whole(document.get("minReadySeconds")), whole(document.get("progressDeadlineSeconds"))
    if deadline is not None and deadline <= (ready or 0):
        yield wrong(f"{PATH}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    if document.get("template") is None:
        yield missing(TEMPLATE, "a pod template with at least one container")
        return
    template = mapping(document["template"])
    yield from _metadata_problems(mapping(template.get("metadata")))
    yield from _pod_problems(mapping(template.get("spec")))


def config_problems(document: Mapping[str, Any]) -> Iterator[FieldError]:
    """ConfigMaps and Secrets are a part of a revision, and each of them has a place in the status."""
    template = document.get("template")
    if isinstance(template, Mapping) and (count := len(references(template))) > MAX_CONFIGS:
        yield wrong(TEMPLATE, template, f"names {count} ConfigMaps and Secrets, and {MAX_CONFIGS} is the most")


def containers(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those that serve: init containers end before."""
    pod = mapping(mapping(document.get("template")).get("spec"))
    return [mapping(one) for one in items(pod.get("containers"))]


def labels(document: Mapping[str, Any]) -> dict[str, str]:
    """Of the pods, as far as they are texts."""
    metadata = mapping(mapping(document.get("template")).get("metadata"))
    return {key: value for key, value in mapping(metadata.get("labels")).items() if isinstance(value, str)}


def _selector_problems(document: Mapping[str, Any]) -> Iterator[FieldError]:
    path, selector = f"{PATH}.selector", document.get("selector")
    if selector is None:
        yield missing(path, "matchLabels with labels of the template, such as app")
        return
    if not isinstance(selector, Mapping):
        yield mistyped(path, selector, "an object with matchLabels")
        return
    for name in selector:
        if name not in ("matchLabels", "matchExpressions"):
            yield unsupported(keyed(path, name), name, ("matchLabels", "matchExpressions"))
    found: list[Requirement] = []
    problems = list(_requirements(selector, path, found))
    yield from problems
    if problems:
        return
    if not found:
        yield wrong(path, selector, "must not be empty: it would select every pod of the namespace")
    elif not LabelSelector(tuple(found)).matches(labels(document)):
        yield wrong(f"{TEMPLATE}.metadata.labels", labels(document), "must have what spec.deployment.selector asks for")


def _requirements(selector: Mapping[str, Any], path: str, found: list[Requirement]) -> Iterator[FieldError]:
    """Problems of a selector's terms; those that are right go to `found`."""
    words = selector.get("matchLabels")
    if words is not None and not isinstance(words, Mapping):
        yield mistyped(f"{path}.matchLabels", words, "an object")
    for key, value in mapping(words).items():
        place = keyed(f"{path}.matchLabels", key)
        if isinstance(value, str):
            yield from _term(place, key, "In", [value], found)
        else:
            yield mistyped(place, value, "a text")
    expressions = selector.get("matchExpressions")
    if expressions is not None and not isinstance(expressions, list | tuple):
        yield mistyped(f"{path}.matchExpressions", expressions, "a list")
    for i, one in enumerate(items(expressions)):
        place = f"{path}.matchExpressions[{i}]"
        if not isinstance(one, Mapping):
            yield mistyped(place, one, "an object with key, operator and values")
            continue
        yield from _term(place, one.get("key"), one.get("operator"), one.get("values"), found)


def _term(path: str, key: Any, operator: Any, values: Any, found: list[Requirement]) -> Iterator[FieldError]:
    if text(key).startswith(RESERVED):
        yield forbidden(path, "this label is written by the controller: stable and canary are told apart by it")
        return
    if not isinstance(operator, str) or operator not in _OPERATORS:
        yield unsupported(f"{path}.operator", operator, _OPERATORS)
        return
    listed = () if values is None else values
    if not isinstance(listed, list | tuple) or not all(isinstance(value, str) for value in listed):
        yield mistyped(path, values, "an object with a list of texts as its values")
        return
    try:
        found.append(requirement(text(key), _OPERATORS[operator], tuple(listed)))
    except StatusError as error:
        yield wrong(path, key, error.message)


def _strategy_problems(strategy: Mapping[str, Any]) -> Iterator[FieldError]:
    """What it says does not matter but for maxSurge (see `objects.workloads`), so that only nonsense is refused."""
    path = f"{PATH}.strategy"
    rolling = mapping(strategy.get("rollingUpdate"))
    for name in ("maxSurge", "maxUnavailable"):
        value = rolling.get(name)
        if isinstance(value, str) and not _SHARE.fullmatch(value):
            yield wrong(f"{path}.rollingUpdate.{name}", value, "must be a number or a share such as 25%")
        elif (whole(value) or 0) < 0:
            yield wrong(f"{path}.rollingUpdate.{name}", value, "must not be negative")


def _metadata_problems(metadata: Mapping[str, Any]) -> Iterator[FieldError]:
    for field in ("labels", "annotations"):
        for key, value in mapping(metadata.get(field)).items():
            path = keyed(f"{TEMPLATE}.metadata.{field}", key)
            if key.startswith(RESERVED):
                yield forbidden(path, "it is written by the controller")
            for problem in label_key_problems(key if field == "labels" else key.lower()):
                yield wrong(path, key, problem)
            if field == "labels" and isinstance(value, str):
                for problem in label_value_problems(value):
                    yield wrong(path, value, problem)


def _pod_problems(pod: Mapping[str, Any]) -> Iterator[FieldError]:
    path = f"{TEMPLATE}.spec"
    if not items(pod.get("containers")) and isinstance(pod.get("containers"), list | tuple | None):
        yield missing(f"{path}.containers", "at least one, with a name and an image")
    if pod.get("restartPolicy") not in (None, "", "Always"):
        yield unsupported(f"{path}.restartPolicy", pod["restartPolicy"], ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        yield forbidden(f"{path}.activeDeadlineSeconds", "pods of a Deployment have no end")
    for field in ("serviceAccountName", "priorityClassName"):
        if text(pod.get(field)):
            yield from object_name(f"{path}.{field}", pod[field])
    for i, volume in enumerate(map(mapping, items(pod.get("volumes")))):
        sources = [name for name, value in volume.items() if name != "name" and value is not None]
        if len(sources) > 1:
            yield wrong(f"{path}.volumes[{i}]", ", ".join(sources[:4]), "must have one source only")
    volumes = [text(mapping(one).get("name")) for one in items(pod.get("volumes"))]
    for i, name in enumerate(volumes):
        yield from label_problems(f"{path}.volumes[{i}].name", name)
    yield from repeated((f"{path}.volumes[{i}].name", name) for i, name in enumerate(volumes) if name)
    every = [
        (f"{path}.{field}[{i}]", mapping(one))
        for field in ("initContainers", "containers")
        for i, one in enumerate(items(pod.get(field)))
    ]
    if len(every) > MOST_CONTAINERS:
        yield wrong(f"{path}.containers", len(every), f"must be {MOST_CONTAINERS} at most")
        return
    yield from repeated((f"{at}.name", one["name"]) for at, one in every if text(one.get("name")))
    for at, one in every:
        yield from container_problems(at, one, frozenset(volumes))


_OPERATORS: dict[str, Any] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_SHARE = re.compile(r"[0-9]{1,3}%")
