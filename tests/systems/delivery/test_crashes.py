"""A crash between any two steps of a release, and a lost answer to any of them, change nothing about its end, and break none
of its laws.

Each test plays a scenario once without a fault to count its steps, and then once for each step and each kind of fault,
with as many releases side by side. What takes too long for every day is done for some of the cuts, always the same ones,
unless TRIMTAB_ALL_CUTS is set.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from aiohttp import web

from tests.systems.delivery.crash_kit import Cut, Cuts, mortal, patient
from tests.systems.delivery.stage import Players, Stage, spec
from tests.systems.delivery.witness import Document, Laws, Witness, short
from trimtab.client.protocol import Query
from trimtab.model.document import convert
from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import ConfigMap, ControllerRevision, Deployment, Service
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.blobs import Digest, read
from trimtab.systems.delivery.kinds import CanaryDeployment, ReleaseGroup, ReleaseGroupSpec

ALL = bool(os.environ.get("TRIMTAB_ALL_CUTS"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900 if ALL else 180)]
PATIENCE, SIDE_BY_SIDE = 300.0 if ALL else 60.0, 60
STEPS, INTERVAL = (10, 50), 10.0
MADE = (Deployment, Service, VirtualService, DestinationRule, ControllerRevision, ConfigMap)
UNCUT = Cut("never", 0)


class Stubborn(Players):
    """An image named so is ready as a canary, and never as stable."""

    async def _deployed(self, deployment: Deployment, gone: bool) -> None:
        image = deployment.raw["spec"]["template"]["spec"]["containers"][0]["image"]
        stuck = image.endswith("stubborn") and not deployment.name.endswith("-canary")
        self.broken = {image} if stuck else set()
        await super()._deployed(deployment, gone)


class Scenario:
    """What a user does with one instance, and when it is over. `suffixes` are those of its CanaryDeployments."""

    analysis: Mapping[str, Any] = MappingProxyType({})
    suffixes: tuple[str, ...] = ("",)
    outcomes: tuple[str, ...] = ()
    """Of the runs, newest first."""
    triggers: tuple[str, ...] = ("Revision",)
    deadline = "5m"

    def __init__(self, stage: Stage, witness: Witness) -> None:
        self.stage, self.witness = stage, witness

    async def prepare(self, instance: str) -> None:
        for suffix in self.suffixes:
            name = f"{instance}{suffix}"
            given = spec(analysis=self.analysis, progressDeadline=self.deadline, replicas=1)
            given["deployment"]["selector"]["matchLabels"] = {"app": name}
            given["deployment"]["template"]["metadata"]["labels"] = {"app": name}
            document = {"metadata": {"name": name, "namespace": self.stage.namespace}, "spec": given}
            await self.stage.client.create(convert(document, CanaryDeployment))

    async def act(self, instance: str) -> None:
        await self.stage.image("web:2", instance)

    def over(self, instance: str) -> bool:
        return all(self._ended(f"{instance}{suffix}") for suffix in self.suffixes)

    def _ended(self, name: str) -> bool:
        status = self.witness.status(name)
        outcomes = tuple(run["outcome"] for run in status.get("history") or ())
        return status.get("phase") == "Stable" and len(outcomes) >= len(self.outcomes) and "Running" not in outcomes

    async def until(self, holds: Callable[[Document], Any], name: str) -> None:
        await self.witness.until(lambda: bool(holds(self.witness.status(name))), PATIENCE)


class Good(Scenario):
    outcomes = ("Succeeded",)

    def __init__(self, stage: Stage, witness: Witness, url: str) -> None:
        super().__init__(stage, witness)
        points = (
            "ConfirmRollout",
            "PreRollout",
            "Rollout",
            "ConfirmTrafficIncrease",
            "ConfirmPromotion",
            "PostRollout",
        )
        self.analysis = {
            "webhooks": [{"name": each.lower(), "type": each, "url": url, "timeout": "5s"} for each in points]
        }


class Bad(Scenario):
    outcomes = ("Failed",)

    def __init__(self, stage: Stage, witness: Witness) -> None:
        super().__init__(stage, witness)
        stage.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)


class Skip(Scenario):
    """Straight out, once; the next change is proven again."""

    outcomes = ("Succeeded", "Succeeded")
    triggers = ("Revision", "SkipAnalysis")

    async def act(self, instance: str) -> None:
        def straight(spec: dict[str, Any]) -> None:
            spec["skipAnalysis"] = True
            spec["deployment"]["template"]["spec"]["containers"][0]["image"] = "web:2"

        await self.stage.change(straight, instance)
        await self.until(lambda status: status.get("phase") in ("Promoting", "Returning"), instance)
        await self.stage.image("web:3", instance)


class Superseded(Scenario):
    outcomes = ("Succeeded", "Cancelled")
    triggers = ("Revision", "Revision")

    async def act(self, instance: str) -> None:
        await self.stage.image("web:2", instance)
        await self.until(lambda status: (status.get("run") or {}).get("verifiedWeight") == 10, instance)
        await self.stage.image("web:3", instance)


class Stuck(Scenario):
    """Its promotion fails."""

    outcomes = ("Failed",)
    deadline = "60s"

    async def act(self, instance: str) -> None:
        await self.stage.image("web:stubborn", instance)


class Together(Scenario):
    outcomes = ("Succeeded",)
    suffixes = ("-a", "-b")

    async def prepare(self, instance: str) -> None:
        await super().prepare(instance)
        members = {"members": [{"name": f"{instance}{suffix}"} for suffix in self.suffixes]}
        metadata = ObjectMeta(name=f"{instance}-group", namespace=self.stage.namespace)
        await self.stage.client.create(ReleaseGroup(metadata=metadata, spec=convert(members, ReleaseGroupSpec)))

    async def act(self, instance: str) -> None:
        for suffix in self.suffixes:
            await self.stage.image("web:2", f"{instance}{suffix}")

    def over(self, instance: str) -> bool:
        group = self.witness.status(f"{instance}-group", "ReleaseGroup")
        outcomes = [run["outcome"] for run in group.get("history") or ()]
        return super().over(instance) and outcomes == ["Succeeded"]


class Deleted(Scenario):
    async def act(self, instance: str) -> None:
        await self.stage.image("web:2", instance)
        await self.until(lambda status: (status.get("run") or {}).get("verifiedWeight") == 10, instance)
        await self.stage.delete(instance)

    def over(self, instance: str) -> bool:
        return not any(name.startswith(instance) for _, name in self.witness.now)


class Play:
    """One scenario, with all its cuts."""

    def __init__(self, stage: Stage, witness: Witness, scenario: Scenario) -> None:
        self.stage, self.witness, self.scenario, self.cuts = stage, witness, scenario, Cuts()
        self.instances: list[str] = []

    async def run(self, *, kills: int | None = None, lost: int | None = None, late: str = "") -> None:
        """`kills` and `lost` are how many cuts of these modes are tried; None is each. `late` is what who takes over
        hears later than all else."""
        async with self.witness.watching(), mortal(self.stage, self.cuts, late):
            await self._played([UNCUT])
            steps = len(self.cuts.steps[UNCUT.name])
            cuts = chosen(steps, kills, lost)
            for begin in range(0, len(cuts), SIDE_BY_SIDE):
                await self._played(cuts[begin : begin + SIDE_BY_SIDE])
            self.ends = {each: await self._end(each) for each in self.instances}

    async def _played(self, cuts: list[Cut]) -> None:
        names, passing = [cut.name for cut in cuts], self.stage.clock.passing
        self.instances += names
        for name in names:
            await self.scenario.prepare(name)
        ready = [f"{name}{suffix}" for name in names for suffix in self.scenario.suffixes]
        await passing(
            self.witness.until(
                lambda: all(self.witness.status(each).get("phase") == "Stable" for each in ready), PATIENCE
            )
        )
        await self.stage.quiet()
        for cut in cuts:
            self.cuts.plan(cut.name, cut)
        acting = asyncio.gather(*(self.scenario.act(name) for name in names))
        try:
            await passing(acting)
            await passing(self.witness.until(lambda: all(map(self.scenario.over, names)), PATIENCE))
        except TimeoutError:
            late = [name for name in names if not self.scenario.over(name)]
            raise AssertionError("\n".join(self.why(name) for name in late[:3]) + f"\nall: {late}") from None
        await self.stage.quiet()

    def judge(self) -> None:
        """The laws hold, and all ends are one."""
        told = self.witness.told()
        broken = []
        for instance in self.instances:
            for suffix in self.scenario.suffixes:
                own = [each for each in told if each.name.startswith(instance)]
                broken += Laws(f"{instance}{suffix}", STEPS, INTERVAL, retry=2.0).judge(own)
        assert not broken, "\n".join(broken[:20])
        for suffix in self.scenario.suffixes if self.scenario.outcomes else ():
            runs = self.ends[UNCUT.name][f"CanaryDeployment it{suffix}"]["history"]
            assert tuple(run[0] for run in runs) == self.scenario.triggers
            assert tuple(run[1] for run in runs) == self.scenario.outcomes
        for instance, end in self.ends.items():
            assert flat(end) == flat(self.ends[UNCUT.name]), self.why(instance)

    def why(self, instance: str) -> str:
        """For a failure: the steps, and how it is."""
        steps = ", ".join(self.cuts.steps[instance][-8:])
        states = {
            name: raw.get("status") for (kind, name), raw in self.witness.now.items() if name.startswith(instance)
        }
        return f"{instance}: {steps}\n{json.dumps(states, indent=1)[:6000]}"

    async def _end(self, instance: str) -> dict[str, Any]:
        """What is there, without what differs from one to the next."""
        found: dict[str, Any] = {}
        revisions: dict[str, str] = {}
        for kind in (ControllerRevision, *MADE, CanaryDeployment):
            for item in (await self.stage.client.list(kind, Query(namespace=self.stage.namespace))).items:
                if not item.name.startswith(instance):
                    continue
                if kind is ControllerRevision:
                    revision = item.raw["data"]["revision"]
                    revisions[short(revision)] = f"R{item.raw['revision']}"
                if kind is CanaryDeployment:
                    found["CanaryDeployment " + item.name] = await self._told(item.raw)
                    continue
                rest = {key: value for key, value in item.raw.items() if key not in ("metadata", "status", "data")}
                rest["spec"] = {**rest.get("spec", {}), "clusterIP": "", "clusterIPs": ()}
                found[f"{kind.__name__} {item.name}"] = rest
        text = json.dumps(found, sort_keys=True).replace(instance, "it")
        for revision, name in revisions.items():
            text = text.replace(f"{revision}", name)
        result: dict[str, Any] = json.loads(text)
        return result

    async def _told(self, raw: Document) -> dict[str, Any]:
        status = raw["status"]
        history = []
        for run in status["history"]:
            if run.get("details"):
                assert await read(self.stage.blobs, Digest(run["details"]), max_bytes=1 << 20)
            history.append([run["trigger"], run["outcome"], run.get("reason"), _masked(run.get("message", ""))])
        conditions = {each["type"]: [each["status"], each["reason"]] for each in status["conditions"]}
        plain = {key: status.get(key) for key in ("phase", "canaryWeight", "run", "drift", "failedToken")}
        revisions = [short(status.get(f"{key}Revision") or "") for key in ("target", "stable", "failed")]
        earlier = [short(each) for each in status.get("earlierRevisions") or ()]
        override = {key: value for key, value in (status.get("override") or {}).items() if key == "reset"}
        said = {"history": history, "conditions": conditions, "revisions": revisions, "earlier": earlier}
        return {**plain, **said, "override": override, "spec": raw["spec"]}


def _masked(message: str) -> str:
    """Without what was counted."""
    return re.sub(r"[0-9.]+ % of [0-9]+", "n % of n", message)


def flat(end: Any, at: str = "") -> set[str]:
    """Each value with its place."""
    if isinstance(end, dict):
        return set().union(*(flat(value, f"{at}.{key}") for key, value in end.items()))
    if isinstance(end, list):
        return set().union(*(flat(value, f"{at}[{place}]") for place, value in enumerate(end)))
    return {f"{at} = {end}"}


def chosen(steps: int, kills: int | None, lost: int | None) -> list[Cut]:
    """A cut at each step, or at some of them: always the same."""
    chance = random.Random(steps)
    picked = []
    for mode, most in (("kill", kills), ("before", lost), ("after", lost)):
        points = list(range(1, steps + 1 + (mode == "kill")))
        if most is not None and not ALL:
            points = sorted(chance.sample(points, min(most, len(points))))
        picked += [Cut(mode, at) for at in points]  # type: ignore[arg-type]
    return picked


@pytest.fixture
async def witness(here: Stage) -> Witness:
    patient(here)
    here.players = Stubborn(here.client, here.namespace)
    return Witness(here.client, here.namespace)


@pytest.fixture
async def hooks(here: Stage) -> AsyncIterator[tuple[str, list[Document]]]:
    """Webhooks that always agree, and what they were asked."""
    asked: list[Document] = []

    async def agree(request: web.Request) -> web.Response:
        asked.append({**await request.json(), "key": request.headers["Idempotency-Key"]})
        return web.Response()

    application = web.Application()
    application.router.add_post("/", agree)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/", asked
    await runner.cleanup()


async def test_a_good_release_is_promoted_whatever_is_cut(
    here: Stage, witness: Witness, hooks: tuple[str, list[Document]]
) -> None:
    url, asked = hooks
    play = Play(here, witness, Good(here, witness, url))
    await play.run(lost=6)
    play.judge()
    assert asked


async def test_a_bad_release_is_rolled_back_whatever_is_cut(here: Stage, witness: Witness) -> None:
    play = Play(here, witness, Bad(here, witness))
    await play.run()
    play.judge()


@pytest.mark.parametrize("scenario", [Skip, Superseded, Stuck, Together, Deleted])
async def test_a_cut_changes_nothing_about_the_end(here: Stage, witness: Witness, scenario: Any) -> None:
    play = Play(here, witness, scenario(here, witness))
    await play.run(kills=6, lost=3)
    play.judge()


@pytest.mark.parametrize("scenario", [Superseded, Stuck])
async def test_who_takes_over_does_nothing_by_a_status_that_is_behind(
    here: Stage, witness: Witness, scenario: Any
) -> None:
    """Each kind is watched by itself: a Deployment may be known as a status made it that is not known yet."""
    play = Play(here, witness, scenario(here, witness))
    await play.run(lost=0, late="canarydeployments")
    play.judge()
