"""How the objects of a CanaryDeployment are called, and which hosts of routes mean them."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.systems.delivery.kinds.canary import CanaryDeployment
from trimtab.systems.delivery.kinds.fields import CANARY, OWNER, ROLE, STABLE

SUFFIX = "-canary"


def stable_name(canary: CanaryDeployment) -> str:
    return canary.name


def canary_name(canary: CanaryDeployment) -> str:
    return canary.name + SUFFIX


def name_of(canary: CanaryDeployment, role: str) -> str:
    return canary_name(canary) if role == CANARY else stable_name(canary)


def document(canary: CanaryDeployment, api_version: str, kind: str, role: str, spec: dict[str, Any]) -> dict[str, Any]:
    """One object of the two roles, with the labels that all of them have."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name_of(canary, role),
            "namespace": canary.namespace,
            "labels": {OWNER: canary.name, ROLE: role},
        },
        "spec": said(spec),
    }


def said(value: Any) -> Any:
    """Without nulls, which say nothing, and which a server does not keep."""
    if isinstance(value, dict):
        return {name: said(inner) for name, inner in value.items() if inner is not None}
    return [said(inner) for inner in value] if isinstance(value, list) else value


class Hosts(msgspec.Struct, frozen=True):
    """The two Services, as routes of their namespace may write them."""

    name: str
    namespace: str

    def role(self, host: Any) -> str:
        """STABLE or CANARY; empty when the host is another."""
        if not isinstance(host, str):
            return ""
        first, dot, rest = host.partition(".")
        if dot and rest not in (f"{self.namespace}{end}" for end in ("", ".svc", ".svc.cluster.local")):
            return ""
        return {self.name: STABLE, self.name + SUFFIX: CANARY}.get(first, "")

    def canary_of(self, host: str) -> str:
        """The canary's host, written the way stable's is."""
        _, dot, rest = host.partition(".")
        return f"{self.name}{SUFFIX}{dot}{rest}"


def hosts_of(canary: CanaryDeployment) -> Hosts:
    return Hosts(canary.name, canary.namespace)
