"""`trimtab discovery plan`, `run --dry-run` and `why`: from what the API and the ledger say, and from real listeners."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.cli.conftest import Program
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.conditions import Condition
from trimtab.runtime.runs import Run
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleStatus, Target
from trimtab.systems.discovery.ledger.records import AddressRecord, Ledger, encode
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.testing.ports import free_ports

PREFIX = "127.44.0.0/28"
SCOPE = Addresses(parse(PREFIX))
MANIFEST = """\
apiVersion: discovery.trimtab.dev/v1alpha1
kind: DiscoveryRuleIPRange
metadata: {{name: campus}}
spec: {{prefixes: [{{prefix: {prefix}, excludes: ["127.44.0.9"]}}]}}
---
apiVersion: discovery.trimtab.dev/v1alpha1
kind: TargetConnectionProfile
metadata: {{name: ssh}}
spec: {{protocol: ssh, port: {ssh}, probeTimeout: 500ms}}
---
apiVersion: discovery.trimtab.dev/v1alpha1
kind: TargetConnectionProfile
metadata: {{name: snmp}}
spec: {{protocol: snmp, port: {snmp}, probeTimeout: 500ms, probeRetries: 0}}
---
apiVersion: discovery.trimtab.dev/v1alpha1
kind: DiscoveryRule
metadata: {{name: campus}}
spec:
  ruleRef: {{group: discovery.trimtab.dev, version: v1alpha1, kind: DiscoveryRuleIPRange, name: campus}}
  discoveryProfile: {{credentials: lab, connectionProfiles: [ssh, snmp]}}
  targetConnectionProfiles: [{{connectionProfile: ssh, credentials: lab}}]
