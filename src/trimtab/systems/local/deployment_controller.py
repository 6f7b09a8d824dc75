"""Keeps the Pods of Deployments: makes them, rolls them over to a new template, and tells how far it is.

One reconcile does one step of `rolling.plan` and writes the status; the pods that it made or ended bring the next one.
A pod that is to go is deleted; it stays until its processes have been drained and have ended (`pods`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from trimtab.client.protocol import Preconditions, Query, Ref
from trimtab.model.clock import parse_time
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Deployment, Pod
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, Watch
from trimtab.runtime.index import Index
from trimtab.runtime.objects import is_deleting, uid_of
from trimtab.runtime.owners import controller_of
from trimtab.runtime.status import write_status
from trimtab.runtime.system import Context
from trimtab.systems.local.deployment_status import deadline_in, deployment_status
from trimtab.systems.local.pods.names import FINALIZER, HASH
from trimtab.systems.local.pods.status import condition_of, is_ready
from trimtab.systems.local.pods.truth import Truth
from trimtab.systems.local.rolling import Facts, Plan, plan, wanted_of
from trimtab.systems.local.templates import pod_like, pod_of, template_hash

MOST_PODS = 200
"""Of all Deployments together: each is a process or more of this machine."""


def owner_of(change: Change) -> Iterable[Request]:
    """The Deployment of a pod."""
    for head in change.heads:
        for owner in (head.owner_references or ()) if head is not None else ():
            if owner.controller and owner.kind == "Deployment" and owner.api_version == "apps/v1":
                yield Request(change.request.namespace, owner.name)


def owners(pod: Any) -> Iterable[str]:
    owner = controller_of(pod)
    return () if owner is None else (owner.uid,)


class DeploymentController(Controller[Deployment]):
    name = "local-deployments"
    watches = (Watch(kind=Pod, to=owner_of, indexes=(Index("deployment", owners),)),)

    def __init__(
        self,
        context: Context,
        truth: Truth | None = None,
        *,
        most_pods: int = MOST_PODS,
        chance: random.Random | None = None,
    ) -> None:
        self._truth = truth
        self._most_pods = most_pods
        self._chance = chance or random.Random()  # noqa: S311 - names

    async def start(self) -> None:
        if self._truth is not None:
            await self._truth.told(self.client)

    async def reconcile(self, request: Request) -> Result | None:
        deployment = await self.client.find(Deployment, request.name, request.namespace)
        if deployment is None or is_deleting(deployment):
            return None  # the garbage collector takes the pods
        spec: dict[str, Any] = deployment.spec or {}
        hashed = template_hash(spec["template"])
        wanted = wanted_of(spec)
        steady = float(spec.get("minReadySeconds") or 0)
        pods = await self.client.indexed(Pod, "deployment", uid_of(deployment))
        facts = [self._facts(pod, hashed, steady) for pod in pods]
        step = plan(wanted, facts)
        await self._end(deployment, pods, step)
        created, refused = await self._make(deployment, pods, step, hashed)
        pods = await self.client.indexed(Pod, "deployment", uid_of(deployment))
        facts = [self._facts(pod, hashed, steady) for pod in pods]
        now, deadline = self.clock.now(), spec.get("progressDeadlineSeconds")
        status = deployment_status(
            deployment.status or {},
            wanted,
            facts,
            generation=deployment.metadata.generation or 0,
            deadline=deadline,
            now=now,
            created=created,
            refused=refused,
        )
        try:
            await write_status(self.client, deployment, status)
        except StatusError as error:
            if error.code != 404:  # it is gone
                raise
            return None
        again = [wait for wait in (deadline_in(status, deadline, now), self._next_available(pods, steady)) if wait]
        if refused:
            again.append(5.0)
        return Result(requeue_after=max(0.05, min(again))) if again else None

    async def _end(self, deployment: Deployment, pods: list[Pod], step: Plan) -> None:
        going = [pod for pod in pods if pod.name in step.end]
        for pod in going:
            try:
                await self.client.delete(
                    Ref(Pod, pod.name, pod.namespace), preconditions=Preconditions(uid=uid_of(pod))
                )
            except StatusError as error:
                if error.code not in (404, 409):
                    raise
        if going:
            names = ", ".join(pod.name for pod in going[:5])
            self.events.normal(deployment, "ScalingReplicaSet", f"ends {len(going)} pods: {names}")

    async def _make(self, deployment: Deployment, pods: list[Pod], step: Plan, hashed: str) -> tuple[int, str]:
        """How many were made, and why not more."""
        if not step.make:
            return 0, ""
        everything = (await self.client.list(Pod, Query())).items
        room = self._most_pods - sum(FINALIZER in (pod.metadata.finalizers or ()) for pod in everything)
        made = 0
        newest = max(pods, key=_born) if step.like_newest else None
        for _ in range(min(step.make, room)):
            pod = (
                pod_of(deployment, (deployment.spec or {})["template"], hashed, self._chance)
                if newest is None
                else pod_like(deployment, newest, self._chance)
            )
            try:
                await self.client.create(pod)
            except StatusError as error:
                if error.code in (409, 429) or error.code >= 500:
                    raise
                return made, error.message[:1000]
            made += 1
        if made:
            self.events.normal(deployment, "ScalingReplicaSet", f"makes {made} pods of template {hashed}")
        if made < step.make:
            return (
                made,
                f"there are {self._most_pods} pods already, which is the most that this machine is asked to run",
            )
        return made, ""

    def _facts(self, pod: Pod, hashed: str, steady: float) -> Facts:
        raw = {"status": pod.status or {}}
        ready = is_ready(raw) and not is_deleting(pod)
        statuses = raw["status"].get("containerStatuses") or ()
        return Facts(
            name=pod.name,
            new=(pod.metadata.labels or {}).get(HASH) == hashed,
            deleting=is_deleting(pod),
            ready=ready,
            available=ready and self._steady_in(pod, steady) <= 0,
            restarts=sum(each.get("restartCount", 0) for each in statuses),
            born=_born(pod),
        )

    def _steady_in(self, pod: Pod, steady: float) -> float:
        """Seconds until a ready pod is an available one."""
        since = condition_of(pod.status or {}, "Ready").get("lastTransitionTime")
        if not steady or not since:
            return 0.0
        return (parse_time(since) + timedelta(seconds=steady) - self.clock.now()).total_seconds()

    def _next_available(self, pods: list[Pod], steady: float) -> float | None:
        waits = [
            self._steady_in(pod, steady)
            for pod in pods
            if is_ready({"status": pod.status or {}}) and not is_deleting(pod)
        ]
        return min((wait for wait in waits if wait > 0), default=None)


def _born(pod: Pod) -> str:
    return str(pod.metadata.creation_timestamp or "")
