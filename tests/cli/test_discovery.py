"""`trimtab discovery run` and `release`, with a controller that the test plays: what it writes is what is shown."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
from typing import Literal

import pytest
from msgspec import UNSET

from tests.cli.conftest import Program
from trimtab.client.api import ApiClient
from trimtab.client.follow import follow
from trimtab.client.protocol import Listing, Query, Ref
from trimtab.model.conditions import Condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.progress import ProgressStatus
from trimtab.runtime.runs import Run
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.discovery.kinds import (
    DiscoveryRule,
    DiscoveryRuleSpec,
    DiscoveryRuleStatus,
    RuleRef,
    Target,
    TargetConnection,
    TargetSpec,
    TargetStatus,
)
from trimtab.systems.discovery.kinds.rule import RELEASE_ANNOTATION, RUN_ANNOTATION
from trimtab.systems.discovery.kinds.target import RULE_LABEL
from trimtab.systems.discovery.ledger.records import Ledger, encode

NOWHERE = f"sha256:{0:064}"
BEGAN, ENDED = "2026-01-01T12:00:00Z", "2026-01-01T12:00:02Z"
SPEC = DiscoveryRuleSpec(
    rule_ref=RuleRef(group="discovery.trimtab.dev", version="v1alpha1", kind="DiscoveryRuleIPRange", name="campus"),
    target_connection_profiles=(TargetConnection(connection_profile="gnmi", credentials="lab"),),
)


class Controller:
    """What the rule's controller would write."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def create(self, spec: DiscoveryRuleSpec = SPEC) -> DiscoveryRule:
        metadata = ObjectMeta(name="campus", namespace=self._namespace)
        return await self._client.create(DiscoveryRule(metadata=metadata, spec=spec))

    async def rule(self) -> DiscoveryRule:
        return await self._client.get(DiscoveryRule, "campus", self._namespace)

    async def write(self, status: DiscoveryRuleStatus) -> None:
        old = await self.rule()
        await self._client.patch(old, old.replace(status=status), subresource="status")

    async def delete(self) -> None:
        await self._client.delete(Ref(DiscoveryRule, "campus", self._namespace))

    async def target(self, name: str, phase: Literal["Ready", "Stale", "Lost"]) -> None:
        metadata = ObjectMeta(name=name, namespace=self._namespace, labels={RULE_LABEL: "campus"})
        spec = TargetSpec(provider="unknown", address="127.0.0.1")
        made = await self._client.create(Target(metadata=metadata, spec=spec))
        await self._client.patch(made, made.replace(status=TargetStatus(phase=phase)), subresource="status")

    async def asked(self) -> str:
        """The value of the annotation, when it comes."""
        following = follow(self._client, DiscoveryRule, Query(namespace=self._namespace))
        try:
            async for told in following:
                for rule in told.items if isinstance(told, Listing) else (told.object,):
                    assert rule is not None
                    value = (rule.metadata.annotations or {}).get(RUN_ANNOTATION)
                    if value:
                        return value
        finally:
            await following.aclose()
        raise AssertionError("the watch never ends")


@pytest.fixture
def controller(discovery_client: ApiClient, discovery: Program) -> Controller:
    return Controller(discovery_client, discovery.namespace)


def manual(**more: object) -> Run:
    return Run(**{"id": "r2", "trigger": "Manual", "started": BEGAN, "outcome": "Running", **more})  # type: ignore[arg-type]


OLD = Run(id="r1", trigger="Manual", started=BEGAN, outcome="Succeeded", finished=ENDED)
GONE = manual(outcome="Succeeded", finished=ENDED, counts={"identified": 3, "silent": 250})


def started(discovery: Program, *words: str) -> subprocess.Popen[str]:
    return discovery.installed("discovery", "run", "campus", *words, stderr=subprocess.PIPE)


async def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = await asyncio.to_thread(process.communicate, timeout=30)
    return process.returncode, out, err


async def test_run_follows_the_run_that_it_asked_for_and_tells_its_counts(
    discovery: Program, controller: Controller
) -> None:
    await controller.create()
    await controller.write(DiscoveryRuleStatus(history=(OLD,)))
    process = started(discovery)
    value = await controller.asked()
    await controller.write(DiscoveryRuleStatus(history=(manual(), OLD), handled_run=value))
    progress = ProgressStatus(done=128, total=256, note="probing", started=BEGAN, updated=ENDED)
    await controller.write(DiscoveryRuleStatus(history=(manual(), OLD), handled_run=value, progress=progress))
    assert process.stderr is not None
    assert await asyncio.to_thread(process.stderr.readline) == "discoveryrule/campus: 128 of 256: probing\n"
    await controller.target("leaf1", "Ready")
    await controller.target("leaf2", "Stale")
    await controller.target("leaf3", "Ready")
    await controller.write(DiscoveryRuleStatus(history=(GONE, OLD), handled_run=value))
    code, out, _ = await ended(process)
    assert code == 0
    assert out.splitlines() == [
        "discoveryrule/campus: Succeeded in 2 s",
        "OUTCOME      COUNT",
        "identified   3",
        "silent       250",
        "Targets: 2 Ready, 1 Stale",
    ]


