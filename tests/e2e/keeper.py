"""A kopf operator for the examples' Beacon: a configuration for each, a status, a count by a timer, a farewell on deletion."""

from typing import Any

import kopf
from kubernetes import client, config


@kopf.on.startup()
def connect(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = True
    settings.networking.error_backoffs = [0.1, 0.2, 0.5, 1]
    settings.watching.reconnect_backoff = 0.1
    config.load_kube_config()


@kopf.on.create("ground.example.com", "v1", "beacons")
def light(spec: kopf.Spec, name: str, namespace: str, body: kopf.Body, **_: Any) -> dict[str, Any]:
    settings = {"metadata": {"name": name}, "data": {"color": spec["color"]}}
    kopf.adopt(settings, owner=body)
    client.CoreV1Api().create_namespaced_config_map(namespace, settings)
    kopf.info(body, reason="Lit", message=f"the light is {spec['color']}")
    return {"site": spec["site"]}


@kopf.on.update("ground.example.com", "v1", "beacons", field="spec.color")
def relight(name: str, namespace: str, new: str, **_: Any) -> None:
    client.CoreV1Api().patch_namespaced_config_map(name, namespace, {"data": {"color": new}})


@kopf.on.resume("ground.example.com", "v1", "beacons")
def resume(patch: kopf.Patch, **_: Any) -> None:
    patch.metadata.annotations["resumed"] = "yes"


@kopf.timer("ground.example.com", "v1", "beacons", interval=0.3)
def count(status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    patch.status["replicas"] = min(status.get("replicas", 0) + 1, 3)


@kopf.on.delete("ground.example.com", "v1", "beacons")
def farewell(name: str, namespace: str, **_: Any) -> None:
    """May be called again: kopf removes its finalizer by a patch that fails when the timer's patch came first."""
    try:
        client.CoreV1Api().create_namespaced_config_map(namespace, {"metadata": {"name": f"{name}-was-here"}})
    except client.ApiException as refused:
        if refused.status != 409:
            raise
