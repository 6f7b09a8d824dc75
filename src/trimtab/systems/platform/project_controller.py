"""The controller of Projects: each has the namespace of its name.

Whose a namespace is, is told by an annotation with the Project's uid, and not by an owner reference: a garbage collector
that does not see the hub for a moment must not take a namespace with all that is in it. Only one that the Project has made
is ever deleted, and only when no resource of the hub is in it, or the Project says that they go with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from trimtab.client.protocol import AnyKind, Named, Preconditions, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.hub import ADOPTED_BY, MADE_FOR, PROJECT_LABEL
from trimtab.model.kubernetes import Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime import Controller, Request, Result, Watch
from trimtab.runtime.changes import Change
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.objects import is_deleting, uid_of, uncached, with_metadata
from trimtab.runtime.owners import controller_of
from trimtab.runtime.status import ready, write_status
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.platform.faults import Fault, counted
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Project, ProjectStatus, Workload

FINALIZER = "hub.trimtab.dev/project"
AGAIN, SOON = 30.0, 2.0
HELD: tuple[AnyKind, ...] = (
    Named("hub.trimtab.dev/v3", "GitSync"),
    Workload,
    Cluster,
    Blueprint,
    Addon,
    Named("hub.trimtab.dev/v3", "SyncConflict"),
    Named("hub.trimtab.dev/v3", "Repository"),
)
"""Kinds of the hub, in the order in which they go: what needs others first. A sync would put back what goes before it, or
take it out of Git, too."""


def _of_namespace(change: Change) -> Iterable[Request]:
    return (Request("", change.request.name),)


class ProjectController(Controller[Project]):
    concurrency = 4
    echo = False
    watches = (Watch(kind=Namespace, to=_of_namespace),)

    async def reconcile(self, request: Request) -> Result | None:
        project = await self.client.find(Project, request.name)
        if project is None:
            return None
        try:
            return await finalizer(self.client, project, FINALIZER, apply=self._keep, cleanup=self._leave)
        except Fault as fault:
            if is_deleting(project) and fault.reason == "NotEmpty":
                self.events.warning(project, fault.reason, fault.message)
            await self._say(project, False, fault)
            return Result(requeue_after=SOON if is_deleting(project) else AGAIN)

    async def _keep(self, project: Project) -> Result | None:
        try:
            namespace = await uncached(self.client).get(Namespace, project.name)
        except StatusError as error:
            if error.code != 404:
                raise
            namespace = await self._make(project)
        else:
            namespace = await self._owned(project, namespace)
        status = project.status or ProjectStatus()
        generation = project.metadata.generation or UNSET
        adopted = (namespace.metadata.annotations or {}).get(ADOPTED_BY) == uid_of(project)
        reason = "Adopted" if adopted else "NamespaceMade"
        await write_status(
            self.client,
            project,
            status.replace(
                observed_generation=generation,
                namespace=project.name,
                adopted=adopted or UNSET,
                resources=UNSET,
                conditions=ready(status.conditions, self.clock, generation, True, reason),
            ),
        )
        return None

    async def _make(self, project: Project) -> Namespace:
        metadata = ObjectMeta(
            name=project.name, labels={PROJECT_LABEL: project.name}, annotations={MADE_FOR: uid_of(project)}
        )
        try:
            made = await self.client.create(Namespace(metadata=metadata))
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            raise Fault("NamespaceBusy", "the namespace came into being meanwhile: it is looked at again") from None
        self.events.normal(project, "NamespaceMade", f"made namespace {project.name}")
        return made

    async def _owned(self, project: Project, namespace: Namespace) -> Namespace:
        """The namespace, if it is the Project's or may be."""
        if is_deleting(namespace):
            raise Fault(
                "NamespaceDeleting", f"namespace {project.name} is being deleted: it is made anew when it is gone"
            )
        annotations = dict(namespace.metadata.annotations or {})
        if uid_of(project) in (annotations.get(MADE_FOR), annotations.get(ADOPTED_BY)):
            return namespace
        holder = controller_of(namespace)
        if holder is not None:
            raise Fault("NamespaceTaken", f"namespace {project.name} belongs to {holder.kind} {holder.name}")
        if project.name.startswith("kube-") or project.name == NAMESPACE:
            raise Fault("NamespaceReserved", f"namespace {project.name} is a system's own: choose another name")
        labels = {**(namespace.metadata.labels or {}), PROJECT_LABEL: project.name}
        if MADE_FOR in annotations and labels == namespace.metadata.labels and not project.spec.adopt:
            # For a Project of this name that went before we knew of it: there is one of a name.
            left = with_metadata(namespace, annotations={**annotations, MADE_FOR: uid_of(project)})
            return await self.client.patch(namespace, left)
        if not project.spec.adopt:
            raise Fault(
                "NamespaceExists",
                f"namespace {project.name} exists and is not the project's: set spec.adopt to take it over",
            )
        annotations.pop(MADE_FOR, None)
        annotations[ADOPTED_BY] = uid_of(project)
        taken = with_metadata(namespace, annotations=annotations, labels=labels)
        adopted = await self.client.patch(namespace, taken)
        self.events.normal(project, "Adopted", f"took over namespace {project.name}")
        return adopted

    async def _leave(self, project: Project) -> Result | None:
        try:
            namespace = await uncached(self.client).get(Namespace, project.name)
        except StatusError as error:
            if error.code != 404:
                raise
            return None
        annotations = namespace.metadata.annotations or {}
        ours = annotations.get(MADE_FOR) == uid_of(project)
        if not ours and annotations.get(ADOPTED_BY) != uid_of(project):
            return None
        left = await self._resources(project.name)
        if left and project.spec.deletion != "Cascade":
            raise Fault(
                "NotEmpty",
                f"the project has {counted(len(left), 'resource')}, such as {left[0][1].kind} {left[0][1].name}: delete them "
                "first, or set spec.deletion to Cascade",
            )
        if not left and (others := await self._others(project)) and not (ours and project.spec.deletion == "Cascade"):
            hint = ", or set spec.deletion to Cascade" if ours else ": they do not go with a namespace that was adopted"
            raise Fault(
                "NotEmpty", f"the project has {counted(others, 'resource')} of kinds of others: delete them first{hint}"
            )
        if left:
            await self._empty(left)
            raise Fault(
                "Emptying",
                f"waits for {counted(len(left), 'resource')} to go, such as {left[0][1].kind} {left[0][1].name}",
            )
        if ours:
            await self._delete(namespace)
        else:
            kept = {name: value for name, value in annotations.items() if name != ADOPTED_BY}
            labels = {name: value for name, value in (namespace.metadata.labels or {}).items() if name != PROJECT_LABEL}
            await self.client.patch(namespace, with_metadata(namespace, annotations=kept, labels=labels))
        return None

    async def _resources(self, namespace: str) -> list[tuple[AnyKind, Any]]:
        """Of the hub; not from a cache, for a namespace is at stake. What the API does not serve is not there."""
        found: list[tuple[AnyKind, Any]] = []
        for kind in HELD:
            try:
                listed = await uncached(self.client).list(kind, Query(namespace=namespace))
            except StatusError as error:
                if error.code != 404:
                    raise
                continue
            found += [(kind, item) for item in listed.items]
        return found

    async def _others(self, project: Project) -> int:
        """Resources of kinds that are not known here: the hub tells of them when it is asked for a project that goes."""
        try:
            told = (await uncached(self.client).get(Project, project.name)).status
        except StatusError as error:
            if error.code != 404:
                raise
            return 0
        return told.resources or 0 if told else 0

    async def _empty(self, left: list[tuple[AnyKind, Any]]) -> None:
        """Kind after kind: the next ones go when the first are gone."""
        first = left[0][0]
        for kind, item in left:
            if kind is not first or is_deleting(item):
                continue
            try:
                at = Preconditions(uid=uid_of(item))
                await self.client.delete(Ref(kind, item.name, item.namespace), preconditions=at)
            except StatusError as error:
                if error.code not in (404, 409):
                    raise

    async def _delete(self, namespace: Namespace) -> None:
        if is_deleting(namespace):
            raise Fault("Emptying", f"waits for namespace {namespace.name} to go")
        try:
            at = Preconditions(uid=uid_of(namespace))
            await self.client.delete(Ref(Namespace, namespace.name), preconditions=at)
        except StatusError as error:
            if error.code not in (404, 409):
                raise
        raise Fault("Emptying", f"waits for namespace {namespace.name} to go")

    async def _say(self, project: Project, ok: bool, fault: Fault) -> None:
        status = project.status or ProjectStatus()
        generation = project.metadata.generation or UNSET
        conditions = ready(status.conditions, self.clock, generation, ok, fault.reason, fault.message)
        await write_status(self.client, project, status.replace(conditions=conditions, observed_generation=generation))
