"""A kind, its controller, and a rule for writes: each Lighthouse keeps a logbook, a ConfigMap of its own.

    trimtab up --operator examples/operator/lighthouses.py       # the server and this, or
    trimtab run examples/operator/lighthouses.py                 # this alone, against your kubeconfig's server
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Reader
from trimtab.model.conditions import Conditions, set_condition
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.kind import Column
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.runtime import Controller, Request, Result, System, generation_changed
from trimtab.runtime.apply import apply
from trimtab.runtime.owners import own
from trimtab.runtime.status import write_status


class LighthouseSpec(Spec):
    light: Annotated[str, Meta(description="How it shines, as white or red.")] = "white"
    range: Annotated[int, Meta(ge=1, le=50, description="How far it is seen, in nautical miles.")]


class LighthouseStatus(Spec):
    conditions: Conditions | UnsetType = UNSET


class Lighthouse(
    Resource,
    group="coast.example.com",
    version="v1",
    plural="lighthouses",
    columns=(
        Column("Light", ".spec.light"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
    ),
):
    spec: LighthouseSpec
    status: LighthouseStatus | UnsetType = UNSET


class Keeper(Controller[Lighthouse]):
    """Keeps the logbook as the lighthouse says. Someone who tears pages out gets them back."""

    owns = (ConfigMap,)
    when = generation_changed

    async def reconcile(self, request: Request) -> Result | None:
        lighthouse = await self.client.find(Lighthouse, request.name, request.namespace)
        if lighthouse is None or lighthouse.metadata.deletion_timestamp is not UNSET:
            return None  # what it owns goes with it
        logbook = ConfigMap(
            metadata=ObjectMeta(name=f"{request.name}-logbook", namespace=request.namespace),
            data={"light": lighthouse.spec.light, "range": f"{lighthouse.spec.range} nm"},
        )
        await apply(self.client, own(logbook, lighthouse, self.client.scheme), manager="lighthouses")
        conditions = set_condition(
            lighthouse.status.conditions if lighthouse.status else UNSET,
            "Ready",
            True,
            "Lit",
            f"shines {lighthouse.spec.light}",
            now=self.clock.now(),
            observed_generation=lighthouse.metadata.generation,
        )
        await write_status(self.client, lighthouse, LighthouseStatus(conditions=conditions))
        return None


async def no_dark_lights(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
    """Asked about every write of a Lighthouse, before it is committed."""
    if request.object is not None and request.object.spec.light == "black":
        problem = FieldError("spec.light", FieldProblem.INVALID, "black", "a light that nobody sees; take white or red")
        return Denied(errors=(problem,))
    return Allowed()


SYSTEM = System(
    name="lighthouses",
    kinds=(Lighthouse,),
    reconciles=(Keeper,),
    admissions=(Admission(name="no-dark-lights", kinds=(Lighthouse,), function=no_dark_lights),),
    source=__file__,
)
