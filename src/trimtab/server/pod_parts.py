"""Eviction and binding: requests that act on a Pod and leave no object of their own behind.

An eviction is a deletion that PodDisruptionBudgets may refuse; a binding gives a Pod its node, once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from trimtab.model.errors import (
    FieldError,
    FieldProblem,
    bad_request,
    conflict,
    internal,
    invalid,
    too_many_requests,
)
from trimtab.model.selectors import LabelSelector
from trimtab.server import body, deletes
from trimtab.server.admission import parts
from trimtab.server.builtin.native import kind
from trimtab.server.http import Answer, Request, json_response
from trimtab.server.options import delete_options, write_options
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.server.target import Target
from trimtab.store.contract import Query

if TYPE_CHECKING:
    from trimtab.server.core import Server

EVICTION = kind("io.k8s.api.policy.v1.Eviction", "evictions", group="policy")
BINDING = kind("io.k8s.api.core.v1.Binding", "bindings")
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
UNGUARDED = ("Succeeded", "Failed", "Pending")
"""Phases of pods that no budget counts."""
MANY_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


async def evict(server: Server, request: Request, pods: Served, target: Target) -> Answer:
    """Delete a Pod, unless its budget has nothing left."""
    document = _decoded(request, "Eviction")
    metadata = _metadata(document)
    if (metadata.get("namespace") or target.namespace) != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if metadata.get("name") != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    own = document.get("deleteOptions")
    if own is not None and not isinstance(own, dict):
        raise bad_request("Eviction: deleteOptions must be an object")
    options = delete_options({k: v for k, v in request.query.items() if k == "dryRun"}, own)
    document, admit = await parts.mutated(
        server, request, pods, target, _named(document, target), form=EVICTION, dry_run=options.dry_run
    )
    await admit(document)
    _, pod = await pods.load(target.namespace, target.name)
    if (pod.get("status") or {}).get("phase") not in UNGUARDED and not pod["metadata"].get("deletionTimestamp"):
        await _spend(server, pod, dry_run=options.dry_run)
    await deletes.remove(server, request, pods, target.namespace, target.name, options)
    return json_response(SUCCESS, 201)


async def bind(server: Server, request: Request, pods: Served, target: Target) -> Answer:
    """Give a Pod its node."""
    document = _decoded(request, "Binding")
    options = write_options(request.query, "CreateOptions")
    document, admit = await parts.mutated(
        server, request, pods, target, _named(document, target), form=BINDING, dry_run=options.dry_run
    )
    _check_target(document, target.name)
    await admit(document)
    node, labels = document["target"]["name"], _metadata(document).get("annotations") or {}
    _, pod = await pods.load(target.namespace, target.name)
    _check_bindable(pod, target.name)

    def change(live: Document) -> None:
        _check_bindable(live, target.name)
        live["spec"]["nodeName"] = node
        if labels:
            live["metadata"]["annotations"] = {**(live["metadata"].get("annotations") or {}), **labels}
        status = live.setdefault("status", {})
        conditions = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        status["conditions"] = [*conditions, {**scheduled, "lastTransitionTime": server.timestamp()}]

    if not options.dry_run:
        await server.acts.modify(pods, target.namespace, target.name, change)
    return json_response(SUCCESS, 201)


POD_PARTS: Mapping[str, Callable[[Server, Request, Served, Target], Awaitable[Answer]]] = {
    "eviction": evict,
    "binding": bind,
}


async def _spend(server: Server, pod: Document, *, dry_run: bool) -> None:
    """Take one disruption from the budget that guards a pod, if there is one."""
    metadata = pod["metadata"]
    budgets = server.registry.find("policy", "v1", "poddisruptionbudgets")
    assert budgets is not None  # noqa: S101 - a built-in kind
    page = await budgets.backend.list(Query(resource=budgets.strategy.storage, namespace=metadata["namespace"]))
    found = [budget for entry in page.entries if _guards(budget := budgets.decode(entry), metadata.get("labels") or {})]
    if len(found) > 1:
        raise internal(MANY_BUDGETS)
    if not found:
        return
    name, moment = found[0]["metadata"]["name"], server.timestamp()

    def change(budget: Document) -> None:
        status = budget.setdefault("status", {})
        _check_budget(budget)
        status["disruptionsAllowed"] -= 1
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), metadata["name"]: moment}

    if dry_run:
        _check_budget(found[0])
    else:
        await server.acts.modify(budgets, metadata["namespace"], name, change, "status")


def _guards(budget: Document, labels: Mapping[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and LabelSelector.from_document(selector).matches(labels)


def _check_budget(budget: Document) -> None:
    """A budget whose controller has not seen its newest state yet may not be spent either."""
    metadata, status = budget["metadata"], budget.get("status") or {}
    name = metadata["name"]
    if (status.get("observedGeneration") or 0) < metadata.get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
    elif (status.get("disruptionsAllowed") or 0) <= 0:
        healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
        why = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    else:
        return
    refusal = too_many_requests(VIOLATED)
    refusal.details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    raise refusal


def _check_bindable(pod: Document, name: str) -> None:
    if pod["metadata"].get("deletionTimestamp"):
        raise conflict("pods/binding", "", name, f"pod {name} is being deleted, cannot be assigned to a host")
    bound = pod["spec"].get("nodeName")
    if bound:
        raise conflict("pods/binding", "", name, f'pod {name} is already assigned to node "{bound}"')
    if pod["spec"].get("schedulingGates"):
        raise conflict("pods/binding", "", name, f"pod {name} has non-empty .spec.schedulingGates")


def _check_target(document: Document, name: str) -> None:
    given = document.get("target")
    given = given if isinstance(given, dict) else {}
    errors = []
    if given.get("kind") not in (None, "", "Node"):
        supported = 'supported values: "Node", "<empty>"'
        errors.append(FieldError("target.kind", FieldProblem.UNSUPPORTED, given["kind"], supported))
    if not given.get("name") or not isinstance(given["name"], str):
        errors.append(FieldError("target.name", FieldProblem.REQUIRED, "", ""))
    if errors:
        raise invalid("Binding", "", name, errors)


def _decoded(request: Request, kind: str) -> Document:
    document = body.decode(request.body, request.header(b"content-type"), kind=kind, native=True)
    if not isinstance(document, dict) or (document.get("kind") or kind) != kind:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    return document


def _named(document: Document, target: Target) -> Document:
    return {**document, "metadata": {**_metadata(document), "name": target.name, "namespace": target.namespace}}


def _metadata(document: Document) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
