"""A CanaryDeployment for tests of what it makes: `canary(analysis={…})`."""

from __future__ import annotations

from typing import Any

from trimtab.model.document import convert
from trimtab.systems.delivery.kinds import CanaryDeployment

REVISION = "v1:" + "0123456789abcdef" * 4
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"team": "a"}, "creationTimestamp": None},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "example.com/web:1",
                "env": [{"name": "TOKEN", "value": "hush"}],
                "ports": [{"containerPort": 8080}],
                "resources": {"limits": {"cpu": "0.5"}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }
        ],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    },
}


def canary(
    name: str = "web",
    namespace: str = "shop",
    *,
    deployment: dict[str, Any] | None = None,
    service: dict[str, Any] | None = None,
    uid: str = "",
    **spec: Any,
) -> CanaryDeployment:
    """`deployment` and `service` are laid over the usual ones; the rest is the spec's, as it is on the wire."""
    usual = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    document = {
        "apiVersion": "delivery.trimtab.dev/v1alpha1",
        "kind": "CanaryDeployment",
        "metadata": {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})},
        "spec": {
            "deployment": {**usual, **(deployment or {})},
            "service": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}], **(service or {})},
            **spec,
        },
    }
    return convert(document, CanaryDeployment)


def virtual_service(*http: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Someone's own."""
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "front", "namespace": "shop", "annotations": {"team": "edge"}},
        "spec": {"hosts": ["shop.example.com"], **({"http": list(http)} if http else {}), **spec},
    }


def to(host: str, weight: int | None = None, **more: Any) -> dict[str, Any]:
    """One destination of a route."""
    return {"destination": {"host": host}, **({} if weight is None else {"weight": weight}), **more}