async def test_a_run_that_failed_has_exit_code_1_and_says_why(discovery: Program, controller: Controller) -> None:
    await controller.create()
    process = started(discovery)
    value = await controller.asked()
    failed = manual(outcome="Failed", finished=ENDED, message="no socket could be opened")
    await controller.write(DiscoveryRuleStatus(history=(failed,), handled_run=value))
    code, out, _ = await ended(process)
    assert code == 1
    assert out == "discoveryrule/campus: Failed in 2 s: no socket could be opened\nTargets: none\n"


async def test_while_nothing_begins_it_says_what_hinders(discovery: Program, controller: Controller) -> None:
    await controller.create()
    process = started(discovery)
    value = await controller.asked()
    hindered = Condition(
        type="Ready",
        status="False",
        reason="SweepFailed",
        message="no socket could be opened",
        last_transition_time=BEGAN,
    )
    await controller.write(DiscoveryRuleStatus(conditions=(hindered,)))
    assert process.stderr is not None
    said = await asyncio.to_thread(process.stderr.readline)
    assert "it has not begun: SweepFailed: no socket could be opened" in said
    await controller.write(DiscoveryRuleStatus(history=(GONE,), handled_run=value, conditions=UNSET))
    assert (await ended(process))[0] == 0


def invalid(generation: int) -> Condition:
    return Condition(
        type="Ready",
        status="False",
        reason="InvalidProfile",
        message="TargetConnectionProfile gnmi: not found",
        last_transition_time=BEGAN,
        observed_generation=generation,
    )


async def test_a_rule_that_cannot_begin_ends_it_at_once(discovery: Program, controller: Controller) -> None:
    rule = await controller.create()
    await controller.write(DiscoveryRuleStatus(conditions=(invalid(rule.metadata.generation or 1),)))
    ran = discovery("discovery", "run", "campus", "--timeout", "1h")
    assert ran.code == 1
    assert "does not sweep: InvalidProfile: TargetConnectionProfile gnmi: not found" in ran.err


async def test_what_hindered_another_spec_says_nothing_of_this_one(discovery: Program, controller: Controller) -> None:
    await controller.create()
    await controller.write(DiscoveryRuleStatus(conditions=(invalid(7),)))
    assert discovery("discovery", "run", "campus", "--timeout", "0.2s").code == 124


async def test_a_run_that_left_the_history_is_told_by_the_newest_one(
    discovery: Program, controller: Controller
) -> None:
    await controller.create()
    await controller.write(DiscoveryRuleStatus(history=(OLD,)))
    process = started(discovery)
    value = await controller.asked()
    later = Run(id="r9", trigger="Schedule", started=BEGAN, outcome="Succeeded", finished=ENDED)
    await controller.write(DiscoveryRuleStatus(history=(later, OLD), handled_run=value))
    code, out, _ = await ended(process)
    assert code == 0
    assert out.startswith("discoveryrule/campus: Succeeded in 2 s")


async def test_who_asks_before_a_request_is_taken_asks_for_both(discovery: Program, controller: Controller) -> None:
    await controller.create()
    process = started(discovery)
    first = await controller.asked()
    assert discovery("discovery", "run", "campus", "--no-wait").code == 0
    second = await controller.asked()
    assert second != first
    await controller.write(DiscoveryRuleStatus(history=(GONE,), handled_run=second))
    assert (await ended(process))[0] == 0


async def test_a_run_that_is_begun_anew_is_followed_to_its_end(discovery: Program, controller: Controller) -> None:
    await controller.create()
    process = started(discovery)
    value = await controller.asked()
    outdated = manual(outcome="Cancelled", finished=ENDED, reason="Outdated")
    await controller.write(DiscoveryRuleStatus(history=(outdated,), handled_run=value))
    anew = Run(id="r3", trigger="Changed", started=BEGAN, outcome="Succeeded", finished=ENDED)
    await controller.write(DiscoveryRuleStatus(history=(anew, outdated), handled_run=value))
    code, out, _ = await ended(process)
    assert code == 0
    assert "Succeeded" in out


async def test_a_rule_that_is_deleted_meanwhile_ends_it(discovery: Program, controller: Controller) -> None:
    await controller.create()
    process = started(discovery)
    await controller.asked()
    await controller.delete()
    code, _, err = await ended(process)
    assert code == 1
    assert "was deleted meanwhile" in err


