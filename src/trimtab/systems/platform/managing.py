"""Clusters that a provisioner makes: one step at a time, its state kept in the status before the next one."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted
from trimtab.runtime.deadline import within
from trimtab.runtime.events import Recorder
from trimtab.runtime.objects import uncached
from trimtab.runtime.owners import owned_by, owner_reference
from trimtab.runtime.status import condition, ready, write_status
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Cluster, ClusterStatus, KubeconfigSecret
from trimtab.systems.platform.provisioners import Provisioned, provisioner_of

MANAGER = "platform.trimtab.dev"
PROVISIONED = "Provisioned"
AGAIN, STEP = 60.0, 600.0
KEY = "kubeconfig"


class Managing:
    def __init__(self, client: Client, clock: Clock, events: Recorder) -> None:
        self._client, self._clock, self._events = client, clock, events

    async def provision(self, cluster: Cluster, flavour: str) -> tuple[Cluster, float | None]:
        """The cluster as it is now, and seconds to wait when it cannot be reached yet."""
        provisioner = provisioner_of(flavour)
        if provisioner is None:
            message = (
                f"nothing here makes clusters of type {flavour}: install a package with a provisioner for it, or "
                "register one in an operator file"
            )
            return await self._say(cluster, Provisioned(done=False, reason="NoProvisioner", message=message)), AGAIN
        step = await self._step(cluster, provisioner.provision)
        if step.kubeconfig is not None:
            try:
                await self._keep(cluster, step.kubeconfig)
            except Fault as fault:
                step = Provisioned(done=False, reason=fault.reason, message=fault.message, state=step.state)
        cluster = await self._say(cluster, step)
        reachable = bool(cluster.status and cluster.status.kubeconfig_secret_ref)
        return cluster, None if reachable and step.done else step.again

    async def deprovision(self, cluster: Cluster, flavour: str, *, forced: bool = False) -> None:
        """Fault until it is done. What was never begun, or what the user forces, does not hold the deletion."""
        provisioner = provisioner_of(flavour)
        if provisioner is None:
            if _state(cluster) and not forced:
                raise Fault(
                    "NoProvisioner",
                    f"the provisioner that made it is gone: install one for {flavour} again, or annotate the cluster "
                    'with hub.trimtab.dev/force-delete: "true" to leave what it made behind',
                )
            return
        step = await self._step(cluster, provisioner.deprovision)
        if not step.done:
            await self._say(cluster, step)
            raise Fault(step.reason, step.message or "is being taken down")

    async def _step(
        self, cluster: Cluster, act: Callable[[Cluster, dict[str, Any]], Awaitable[Provisioned]]
    ) -> Provisioned:
        """Somebody else's code: however it fails, it is told, without its message, which may hold what it was given."""
        state = _state(cluster)
        try:
            step = await within(self._clock, STEP, _awaited(act(cluster, state)))
            if not isinstance(step, Provisioned):
                raise TypeError("a step must return Provisioned")
            msgspec.json.encode(step.state)
        except Fault as fault:
            return Provisioned(done=False, reason=fault.reason, message=fault.message, state=state)
        except Exception as error:
            self._events.warning(cluster, "ProvisionerFailed", type(error).__name__)
            return Provisioned(done=False, reason="ProvisionerFailed", message=type(error).__name__, state=state)
        if re.fullmatch("[A-Z][A-Za-z0-9]{0,63}", step.reason):
            return step
        return msgspec.structs.replace(step, reason="Provisioning")

    async def _keep(self, cluster: Cluster, kubeconfig: Redacted) -> None:
        await self._free(cluster, f"{cluster.name}-kubeconfig")
        data = {KEY: base64.b64encode(kubeconfig.reveal_bytes()).decode()}
        metadata = ObjectMeta(
            name=f"{cluster.name}-kubeconfig",
            namespace=cluster.namespace,
            owner_references=(owner_reference(cluster, controller=True),),
        )
        await self._client.apply(Secret(metadata=metadata, data=data), manager=MANAGER, force=True)

    async def _free(self, cluster: Cluster, name: str) -> None:
        """Fault when a Secret of that name is not the cluster's: it may hold what somebody still needs."""
        try:
            found = await uncached(self._client).get(Secret, name, cluster.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return
        if not owned_by(found, cluster):
            raise Fault("SecretTaken", f"Secret {name} exists and is not the cluster's: rename or delete it")

    async def _say(self, cluster: Cluster, step: Provisioned) -> Cluster:
        status = cluster.status or ClusterStatus()
        generation = cluster.metadata.generation or UNSET
        reason = step.reason if not step.done else "Provisioned"
        conditions = condition(status.conditions, self._clock, generation, PROVISIONED, step.done, reason, step.message)
        secret = status.kubeconfig_secret_ref
        if step.kubeconfig is not None:
            secret = KubeconfigSecret(name=f"{cluster.name}-kubeconfig", key=KEY)
        phase = status.phase
        if not step.done:
            phase = "Provisioning"
            conditions = ready(conditions, self._clock, generation, False, reason, step.message)
            if step.reason != "Provisioning" and not any(c.reason == reason for c in status.conditions or ()):
                self._events.warning(cluster, reason, step.message or reason)
        return await write_status(
            self._client,
            cluster,
            status.replace(
                observed_generation=generation,
                phase=phase,
                provisioner=step.state or UNSET,
                kubeconfig_secret_ref=secret,
                conditions=conditions,
            ),
        )


async def _awaited(act: Awaitable[Provisioned]) -> Provisioned:
    return await act


def _state(cluster: Cluster) -> dict[str, Any]:
    return dict(cluster.status.provisioner or {}) if cluster.status else {}
