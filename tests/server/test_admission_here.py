"""Manifests of a cluster, applied beside the embedded server: what it asks itself is not asked over the network too."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Reader
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Scheme, Untyped
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))


async def allow(request: AdmissionRequest[Any], reader: Reader) -> Allowed:
    return Allowed()


def configuration(namespace: str, path: str) -> Untyped:
    service = {"namespace": namespace, "name": "rest", "port": 443, "path": path}
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {
        "name": "judge.example.com",
        "clientConfig": {"service": service},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return Untyped(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "trimtab-rest"},
            "webhooks": [webhook],
        }
    )


@pytest.mark.parametrize(
    ("namespace", "path", "asked"),
    [
        ("trimtab-system", "/validate/objects", False),
        ("trimtab-system", "/validate/others", True),
        ("elsewhere", "/validate/objects", True),
    ],
)
async def test_only_what_the_server_has_itself_is_not_asked(namespace: str, path: str, asked: bool) -> None:
    store = MemoryStore()
    server = Server(store, admission=(Admission(name="objects", kinds=(ConfigMap,), function=allow),))
    await server.start()
    try:
        client = local_client(server, ADMIN, Scheme())
        await client.create(configuration(namespace, path))
        made = Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
        if asked:
            with pytest.raises(StatusError, match="webhook"):
                await client.create(made)
        else:
            await client.create(made)
    finally:
        await server.stop()
        await store.close()
