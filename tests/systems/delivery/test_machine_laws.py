"""Laws of the machine, whatever the world does: a canary gets weight only while it is ready, a weight never jumps, phases
follow the picture, pods go only when traffic has left them, and when the world is good every run ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.systems.delivery.stage import spec
from trimtab.model.document import convert
from trimtab.systems.delivery.kinds import CanaryDeploymentSpec, CanaryDeploymentStatus, Check, Counters
from trimtab.systems.delivery.machine.advance import advance, needed
from trimtab.systems.delivery.machine.facts import Facts, Need, Order, Outcome, Pods
from trimtab.systems.delivery.machine.runs import stamp, steps_of

PICTURE = {
    "Initializing": {"Stable"},
    "Stable": {"WaitingRollout", "Starting", "Promoting"},
    "WaitingRollout": {"Starting", "Promoting", "RollingBack"},
    "Starting": {"Progressing", "Promoting", "RollingBack"},
    "Progressing": {"Starting", "WaitingPromotion", "Promoting", "RollingBack"},
    "WaitingPromotion": {"Starting", "Promoting", "RollingBack"},
    "Promoting": {"Returning", "RollingBack"},
    "Returning": {"Finalising"},
    "RollingBack": {"Finalising"},
    "Finalising": {"Stable"},
}
ANALYSES: list[dict[str, Any] | None] = [
    {},
    {"stepWeight": 30, "maxWeight": 80, "passes": 2},
    {"iterations": 2},
    {"iterations": 2, "match": [{"headers": {"x": {"exact": "y"}}}]},
    {"mirror": True, "stepWeightPromotion": 20},
    {"manual": ["Rollout", "Step", "Promotion"]},
    {"onFail": "Freeze"},
    None,
]
ACTIONS = st.sampled_from(["Advance", "Advance", "Stay", "Rollback", "Freeze"])


class Life(RuleBasedStateMachine):
    """One canary in a world of whims."""

    @initialize(analysis=st.sampled_from(ANALYSES))
    def born(self, analysis: dict[str, Any] | None) -> None:
        self.spec = convert(spec(analysis=analysis, progressDeadline="120s"), CanaryDeploymentSpec)
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.target = "v1:" + "1" * 64
        self.status = CanaryDeploymentStatus(phase="Initializing", stable_revision=self.target)
        self.annotations: dict[str, str] = {}
        self.stable, self.canary, self.live = 2, 0, True
        self.exists = self.given_up = self.drifted = False
        self.generation, self.order = 1, Order.FREE
        self.trafficked = 0
        """What the data plane gives the canary: the last weight that was live."""

    def facts(self) -> Facts:
        message = "" if self.canary else "no pods"
        return Facts(
            now=self.now,
            generation=self.generation,
            spec=self.spec,
            annotations=self.annotations,
            target=self.target,
            stable=Pods(exists=True, ok=self.stable == 2, ready=self.stable, wanted=2),
            canary=Pods(
                exists=self.exists,
                ok=self.canary == 2,
                ready=self.canary,
                wanted=2,
                failed=self.given_up,
                message=message,
            ),
            live=self.live,
            wait=1.0,
            drifted=self.drifted,
            order=self.order,
            order_revision=self.status.run.before if self.order is Order.ROLL_BACK and self.status.run else "",
            earlier=self.status.earlier_revisions,
        )

    def move(self, action: str = "Advance", allowed: bool = True) -> None:
        """One turn, as a reconcile makes it."""
        before, facts = self.status, self.facts()
        need = needed(before, facts)
        outcome = None
        if need is Need.CHECK:
            verdict = {"Advance": "Pass", "Stay": "Inconclusive"}.get(action, "Fail")
            check = Check(time=stamp(self.now), step=before.run.step, weight=before.run.weight, verdict=verdict)
            outcome = Outcome(check=check, settled=action, allowed=allowed, counters=Counters(passes=9))  # type: ignore[arg-type]
        elif need is not Need.NOTHING:
            outcome = Outcome(allowed=allowed)
        moved = advance(before, facts, outcome)
        self.check(before, moved.status, facts)
        if moved.remove:
            assert self.trafficked == 0, "pods go only when traffic has left them"
            self.exists, self.canary = False, 0
        self.status = moved.status
        run = self.status.run
        if run and self.status.phase in ("Starting", "Progressing", "WaitingPromotion") and not self.exists:
            self.exists = True
        if run and self.live:
            self.trafficked = run.weight
        elif not run and self.live:
            self.trafficked = 0
        self.drifted = False

    def check(self, before: CanaryDeploymentStatus, after: CanaryDeploymentStatus, facts: Facts) -> None:
        if before.phase != after.phase:
            assert after.phase in PICTURE[str(before.phase)], (before.phase, after.phase)
        was, now = (each.run.weight if each.run else 0 for each in (before, after))
        if now > was:
            assert facts.canary.ok, "weight only to pods that are ready"
            planned = [0, *(step.weight for step in steps_of(after.run))]
            assert now == planned[after.run.step + 1], "the weight of its step"
            last = before.run.step if before.run else 0
            assert after.run.step <= last + 1, "no step is left out"
            assert was in (0, planned[after.run.step]), "from the step before, or from nothing"
        if after.run and before.run and after.run.id == before.run.id:
            assert after.run.analysis == before.run.analysis
            assert after.run.revision == before.run.revision
        if after.stable_revision != before.stable_revision and before.phase != "Initializing":
            assert before.phase == "Promoting"
            assert facts.stable.ok
            assert after.stable_revision == before.run.revision
        assert after.canary_weight == now

    @rule(
        action=ACTIONS,
        allowed=st.sampled_from([True, True, True, False]),
        canary=st.sampled_from([2, 2, 2, 2, 1, 0]),
        stable=st.sampled_from([2, 2, 2, 1, 0]),
        live=st.sampled_from([True, True, True, False]),
        seconds=st.sampled_from([0, 1, 11, 11, 11, 40, 130]),
    )
    def turn(self, action: str, allowed: bool, canary: int, stable: int, live: bool, seconds: int) -> None:
        """The world does as it likes; mostly it means well, or nothing would come far."""
        self.busy()
        self.canary, self.stable, self.live = canary if self.exists else 0, stable, live
        self.move(action, allowed)
        self.now += timedelta(seconds=seconds)

    @rule(turns=st.integers(1, 12))
    def all_goes_well(self, turns: int) -> None:
        self.busy()
        for _ in range(turns):
            self.good()

    @rule(turns=st.integers(1, 5), action=ACTIONS)
    def the_data_plane_sleeps(self, turns: int, action: str) -> None:
        self.live = False
        for _ in range(turns):
            self.move(action)
            self.now += timedelta(seconds=11)

    def busy(self) -> None:
        """Where nothing is to be done, something is."""
        if self.status.phase == "Stable" and self.target in (self.status.stable_revision, self.status.failed_revision):
            self.new_template()

    def good(self) -> None:
        self.stable, self.canary, self.live = 2, 2 if self.exists else 0, True
        run = self.status.run
        if run and run.waiting_for:
            self.annotations = {"delivery.trimtab.dev/approve": str(run.waiting_for)}
        self.move()
        self.now += timedelta(seconds=11)

    @rule()
    def another_template(self) -> None:
        self.new_template()

    def new_template(self) -> None:
        self.generation += 1
        self.target = f"v1:{self.generation:064x}"

    @rule()
    def old_template(self) -> None:
        self.generation += 1
        self.target = str(self.status.stable_revision)

    @rule()
    def someone_edits_routes(self) -> None:
        self.drifted, self.live = True, False
        self.move()

    @rule()
    def the_deployment_gives_up(self) -> None:
        self.given_up, self.canary = self.exists, 0
        self.move()
        self.given_up = False

    @rule()
    def the_canary_is_deleted(self) -> None:
        self.exists, self.canary = False, 0
        self.move()

    @rule(field=st.sampled_from(["suspend", "abort", "skip_analysis"]))
    def switch(self, field: str) -> None:
        """For two turns."""
        self.generation += 1
        self.spec = self.spec.replace(**{field: True})
        self.move()
        self.now += timedelta(seconds=200)
        self.move()
        self.spec = self.spec.replace(**{field: False})

    @rule(order=st.sampled_from(list(Order)))
    def group_says(self, order: Order) -> None:
        self.order = order
        self.move()
        self.order = Order.FREE

    @rule(what=st.sampled_from(["abort", "pause", "promote-now"]))
    def someone_annotates(self, what: str) -> None:
        run = self.status.run
        said = {"abort": run.id if run else "", "pause": "lunch", "promote-now": self.target}
        self.annotations = {f"delivery.trimtab.dev/{what}": said[what]}
        self.move()
        self.annotations = {}

    @invariant()
    def a_run_has_a_phase_of_runs(self) -> None:
        if hasattr(self, "status"):
            assert bool(self.status.run) == (self.status.phase not in ("Initializing", "Stable"))

    def teardown(self) -> None:
        """When the world is good, every run ends."""
        if not hasattr(self, "status"):
            return
        self.annotations, self.order, self.given_up, self.drifted, self.live = {}, Order.FREE, False, False, True
        self.spec = self.spec.replace(suspend=False, abort=False, skip_analysis=False)
        for _ in range(200):
            self.good()
            settled = self.target in (self.status.stable_revision, self.status.failed_revision)
            if self.status.phase == "Stable" and settled and not self.status.run:
                return
        raise AssertionError(f"it never ends: {self.status.phase} {self.status.run}")


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
