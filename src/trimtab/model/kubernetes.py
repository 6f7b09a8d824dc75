"""Kubernetes' own kinds, as far as controllers touch them. What a class does not name survives: objects keep their document.

Bodies that are long and someone else's (a pod template) stay plain mappings here.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Scheme


class Namespace(Resource, group="", version="v1", plural="namespaces", namespaced=False):
    spec: dict[str, Any] | UnsetType = UNSET
    status: dict[str, Any] | UnsetType = UNSET


class ConfigMap(Resource, group="", version="v1", plural="configmaps"):
    data: dict[str, str] | UnsetType = UNSET
    binary_data: dict[str, str] | UnsetType = UNSET  # base64
    immutable: bool | UnsetType = UNSET


class Secret(Resource, group="", version="v1", plural="secrets"):
    """`data` is base64, as the API has it. It never shows in a repr."""

    type: str | UnsetType = UNSET
    data: dict[str, str] | UnsetType = UNSET
    string_data: dict[str, str] | UnsetType = UNSET
    immutable: bool | UnsetType = UNSET

    def __repr__(self) -> str:
        return f"Secret({self.namespace}/{self.name})"


class ServiceAccount(Resource, group="", version="v1", plural="serviceaccounts"):
    pass


class Service(Resource, group="", version="v1", plural="services"):
    spec: dict[str, Any] | UnsetType = UNSET
    status: dict[str, Any] | UnsetType = UNSET


class Pod(Resource, group="", version="v1", plural="pods"):
    spec: dict[str, Any] | UnsetType = UNSET
    status: dict[str, Any] | UnsetType = UNSET


class Deployment(Resource, group="apps", version="v1", plural="deployments"):
    spec: dict[str, Any] | UnsetType = UNSET
    status: dict[str, Any] | UnsetType = UNSET


class ControllerRevision(Resource, group="apps", version="v1", plural="controllerrevisions"):
    """A snapshot that never changes. `revision` orders those of one owner."""

    data: dict[str, Any] | UnsetType = UNSET
    revision: int = 0


class LeaseSpec(Spec):
    """Times are MicroTime texts."""

    holder_identity: str | UnsetType = UNSET
    lease_duration_seconds: int | UnsetType = UNSET
    acquire_time: str | UnsetType = UNSET
    renew_time: str | UnsetType = UNSET
    lease_transitions: int | UnsetType = UNSET


class Lease(Resource, group="coordination.k8s.io", version="v1", plural="leases"):
    spec: LeaseSpec | UnsetType = UNSET


class ObjectReference(Spec):
    """Which object something is about."""

    api_version: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    uid: str | UnsetType = UNSET
    resource_version: str | UnsetType = UNSET
    field_path: str | UnsetType = UNSET


class EventSeries(Spec):
    """How often an event came again, and when it last did."""

    count: int
    last_observed_time: str


class Event(Resource, group="events.k8s.io", version="v1", plural="events"):
    """What happened to `regarding`. Seen by `kubectl describe` and `kubectl get events`."""

    event_time: str | UnsetType = UNSET
    series: EventSeries | UnsetType = UNSET
    reporting_controller: str | UnsetType = UNSET
    reporting_instance: str | UnsetType = UNSET
    action: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    regarding: ObjectReference | UnsetType = UNSET
    related: ObjectReference | UnsetType = UNSET
    note: str | UnsetType = UNSET
    type: str | UnsetType = UNSET  # Normal or Warning


KINDS: tuple[type[Resource], ...] = (
    Namespace,
    ConfigMap,
    Secret,
    ServiceAccount,
    Service,
    Pod,
    Deployment,
    ControllerRevision,
    Lease,
    Event,
)


def register(scheme: Scheme) -> Scheme:
    """Make all of them known to a scheme."""
    for kind in KINDS:
        scheme.register(kind)
    return scheme
