"""The commands with an implementation of a user's own: `--operator examples/discovery/lists.py` is all that they need."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program, Zygote, environment
from trimtab.cli.systems import operator
from trimtab.client.api import ApiClient
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.yaml import load_all
from trimtab.runtime.prepare import prepare
from trimtab.systems.discovery.scope import implementations
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

FILE = str(Path(__file__).parents[2] / "examples" / "discovery" / "lists.py")
MANIFEST = """\
apiVersion: discovery.trimtab.dev/v1alpha1
kind: AddressList
metadata: {{name: campus}}
spec: {{text: "127.46.0.2\\n127.46.0.3"}}
---
apiVersion: v1
kind: Secret
metadata: {{name: lab}}
stringData: {{username: admin, password: not-for-all, community: public}}
---
apiVersion: discovery.trimtab.dev/v1alpha1
kind: TargetConnectionProfile
metadata: {{name: probe}}
spec: {{protocol: {protocol}, port: {port}, probeTimeout: 500ms}}
---
apiVersion: discovery.trimtab.dev/v1alpha1
kind: DiscoveryRule
metadata: {{name: campus}}
spec:
  ruleRef: {{group: discovery.trimtab.dev, version: v1alpha1, kind: AddressList, name: campus}}
  discoveryProfile: {{credentials: lab, connectionProfiles: [probe]}}
  targetConnectionProfiles: [{{connectionProfile: probe, credentials: lab}}]
"""


@pytest.fixture
def port() -> int:
    (port,) = free_ports(1)
    return port


@pytest.fixture
async def campus(
    discovery: Program, discovery_client: ApiClient, port: int, monkeypatch: pytest.MonkeyPatch
) -> Program:
    """With a rule over a list of two addresses, and nobody who sweeps it."""
    monkeypatch.setattr(implementations, "_KNOWN", dict(implementations._KNOWN))
    monkeypatch.setattr(sys, "path", list(sys.path))
    await prepare(discovery_client, (operator(Path(FILE)),), rights=False)
    manifest = MANIFEST.format(protocol="ssh", port=port)
    ran = discovery("apply", "-f", discovery.write("campus.yaml", manifest))
    assert ran.code == 0, ran.err
    return discovery


def test_the_plan_counts_what_the_object_names(campus: Program, port: int) -> None:
    ran = campus("discovery", "plan", "campus", "--operator", FILE)
    assert ran.code == 0, ran.err
    assert "addresses            2" in ran.lines
    assert f"probes               ssh tcp/{port}" in ran.lines


def test_a_dry_run_probes_what_the_object_names(campus: Program, port: int) -> None:
    with socket.create_server(("127.46.0.3", port)):
        ran = campus("discovery", "run", "campus", "--dry-run", "--operator", FILE)
    assert ran.code == 0, ran.err
    assert f"127.46.0.3   ssh tcp/{port}" in ran.lines


def test_why_knows_what_the_object_names(campus: Program) -> None:
    ran = campus("discovery", "why", "127.46.0.2", "--operator", FILE)
    assert ran.code == 0, ran.err
    assert "127.46.0.2 is in the entry 127.46.0.2 of the rule campus" in " ".join(ran.out.split())


@pytest.mark.parametrize("words", [("plan", "campus"), ("run", "campus", "--dry-run"), ("why", "127.46.0.2")])
def test_without_the_file_a_command_says_what_is_missing(campus: Program, words: tuple[str, ...]) -> None:
    ran = campus("discovery", *words)
    assert ran.code == 1
    assert "names AddressList of discovery.trimtab.dev/v1alpha1" in ran.err
    assert "give the file that has more with --operator" in ran.err


def test_a_file_that_cannot_be_loaded_is_named(campus: Program) -> None:
    ran = campus("discovery", "plan", "campus", "--operator", campus.write("broken.py", "import nothing_like_this"))
    assert ran.code == 1
    assert "broken.py:1: ModuleNotFoundError" in ran.err


@pytest.fixture
def printed(bare: Program) -> list[dict[str, Any]]:
    ran = bare(
        "install", "--systems", "discovery", "--operator", FILE, "--blobs", "postgresql://db.example.com/trimtab"
    )
    assert ran.code == 0, ran.err
    return list(load_all(ran.out))


def named(documents: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = (d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name)
    return found


def test_install_prints_the_definition_of_its_kind(printed: list[dict[str, Any]]) -> None:
    made = named(printed, "CustomResourceDefinition", "addresslists.discovery.trimtab.dev")
    assert made["spec"]["names"]["kind"] == "AddressList"


def test_install_prints_the_right_to_read_it(printed: list[dict[str, Any]]) -> None:
    role = named(printed, "ClusterRole", "trimtab:discovery")
    (rule,) = (rule for rule in role["rules"] if "addresslists" in rule["resources"])
    assert sorted(rule["verbs"]) == ["get", "list", "watch"]


def test_install_prints_a_webhook_that_is_asked_about_it(printed: list[dict[str, Any]]) -> None:
    hooks = named(printed, "ValidatingWebhookConfiguration", "trimtab-discovery")["webhooks"]
    (hook,) = (h for h in hooks if any("addresslists" in rule["resources"] for rule in h["rules"]))
    assert "source" in hook["name"]


def test_install_runs_discovery_once_with_the_file(printed: list[dict[str, Any]]) -> None:
    (deployment,) = (document for document in printed if document["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    at = arguments.index("--systems")
    assert arguments[at : at + 4] == ["--systems", "none", "--operator", FILE]


async def test_beside_the_server_it_judges_watches_and_sweeps(tmp_path: Path, zygote: Zygote, port: int) -> None:
    flags = ("--systems", "discovery", "--operator", FILE)
    with TrimtabServer(tmp_path, flags=flags) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=30)
        program = Program(tmp_path, environment(KUBECONFIG=str(server.kubeconfig)), zygote)
        wrong = MANIFEST.format(protocol="snmp", port=port).replace("127.46.0.3", "127.46.0.300")
        assert "line 2: 127.46.0.300 is not an address" in program("apply", "-f", "-", stdin=wrong).err
        async with SnmpDevice({"127.46.0.3": Personality(name="leaf3")}, port):
            right = MANIFEST.format(protocol="snmp", port=port)
            ran = await asyncio.to_thread(program, "apply", "-f", "-", stdin=right)
            assert ran.code == 0, ran.err
            ran = await asyncio.to_thread(
                program, "wait", "target/leaf3", "--for", "condition=Ready", "--timeout", "30s"
            )
            assert ran.code == 0, ran.err
        told = json.loads(program("get", "discoveryrule", "campus", "-o", "json").out)
        assert [entry["entry"] for entry in told["status"]["entries"]] == ["127.46.0.2", "127.46.0.3"]
