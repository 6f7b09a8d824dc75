"""Our audit events beside those of the real server: the same requests, the same lines but for identifiers and times."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trimtab.testing.cluster import BinariesMissing, RealCluster
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer

pytestmark = pytest.mark.cluster

RULES = [{"level": "RequestResponse", "namespaces": ["default"]}]
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitManagedFields": True, "rules": RULES}
VARYING = ("Timestamp", "auditID", "uid", "resourceVersion", "username", "extra")


def asked(server: ApiServer) -> None:
    for words in (
        ("create", "configmap", "a", "--from-literal=x=1"),
        ("patch", "configmap", "a", "-p", '{"data":{"y":"2"}}'),
        ("get", "configmap", "a", "--as", "bob", "--as-group", "ops"),
        ("get", "configmap", "nothing"),
        ("delete", "configmap", "a", "--wait=false"),
    ):
        command = ["kubectl", "--kubeconfig", str(server.kubeconfig), *words]
        subprocess.run(command, capture_output=True, check=False, timeout=30)


def told(log: Path) -> list[Any]:
    events = [json.loads(line) for line in log.read_text().splitlines()]
    events = [event for event in events if event["objectRef"]["resource"] == "configmaps"]
    for event in events:
        if event["verb"] == "delete":  # the real one shows its internal version
            event.get("requestObject", {}).pop("kind", None)
            event.get("requestObject", {}).pop("apiVersion", None)
    return [_steady(event) for event in events]


def _steady(value: Any) -> Any:
    if isinstance(value, list):
        return [_steady(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {k: _steady(v) for k, v in value.items() if not k.endswith(VARYING) and k != "creationTimestamp"}


def test_both_servers_tell_the_same(tmp_path: Path) -> None:
    policy, real, ours = (tmp_path / name for name in ("policy.json", "real.log", "ours.log"))
    policy.write_text(json.dumps(POLICY))
    for folder in ("kubernetes", "trimtab"):
        (tmp_path / folder).mkdir()
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={real}")
    controllers = ("serviceaccount-controller", "namespace-controller")
    try:
        cluster = RealCluster(tmp_path / "kubernetes", controllers=controllers, server_flags=flags)
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with cluster:
        asked(cluster)
    options = ("--systems", "none", "--audit-policy", str(policy), "--audit-log", str(ours))
    with TrimtabServer(tmp_path / "trimtab", flags=options) as server:
        asked(server)
    assert len(told(real)) == 12
    assert told(ours) == told(real)
