"""A new user by `openssl` and `kubectl certificate approve`, and what the audit log has of it."""

from __future__ import annotations

import base64
import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.skipif(not (shutil.which("kubectl") and shutil.which("openssl")), reason="needs both")

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  resources: [{group: certificates.k8s.io}]
"""


def run(*command: str, given: str | None = None) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_approved_certificate_makes_its_holder_a_user(tmp_path: Path) -> None:
    key, asked, certificate = (str(tmp_path / name) for name in ("jane.key", "jane.csr", "jane.crt"))
    log, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    run(
        "openssl",
        "req",
        "-new",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-subj",
        "/O=ops/CN=jane",
        "-out",
        asked,
    )
    document = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "jane"},
        "spec": {
            "request": base64.b64encode(Path(asked).read_bytes()).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
            "expirationSeconds": 3600,
        },
    }
    flags = ("--systems", "none", "--audit-policy", str(policy), "--audit-log", str(log))
    server = TrimtabServer(tmp_path, flags=flags)
    try:
        kubectl = ("kubectl", "--kubeconfig", str(server.kubeconfig))
        run(*kubectl, "create", "-f", "-", given=json.dumps(document))
        assert "Pending" in run(*kubectl, "get", "csr", "jane")
        run(*kubectl, "certificate", "approve", "jane")
        run(*kubectl, "wait", "csr/jane", "--for=jsonpath={.status.certificate}", "--timeout=20s")
        assert "Approved,Issued" in run(*kubectl, "get", "csr", "jane")
        issued = run(*kubectl, "get", "csr", "jane", "-o", "jsonpath={.status.certificate}")
        Path(certificate).write_bytes(base64.b64decode(issued))
        shutil.copy(server.kubeconfig, tmp_path / "as-jane")
        jane = ("kubectl", "--kubeconfig", str(tmp_path / "as-jane"))
        run(*jane, "config", "set-credentials", "jane", "--client-certificate", certificate, "--client-key", key)
        run(*jane, "config", "set-context", "--current", "--user", "jane")
        who = json.loads(run(*jane, "auth", "whoami", "-o", "json"))["status"]["userInfo"]
        assert (who["username"], who["groups"]) == ("jane", ["ops", "system:authenticated"])
    finally:
        server.stop()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    approved = [e for e in events if e["objectRef"].get("subresource") == "approval" and e["verb"] == "update"]
    assert [event["stage"] for event in approved] == ["RequestReceived", "ResponseComplete"]
    assert approved[1]["responseStatus"]["code"] == 200
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