async def test_no_wait_only_asks(discovery: Program, controller: Controller) -> None:
    await controller.create()
    assert discovery("discovery", "run", "campus", "--no-wait").code == 0
    assert (await controller.rule()).metadata.annotations[RUN_ANNOTATION]  # type: ignore[index]


async def test_each_run_is_asked_for_by_a_value_of_its_own(discovery: Program, controller: Controller) -> None:
    await controller.create()
    values = set()
    for _ in range(2):
        discovery("discovery", "run", "campus", "--no-wait")
        values.add((await controller.rule()).metadata.annotations[RUN_ANNOTATION])  # type: ignore[index]
    assert len(values) == 2


async def test_a_run_that_takes_too_long_is_out_of_time(discovery: Program, controller: Controller) -> None:
    await controller.create()
    ran = discovery("discovery", "run", "campus", "--timeout", "0.2s")
    assert ran.code == 124
    assert "did not end within 0.2 s" in ran.err


async def test_a_suspended_rule_is_not_asked(discovery: Program, controller: Controller) -> None:
    await controller.create(SPEC.replace(suspend=True))
    ran = discovery("discovery", "run", "campus")
    assert ran.code == 1
    assert "is suspended" in ran.err
    assert RUN_ANNOTATION not in ((await controller.rule()).metadata.annotations or {})


@pytest.mark.parametrize("words", [("run", "nobody"), ("plan", "nobody"), ("release", "nobody")])
async def test_a_rule_that_is_not_there_has_its_exit_code(discovery: Program, words: tuple[str, ...]) -> None:
    ran = discovery("discovery", *words)
    assert ran.code == 3
    assert 'discoveryrules.discovery.trimtab.dev "nobody" not found' in ran.err


async def test_an_interrupted_run_goes_on_without_us(discovery: Program, controller: Controller) -> None:
    await controller.create()
    process = started(discovery)
    await controller.asked()
    process.send_signal(signal.SIGINT)
    assert (await ended(process))[0] == 130


async def test_a_terminal_has_a_bar(discovery: Program, controller: Controller) -> None:
    await controller.create()
    ours, its = pty.openpty()
    process = discovery.installed("discovery", "run", "campus", stderr=its)
    os.close(its)
    value = await controller.asked()
    await controller.write(DiscoveryRuleStatus(history=(manual(),), handled_run=value))
    progress = ProgressStatus(done=128, total=256, note="probing", started=BEGAN, updated=ENDED)
    await controller.write(DiscoveryRuleStatus(history=(manual(),), handled_run=value, progress=progress))
    seen = b""
    while b"128/256" not in seen:
        seen += await asyncio.to_thread(os.read, ours, 65536)
    await controller.write(DiscoveryRuleStatus(history=(GONE,), handled_run=value))
    assert (await ended(process))[0] == 0
    os.close(ours)


def mass_loss(status: str) -> Condition:
    return Condition(
        type="MassLoss",
        status=status,  # type: ignore[arg-type]
        reason="Held",
        message="40 of 100 Targets would be lost at once",
        last_transition_time=BEGAN,
    )


async def test_release_names_the_run_that_was_held_back(discovery: Program, controller: Controller) -> None:
    await controller.create()
    digest = await FolderBlobs(discovery.folder / "blobs").put(encode(Ledger(held="r7")))
    await controller.write(DiscoveryRuleStatus(ledger=digest, conditions=(mass_loss("True"),)))
    ran = discovery("discovery", "release", "campus", "--blobs", "blobs")
    assert (ran.code, ran.out) == (0, "discoveryrule/campus: what run r7 lost may go, with the next sweep\n")
    assert (await controller.rule()).metadata.annotations[RELEASE_ANNOTATION] == "r7"  # type: ignore[index]


async def test_release_without_the_blobs_of_the_server_says_so(discovery: Program, controller: Controller) -> None:
    await controller.create()
    await controller.write(DiscoveryRuleStatus(ledger=NOWHERE, conditions=(mass_loss("True"),)))
    assert "name their place with --blobs" in discovery("discovery", "release", "campus").err
    ran = discovery("discovery", "release", "campus", "--blobs", "elsewhere")
    assert ran.code == 1
    assert "are these the blobs of this server?" in ran.err


async def test_release_without_a_loss_is_refused(discovery: Program, controller: Controller) -> None:
    await controller.create()
    await controller.write(DiscoveryRuleStatus(history=(GONE,), conditions=(mass_loss("False"),)))
    ran = discovery("discovery", "release", "campus")
    assert ran.code == 1
    assert "holds nothing back" in ran.err