---
apiVersion: v1
kind: Secret
metadata: {{name: lab}}
stringData: {{community: not-for-all}}
"""


@pytest.fixture
def ports() -> tuple[int, int]:
    ssh, snmp = free_ports(2)
    return ssh, snmp


@pytest.fixture
def campus(discovery: Program, ports: tuple[int, int]) -> Program:
    """With a rule over a prefix of this machine."""
    manifest = MANIFEST.format(prefix=PREFIX, ssh=ports[0], snmp=ports[1])
    ran = discovery("apply", "-f", discovery.write("campus.yaml", manifest))
    assert ran.code == 0, ran.err
    return discovery


@pytest.fixture
def listening(ports: tuple[int, int]) -> Iterator[None]:
    """Something that takes connections at 127.44.0.2 and 127.44.0.3."""
    with (
        socket.create_server(("127.44.0.2", ports[0])),
        socket.create_server(("127.44.0.3", ports[0])),
    ):
        yield


# what a sweep costs


def test_the_plan_says_what_a_sweep_costs_at_most(campus: Program, ports: tuple[int, int]) -> None:
    ran = campus("discovery", "plan", "campus")
    assert ran.code == 0
    assert "addresses            13" in ran.lines
    assert "packets              39" in ran.lines
    assert "sockets              14" in ran.lines
    assert re.search(r"^worst case +1\.\d+s \(within the period, 1m\)$", ran.out, re.MULTILINE)
    assert f"probes               ssh tcp/{ports[0]}, snmp udp/{ports[1]}" in ran.lines


def test_a_profile_that_is_missing_is_named(campus: Program) -> None:
    campus("delete", "targetconnectionprofile", "snmp")
    ran = campus("discovery", "plan", "campus")
    assert ran.code == 3
    assert '"snmp" not found' in ran.err


# a dry run


def test_a_dry_run_counts_what_answers_by_entry_and_lists_it(
    campus: Program, ports: tuple[int, int], listening: None
) -> None:
    ran = campus("discovery", "run", "campus", "--dry-run")
    assert ran.code == 0, ran.err
    header = ran.lines.index("ENTRY           ADDRESSES   OPEN   REFUSED   UNREACHABLE   NOT SENT   SILENT")
    assert ran.lines[header + 1].split() == [PREFIX, "13", "2", "11", "0", "0", "0"]
    assert f"127.44.0.2   ssh tcp/{ports[0]}" in ran.lines
    assert f"127.44.0.3   ssh tcp/{ports[0]}" in ran.lines
    assert "127.44.0.9" not in ran.out


@pytest.fixture
async def agent(ports: tuple[int, int]) -> AsyncIterator[SnmpDevice]:
    async with SnmpDevice({"127.44.0.5": Personality(community=b"not-for-all")}, ports[1]) as device:
        yield device


async def test_a_dry_run_asks_snmp_with_the_community_of_the_secret(
    campus: Program, ports: tuple[int, int], agent: SnmpDevice
) -> None:
    import asyncio

    ran = await asyncio.to_thread(campus, "discovery", "run", "campus", "--dry-run")
    assert f"127.44.0.5   snmp udp/{ports[1]}" in ran.lines
    assert "not-for-all" not in ran.out + ran.err


def test_a_dry_run_without_the_secret_asks_snmp_by_its_engine(campus: Program) -> None:
    campus("delete", "secret", "lab")
    ran = campus("discovery", "run", "campus", "--dry-run")
    assert ran.code == 0, ran.err
    assert "SNMP is asked without a community" in ran.out


async def test_a_dry_run_writes_nothing(campus: Program, discovery_client: ApiClient, listening: None) -> None:
    before = await discovery_client.get(DiscoveryRule, "campus", campus.namespace)
    assert campus("discovery", "run", "campus", "--dry-run").code == 0
    after = await discovery_client.get(DiscoveryRule, "campus", campus.namespace)
    assert after.metadata.resource_version == before.metadata.resource_version
    assert not (await discovery_client.list(Target, Query(namespace=campus.namespace))).items


# why


class Knowing:
    """A rule whose ledger is what the test says."""

    def __init__(self, client: ApiClient, program: Program) -> None:
        self._client, self._program = client, program

    async def knows(self, ledger: Ledger, **status: object) -> None:
        digest = await FolderBlobs(self._program.folder / "blobs").put(encode(ledger))
        old = await self._client.get(DiscoveryRule, "campus", self._program.namespace)
        said = DiscoveryRuleStatus(ledger=digest, **status)  # type: ignore[arg-type]
        await self._client.patch(old, old.replace(status=said), subresource="status")


@pytest.fixture
def rule(campus: Program, discovery_client: ApiClient) -> Knowing:
    return Knowing(discovery_client, campus)


async def test_why_tells_what_came_of_an_address(campus: Program, rule: Knowing) -> None:
    refused = AddressRecord(outcome=Outcome.AUTHENTICATION_FAILED, detail="ssh: the password was refused", at=1.0)
    await rule.knows(Ledger(records={"127.44.0.2": refused}))
    ran = campus("discovery", "why", "127.44.0.2")  # the blobs are beside the kubeconfig
    assert ran.code == 0
    assert ran.lines[0] == "discoveryrule/campus: authentication failed"
    assert "the password was refused" in " ".join(ran.out.split())


async def test_why_tells_silence_from_one_byte(campus: Program, rule: Knowing) -> None:
    outcomes = bytearray(len(SCOPE) - 1)
    outcomes[3] = Outcome.SILENT
    await rule.knows(Ledger(outcomes=bytes(outcomes)))
    assert campus("discovery", "why", "127.44.0.4", "--blobs", "blobs").lines[0] == "discoveryrule/campus: silent"


@pytest.mark.parametrize(("outcome", "goes_on"), [("Running", True), ("Failed", False), ("Cancelled", False)])
async def test_why_says_that_a_sweep_goes_on_only_while_it_does(
    campus: Program, rule: Knowing, outcome: Any, goes_on: bool
) -> None:
    outcomes = bytearray(len(SCOPE) - 1)
    outcomes[3] = Outcome.SILENT
    run = Run(id="7", trigger="Schedule", started="2026-01-01T12:00:00Z", outcome=outcome)
    await rule.knows(Ledger(outcomes=bytes(outcomes), run="7", scope="what was asked", position=5), history=(run,))
    ran = campus("discovery", "why", "127.44.0.4")
    assert ran.lines[0] == "discoveryrule/campus: silent"
    assert ("A sweep goes on" in " ".join(ran.out.split())) is goes_on


async def test_why_says_so_when_an_address_is_excluded(campus: Program, rule: Knowing) -> None:
    ran = campus("discovery", "why", "127.44.0.9")
    assert ran.code == 0
    assert "excluded from 127.44.0.0/28" in " ".join(ran.out.split())


def test_why_says_so_when_a_name_that_a_rule_has_is_not_resolved(campus: Program) -> None:
    named = (
        MANIFEST.partition("---")[0]
        .format(prefix=PREFIX)
        .replace("spec: {", "spec: {addresses: [{address: dev3.invalid}], ")
    )
    assert campus("apply", "-f", campus.write("named.yaml", named)).code == 0
    ran = campus("discovery", "why", "dev3.invalid")
    assert ran.code == 0, ran.err
    assert ran.lines[0] == "discoveryrule/campus: not resolved"
    assert "dev3.invalid is in the entry dev3.invalid of the rule campus" in " ".join(ran.out.split())


async def test_why_says_what_is_wrong_with_the_rule_itself(campus: Program, rule: Knowing) -> None:
    broken = Condition(
        type="Ready",
        status="False",
        reason="InvalidProfile",
        message="Secret lab: not found",
        last_transition_time="2026-01-01T12:00:00Z",
    )
    await rule.knows(Ledger(), conditions=(broken,))
    assert "not ready (InvalidProfile): Secret lab: not found" in " ".join(
        campus("discovery", "why", "127.44.0.2").out.split()
    )


def test_why_has_exit_code_1_when_no_rule_covers_an_address(campus: Program) -> None:
    ran = campus("discovery", "why", "127.45.0.1")
    assert ran.code == 1
    assert "no rule covers 127.45.0.1 in namespace" in ran.err


def test_why_looks_in_all_namespaces_when_told(campus: Program) -> None:
    ran = campus("discovery", "why", "127.44.0.2", "-A", "-n", "default")
    assert ran.code == 0
    assert f"discoveryrule/{campus.namespace}/campus: unprobed" in ran.lines


async def test_why_without_the_blobs_says_how_to_name_them(campus: Program, rule: Knowing) -> None:
    await rule.knows(Ledger())
    ran = campus("discovery", "why", "127.44.0.2", "--blobs", "elsewhere")
    assert ran.code == 1
    assert "are these the blobs of this server?" in ran.err
