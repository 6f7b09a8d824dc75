"""What a server behind this one must know to believe it: the ConfigMap kube-system/extension-apiserver-authentication, and
the role by which it may be read. The ConfigMap is mended when somebody changes or deletes it."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from trimtab.server.auth.pki import PROXY
from trimtab.server.strategy import Document
from trimtab.store.contract import Gone, Query

if TYPE_CHECKING:
    from trimtab.server.core import Server

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
READER = f"{NAME}-reader"
RBAC = "rbac.authorization.k8s.io"
USERS = ("system:kube-controller-manager", "system:kube-scheduler")


def data(client_ca: str, proxy_ca: str) -> dict[str, str]:
    return {
        "client-ca-file": client_ca,
        "requestheader-allowed-names": f'["{PROXY}"]',
        "requestheader-client-ca-file": proxy_ca,
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }


def policies() -> list[Document]:
    def metadata(name: str) -> Document:
        return {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        }

    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME], "verbs": ["get", "list", "watch"]}
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": user} for user in USERS]
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata(READER), "rules": [rule]},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata(f"system::{READER}"),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": READER},
            "subjects": subjects,
        },
    ]


class Published:
    """Nothing is told by a server that has no certificate to be known by."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def seed(self) -> None:
        for policy in policies():
            await self._server.acts.ensure(policy)
        await self._mend()

    async def run(self) -> None:
        store = self._server.store
        while True:
            try:
                query = Query(resource="configmaps", namespace=NAMESPACE, name=NAME)
                async with aclosing(store.watch(query, store.revision)) as batches:
                    await self._mend()
                    async for batch in batches:
                        if batch.changes:
                            await self._mend()
            except Gone:
                continue

    async def _mend(self) -> None:
        identity = self._server.aggregator.identity
        if identity is None:
            return
        told = data(self._server.ca, identity.ca)
        metadata = {"name": NAME, "namespace": NAMESPACE}
        await self._server.acts.ensure({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": told})
        served = self._server.registry.find("", "v1", "configmaps")
        assert served is not None  # noqa: S101 - a built-in kind
        await self._server.acts.modify(served, NAMESPACE, NAME, lambda live: live.update(data=told))
