"""The guide to discovery is true: the server takes every manifest in it, and what it says of fields and defaults is so."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from trimtab.model.duration import Duration
from trimtab.model.yaml import load_all
from trimtab.systems.discovery.identify.snmp_login import AUTHENTICATION, PRIVACY
from trimtab.systems.discovery.kinds import PORTS, DiscoveryRuleSpec, Fading
from trimtab.systems.discovery.problems import SHORTEST_LOCKOUT, SHORTEST_PERIOD
from trimtab.systems.discovery.scope.implementations import MAX_EXCLUDES
from trimtab.systems.discovery.scope.plan import PACKETS_VARIABLE, SOCKETS_VARIABLE, Shared
from trimtab.testing.embedded import TrimtabServer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "discovery.md").read_text()
MANIFESTS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    with TrimtabServer(tmp_path_factory.mktemp("guide"), flags=("--systems", "discovery")) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=30)
        yield server


@pytest.mark.parametrize("manifest", MANIFESTS, ids=[str(number) for number in range(1, len(MANIFESTS) + 1)])
def test_the_server_takes_every_manifest_of_the_page(server: TrimtabServer, manifest: str) -> None:
    program = str(Path(sys.executable).with_name("trimtab"))
    command = [program, "apply", "--dry-run", "--kubeconfig", str(server.kubeconfig), "-f", "-"]
    done = subprocess.run(command, input=manifest, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{manifest}\n{done.stderr}"


def test_the_code_of_the_page_is_that_of_the_example() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert code in (ROOT / "examples" / "discovery" / "lists.py").read_text()


def test_the_page_shows_all_sources_of_addresses() -> None:
    ranges = [document for text in MANIFESTS for document in load_all(text) if "IPRange" in document["kind"]]
    shown = {field for document in ranges for field in document["spec"]}
    assert shown == {"prefixes", "addresses", "podSelector", "serviceSelector", "defaultSchema"}


def test_the_table_of_protocols_has_the_default_ports() -> None:
    said = {name: int(port) for name, port in re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE, re.MULTILINE)}
    assert said == PORTS


def test_the_table_of_secret_keys_has_the_names_of_algorithms() -> None:
    assert f"`{' '.join(AUTHENTICATION)}`; `{' '.join(PRIVACY)}`" in PAGE


def test_the_limits_of_a_process_are_named_with_their_defaults() -> None:
    usual = Shared()
    assert f"{usual.packets_per_second:,} a second; `{PACKETS_VARIABLE}`" in " ".join(PAGE.split())
    assert f"({usual.sockets:,}; `{SOCKETS_VARIABLE}`)" in " ".join(PAGE.split())


def test_the_rule_of_the_page_shows_how_targets_fade_by_default() -> None:
    usual = Fading()
    assert (
        f"lostAfterMisses: {usual.lost_after_misses}, lostAfter: {usual.lost_after}, "
        f"deleteAfterMisses: {usual.delete_after_misses}, deleteAfter: {usual.delete_after}, "
        f"maxLossPercent: {usual.max_loss_percent}" in PAGE
    )


def test_the_bounds_of_what_users_write_are_named() -> None:
    assert f"from start to start, {Duration.of(SHORTEST_PERIOD)} at least" in PAGE
    assert f"A short `lockoutWindow` ({SHORTEST_LOCKOUT:g} second is the least)" in PAGE
    assert f"at most {MAX_EXCLUDES:,} excludes" in PAGE


def test_the_lock_out_window_is_the_default_one() -> None:
    (field,) = (field for field in msgspec.structs.fields(DiscoveryRuleSpec) if field.name == "lockout_window")
    assert field.default == "15m"
    assert "`lockoutWindow` (15 minutes)" in PAGE
