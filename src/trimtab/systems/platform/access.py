"""From a Cluster to a client of it, by the kubeconfig in its Secret. One connection a cluster, until the Secret changes.

A kubeconfig of a user is foreign input: one that names files, sockets or programs of this machine is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable

from trimtab.client.api import ApiClient
from trimtab.client.config import Config, ConfigError
from trimtab.client.protocol import Client
from trimtab.model import kubernetes
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.scheme import Scheme
from trimtab.runtime.objects import uncached
from trimtab.systems.platform.faults import Fault, without_tag
from trimtab.systems.platform.kinds import Cluster, KubeconfigSecret

CONNECT, REQUEST, BODY = 5.0, 30.0, 64 << 20
ATTEMPTS = 2

Dial = Callable[[Config], ApiClient]


class Connections:
    """Clients of clusters, kept."""

    def __init__(self, clock: Clock, dial: Dial | None = None) -> None:
        self._clock = clock
        self._dial = dial or self._dialled
        self._kept: dict[tuple[str, str], tuple[str, ApiClient]] = {}

    async def client(self, hub: Client, cluster: Cluster) -> ApiClient:
        """Fault when there is no getting in, before anything is sent."""
        reference, context = access_of(cluster)
        content = await _kubeconfig(hub, cluster.namespace, reference)
        digest = hashlib.sha256(content + b"\0" + context.encode()).hexdigest()
        key = (cluster.namespace, cluster.name)
        kept = self._kept.get(key)
        if kept is not None and kept[0] == digest:
            return kept[1]
        try:
            made = self._dial(_config(content, context, reference))
        except ConfigError as error:
            raise Fault("KubeconfigInvalid", without_tag(str(error)), again=False) from None
        kept = self._kept.get(key)
        self._kept[key] = (digest, made)
        if kept is not None:
            await kept[1].close()
        return made

    async def forget(self, namespace: str, name: str) -> None:
        kept = self._kept.pop((namespace, name), None)
        if kept is not None:
            await kept[1].close()

    async def close(self) -> None:
        for _, client in self._kept.values():
            await client.close()
        self._kept.clear()

    def _dialled(self, config: Config) -> ApiClient:
        from trimtab.client.http import HttpTransport, Limits  # only who connects pays for it
        from trimtab.client.retry import Policy

        limits = Limits(connect=CONNECT, request=REQUEST, body=BODY)
        transport = HttpTransport(config, limits=limits, policy=Policy(ATTEMPTS), clock=self._clock)
        return ApiClient(transport, kubernetes.register(Scheme()), namespace=config.namespace)


def access_of(cluster: Cluster) -> tuple[KubeconfigSecret, str]:
    """The key of the Secret with its kubeconfig, and the context in it. Fault while a managed cluster has none."""
    if imported := cluster.spec.config.imported:
        return imported.kubeconfig_secret_ref, imported.context or ""
    given = cluster.status.kubeconfig_secret_ref if cluster.status else None
    if not given:
        raise Fault("NotProvisioned", "there is no kubeconfig yet: its provisioner has not made the cluster")
    return given, ""


async def _kubeconfig(hub: Client, namespace: str, reference: KubeconfigSecret) -> bytes:
    try:
        secret = await uncached(hub).get(Secret, reference.name, namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        raise Fault("SecretMissing", f"there is no Secret {reference.name} in {namespace}") from None
    value = ((secret.raw or {}).get("data") or {}).get(reference.key)
    if not isinstance(value, str) or not value:
        raise Fault("SecretMissing", f"Secret {reference.name} has no key {reference.key}")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise Fault("KubeconfigInvalid", f"key {reference.key} of Secret {reference.name} is not base64") from None


def _config(content: bytes, context: str, reference: KubeconfigSecret) -> Config:
    from trimtab.client.kubeconfig import parse

    return parse(content, context=context, source=f"Secret {reference.name}")
