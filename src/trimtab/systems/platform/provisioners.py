"""How clusters come into being that are not imported: by a provisioner, which somebody else writes.

    class Metal:                                     # in a package, or in an operator file of one's own
        flavours = ("mks",)
        async def provision(self, cluster, state): ...
        async def deprovision(self, cluster, state): ...

    register(Metal())                                # or an entry point of the group `trimtab.provisioners`
    SYSTEM = System(name="metal")                    # in an operator file without controllers

Each call does a step and returns; the state that it returns is kept in the Cluster's status before the next one. A
kubeconfig goes into a Secret of the project, never into the status.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

import msgspec

from trimtab.model.logs import log
from trimtab.model.redacted import Redacted
from trimtab.systems.platform.kinds import Cluster

GROUP = "trimtab.provisioners"


class Provisioned(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is. `kubeconfig` when it can be reached; `again`: seconds until the next step."""

    done: bool
    reason: str = "Provisioning"
    message: str = ""
    kubeconfig: Redacted | None = None
    state: dict[str, Any] = {}
    again: float = 15.0


class Provisioner(Protocol):
    """Makes clusters of some flavours: `mks`, `eks`, `aks`, `gke`. May be called any number of times."""

    flavours: tuple[str, ...]

    async def provision(self, cluster: Cluster, state: dict[str, Any]) -> Provisioned: ...

    async def deprovision(self, cluster: Cluster, state: dict[str, Any]) -> Provisioned:
        """`done` when nothing is left."""
        ...


_REGISTERED: list[Provisioner] = []


def register(provisioner: Provisioner) -> None:
    """Of an operator file; it comes before those that are installed."""
    _REGISTERED.append(provisioner)


def forget(provisioner: Provisioner) -> None:
    _REGISTERED.remove(provisioner)


def provisioner_of(flavour: str) -> Provisioner | None:
    return next((each for each in (*_REGISTERED, *_installed()) if flavour in each.flavours), None)


@functools.cache
def _installed() -> tuple[Provisioner, ...]:
    from importlib.metadata import entry_points

    found: list[Provisioner] = []
    for point in entry_points(group=GROUP):
        try:
            found.append(point.load()())
        except Exception:  # somebody else's module may fail in any way, and must not stop the others
            log.exception("a provisioner could not be loaded", name=point.name)
    return tuple(found)
