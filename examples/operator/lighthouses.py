"""Two kinds, a controller, and a rule for writes: each Lighthouse keeps a logbook, a ConfigMap of its own.

trimtab up --operator examples/operator/lighthouses.py       # the server and this, or
trimtab run examples/operator/lighthouses.py                 # this alone, against your kubeconfig's server
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Reader
from trimtab.model.conditions import Conditions
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.kind import Column
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.runtime import Change, Controller, Index, Request, Result, System, Watch, generation_changed
from trimtab.runtime.apply import apply
from trimtab.runtime.owners import NotOurs, create_or_adopt, owned_by
from trimtab.runtime.status import ready, write_status


class HarbourSpec(Spec):
    channel: Annotated[int, Meta(ge=1, le=88, description="The radio channel that its pilots listen on.")]


class Harbour(
    Resource,
    group="coast.example.com",
    version="v1",
    plural="harbours",
    columns=(Column("Channel", ".spec.channel", "integer"),),
):
    spec: HarbourSpec


class LighthouseSpec(Spec):
    light: Annotated[str, Meta(description="How it shines, as white or red.")] = "white"
    range: Annotated[int, Meta(ge=1, le=50, description="How far it is seen, in nautical miles.")]
    harbour: Annotated[str, Meta(description="The Harbour that it leads to.")] | UnsetType = UNSET


class LighthouseStatus(Spec):
    conditions: Conditions | UnsetType = UNSET


class Lighthouse(
    Resource,
    group="coast.example.com",
    version="v1",
    plural="lighthouses",
    short=("lh",),
    columns=(
        Column("Light", ".spec.light"),
        Column("Harbour", ".spec.harbour"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
    ),
):
    spec: LighthouseSpec
    status: LighthouseStatus | UnsetType = UNSET


def harbour_of(lighthouse: Lighthouse) -> list[str]:
    """What the index files a lighthouse under."""
    return [f"{lighthouse.namespace}/{lighthouse.spec.harbour}"] if lighthouse.spec.harbour else []


def lighthouses_of(change: Change) -> list[Request]:
    """A harbour came, changed or went: which lighthouses lead to it?"""
    return change.informers.indexed(Lighthouse, "harbour", str(change.request))


class Keeper(Controller[Lighthouse]):
    """Keeps the logbook as the lighthouse says. Someone who tears pages out gets them back."""

    owns = (ConfigMap,)
    watches = (Watch(kind=Harbour, to=lighthouses_of),)
    indexes = (Index("harbour", harbour_of),)
    when = generation_changed

    async def reconcile(self, request: Request) -> Result | None:
        lighthouse = await self.client.find(Lighthouse, request.name, request.namespace)
        if lighthouse is None or lighthouse.metadata.deletion_timestamp:
            return None  # what it owns goes with it
        pages = {"light": lighthouse.spec.light, "range": f"{lighthouse.spec.range} nm"}
        if lighthouse.spec.harbour:
            harbour = await self.client.find(Harbour, lighthouse.spec.harbour, request.namespace)
            if harbour is None:
                await self.tell(lighthouse, False, "NoHarbour", f"there is no harbour {lighthouse.spec.harbour} yet")
                return None  # the watch calls again when it comes
            pages["channel"] = str(harbour.spec.channel)
        blank = ConfigMap(metadata=ObjectMeta(name=f"{request.name}-logbook", namespace=request.namespace))
        logbook = await self.client.find(ConfigMap, blank.name, blank.namespace)
        if logbook is None or not owned_by(logbook, lighthouse):
            try:
                logbook = await create_or_adopt(self.client, blank, lighthouse)
            except NotOurs as foreign:
                await self.tell(lighthouse, False, "NotOurs", str(foreign))
                return Result(requeue_after=60.0)  # nobody tells us when what is not ours goes
        await apply(self.client, blank.replace(data=pages), manager="lighthouses", current=logbook)
        await self.tell(lighthouse, True, "Lit", f"shines {lighthouse.spec.light}")
        return None

    async def tell(self, lighthouse: Lighthouse, ok: bool, reason: str, message: str) -> None:
        """Say in the status how it is, and in an event when that is news."""
        before = (lighthouse.status or LighthouseStatus()).conditions
        conditions = ready(before, self.clock, lighthouse.metadata.generation, ok, reason, message)
        if conditions is not before:
            await write_status(self.client, lighthouse, LighthouseStatus(conditions=conditions))
            (self.events.normal if ok else self.events.warning)(lighthouse, reason, message)


async def no_dark_lights(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
    """Asked about every write of a Lighthouse, before it is committed."""
    if request.object is not None and request.object.spec.light == "black":
        problem = FieldError("spec.light", FieldProblem.INVALID, "black", "a light that nobody sees; take white or red")
        return Denied(errors=(problem,))
    return Allowed()


SYSTEM = System(
    name="lighthouses",
    kinds=(Harbour, Lighthouse),
    reconciles=(Keeper,),
    admissions=(Admission(name="no-dark-lights", kinds=(Lighthouse,), function=no_dark_lights),),
)
