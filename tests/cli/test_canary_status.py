"""`trimtab canary status`: how a release goes, for people, once and live."""

from __future__ import annotations

import os
import pty
from datetime import timedelta

import pytest

from tests.cli.canary_kit import NOON, RUN, Stage, check, condition, failed, going, manifest, progressing, stable
from tests.cli.conftest import Program
from tests.cli.test_canary import client, stage, trimtab  # noqa: F401 - fixtures
from trimtab.cli.canary_show import CHECKS, bar, lines, summary
from trimtab.client.protocol import Ref
from trimtab.model.clock import format_micro_time
from trimtab.model.conditions import Condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus, Counters
from trimtab.systems.delivery.kinds.fields import PAUSE

LATER = NOON + timedelta(minutes=3)


def told(status: CanaryDeploymentStatus | None, annotations: dict[str, str] | None = None, **spec: object) -> list[str]:
    made: CanaryDeployment = manifest(**spec).replace(status=status) if status else manifest(**spec)
    return lines(made.replace(metadata=ObjectMeta(name="web", annotations=annotations or {})), LATER)


def test_one_that_nobody_has_looked_at_says_so() -> None:
    assert told(None) == ["canarydeployment/web   nobody has looked at it yet", "stable     none"]


def test_a_run_shows_weight_step_counters_and_the_next_check() -> None:
    due = format_micro_time(LATER + timedelta(seconds=12))
    assert told(progressing(going(next_check_time=due))) == [
        "canarydeployment/web   Progressing",
        "stable     0a0a0a0a0a0a",
        "canary     1b1b1b1b1b1b",
        f"weight     {'█' * 10}{'░' * 30} 25 %",
        f"run        {RUN} is Progressing, step 2 of 3, began 3m ago",
        "checks     1 of 2 passed at this step, 2 of 3 failed, the next in 12 s",
    ]


def test_a_weight_that_is_not_live_yet_is_told_apart() -> None:
    assert "the data plane was last seen at 10 %" in "\n".join(told(progressing(going(verified_weight=10))))


def test_checks_are_a_table_with_a_row_for_each_metric() -> None:
    one = check("Fail", 97.123456, message="1 of 3")
    two = check("Inconclusive", metrics=(), message="no traffic")
    text = told(progressing(going(checks=(one, two))))
    at = next(number for number, line in enumerate(text) if line.startswith("CHECKED"))
    assert text[at].split() == [name.upper() for name in CHECKS]
    row = "12:00:42 2 25 % Fail request-success-rate 97.12 99.9 1200 1 of 3"
    assert text[at + 1].split() == row.split()
    assert text[at + 2].split() == ["12:00:42", "2", "25", "%", "Inconclusive", "no", "traffic"]
    assert text[at].index("VERDICT") == text[at + 1].index("Fail") == text[at + 2].index("Inconclusive")


def test_columns_in_which_nothing_is_said_are_left_out() -> None:
    text = told(progressing(going(checks=(check("Pass", metrics=()),))))
    assert [line.split() for line in text[-2:]] == [
        ["CHECKED", "STEP", "WEIGHT", "VERDICT"],
        ["12:00:42", "2", "25", "%", "Pass"],
    ]


def test_more_passes_than_needed_are_not_counted_against_the_need() -> None:
    assert "checks     3 passed at this step, 0 of 3 failed" in told(progressing(going(counters=Counters(passes=3))))


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("promotion", "for you: `trimtab canary promote web` lets it become stable"),
        ("frozen", "`trimtab canary abort web` rolls it back"),
        ("promotion-webhook", "for a webhook to agree"),
        ("promotion-group", "for the other members of its ReleaseGroup"),
    ],
)
def test_what_it_waits_for_says_what_to_do(gate: str, said: str) -> None:
    (line,) = [line for line in told(progressing(going(waiting_for=f"{RUN}/{gate}"))) if line.startswith("waits")]
    assert said in line


def test_a_gate_that_waits_for_a_check_is_not_yours() -> None:
    assert "waits      for a check that passes" in told(progressing(going(waiting_for=f"{RUN}/promotion-check")))


FIGHT = condition(
    "DriftConflict", "True", "Fought", "Service web: spec.type; tried again at 12:10: stop what changes it"
)


@pytest.mark.parametrize(
    ("found", "label"),
    [(FIGHT, "fought"), (condition("Ready", "False", "InvalidSpec", "spec.service: no port"), "stopped")],
    ids=["fought", "invalid"],
)
def test_a_gate_does_not_wait_for_you_while_nothing_can_move(found: Condition, label: str) -> None:
    status = progressing(going(waiting_for=f"{RUN}/promotion"), conditions=(found,))
    text = told(status)
    assert text[1].startswith(label)
    assert found.message in text[1]
    assert "waits      at the gate promotion, for what is said above" in text
    assert found.message in summary(manifest().replace(status=status))


def test_ab_gets_all_that_match_and_no_share_of_all() -> None:
    analysis = {"interval": "5s", "iterations": 3, "match": [{"headers": {"x": {"exact": "y"}}}]}
    run = going(analysis=analysis, weight=100, verified_weight=100, step=0, steps=1, checks=(check("Pass"),))
    text = told(progressing(run))
    assert "weight     all requests that match" in text
    assert not any("100 %" in line or "25 %" in line for line in text)
    assert "all that match" in summary(manifest().replace(status=progressing(run)))
    before = told(progressing(run.replace(verified_weight=0)))
    assert "weight     all requests that match   the data plane has not taken that yet" in before


@pytest.mark.parametrize("phase", ["Starting", "Promoting"])
def test_pods_that_are_not_ready_say_why_above_the_tables(phase: str) -> None:
    ready = condition("Ready", "False", phase, "revision 1b1b; 0 of 2 pods are ready: web: CrashLoopBackOff")
    text = told(progressing(going(), phase=phase, conditions=(ready,)))
    assert f"not ready  {ready.message}" in text[:6]
    first = condition("Ready", "False", "Initializing", "0 of 2 pods are ready")
    assert told(stable(phase="Initializing", conditions=(first,)))[2] == "not ready  0 of 2 pods are ready"


def test_checks_without_data_are_told_above_the_tables() -> None:
    found = condition("MetricsAvailable", "Unknown", "NoData", "no requests for 7 checks in a row")
    assert "metrics    no requests for 7 checks in a row" in told(progressing(conditions=(found,)))[:7]


@pytest.mark.parametrize("width", [0, 30, 80, 120])
def test_long_messages_go_on_below_themselves(width: int) -> None:
    long = " ".join(f"word{number}" for number in range(60))
    ready = condition("Ready", "False", "Starting", long)
    status = progressing(going(checks=(check("Fail", message=long),)), phase="Starting", conditions=(ready,))
    made = manifest().replace(status=status)
    text = lines(made, LATER, width=width)
    words = " ".join(" ".join(text).split())
    assert words.count("word59") == 3
    if width >= 80:
        assert max(len(line) for line in text if "word" in line) <= width
        at = next(number for number, line in enumerate(text) if line.startswith("not ready"))
        assert text[at + 1].startswith(" " * 11 + "word")


def test_what_ready_says_is_said_once() -> None:
    both = tuple(condition(kind, "False", "Starting", "0 of 2 pods") for kind in ("Ready", "Progressing"))
    assert told(stable(conditions=both))[-1].split()[-2:] == ["as", "Ready"]


def test_whatever_holds_it_is_at_the_top() -> None:
    text = told(stable(), {PAUSE: "busy"}, suspend=True, abort=True, skip_analysis=True)
    assert [line.split()[0] for line in text[1:5]] == ["paused", "suspended", "aborted", "override"]


def test_a_failure_is_shown_with_its_run_and_how_to_run_it_again() -> None:
    text = told(failed(conditions=(condition("Ready", "True", "Stable", "it serves"),)))
    assert "failed     1b1b1b1b1b1b   `trimtab canary retry web` runs it again" in text
    assert text[-1].split() == [RUN, "Failed", "ChecksFailed", "0s", "ago", "3", "checks", "failed"]
    assert "Ready       True     Stable   it serves" in text


def test_control_characters_of_a_message_never_reach_a_terminal() -> None:
    text = told(progressing(going(message="\033[2Jgone", reason="Odd")), {PAUSE: "a\nb"})
    assert all(char.isprintable() for line in text for char in line)


def test_a_little_weight_is_seen() -> None:
    assert [bar(weight).count("█") for weight in (0, 1, 50, 100)] == [0, 1, 20, 40]


def test_a_summary_is_one_line_that_changes_with_what_happens() -> None:
    one = manifest().replace(status=progressing())
    two = manifest().replace(status=progressing(going(checks=(check("Pass"),))))
    assert summary(one) == f"canarydeployment/web  Progressing  step 2/3  weight 25  verified 25  run {RUN}"
    assert summary(two).endswith("last check 2026-01-01T12:00:42.000000Z Pass")
    assert summary(manifest().replace(status=failed())).endswith(f"last run {RUN} Failed ChecksFailed")


async def test_status_prints_what_the_server_has(trimtab: Program, stage: Stage) -> None:  # noqa: F811
    await stage.put(progressing(going(checks=(check("Pass"),))))
    ran = trimtab("canary", "status", "web")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[0] == "canarydeployment/web   Progressing"
    assert "\033" not in ran.out


async def test_a_pipe_gets_a_line_for_each_change(trimtab: Program, stage: Stage) -> None:  # noqa: F811
    made = await stage.put(progressing())
    with trimtab.installed("canary", "status", "web", "--watch") as watch:
        assert watch.stdout is not None
        assert "weight 25" in watch.stdout.readline()
        made = await stage.write(made, progressing(going(weight=50, step=2)))
        assert "weight 50" in watch.stdout.readline()
        await stage.write(made, stable())
        assert "Stable" in watch.stdout.readline()
        watch.terminate()


async def test_a_terminal_gets_it_in_place_and_the_end_when_it_is_deleted(
    trimtab: Program,  # noqa: F811
    stage: Stage,  # noqa: F811
) -> None:
    made = await stage.put(progressing())
    terminal, other = pty.openpty()
    env = {**trimtab.env, "TERM": "xterm", "COLUMNS": "200"}
    with trimtab.installed("canary", "status", "web", "-w", stdout=other, stderr=other, stdin=other, env=env) as watch:
        os.close(other)
        _until(terminal, "25 %")
        made = await stage.write(made, progressing(going(weight=50, verified_weight=50, step=2)))
        _until(terminal, "50 %")
        await stage.client.delete(Ref(CanaryDeployment, made.name, made.namespace))
        _until(terminal, "was deleted meanwhile")
        assert watch.wait(timeout=20) == 1
    os.close(terminal)


def _until(terminal: int, word: str) -> None:
    seen = ""
    while word not in seen:
        seen += os.read(terminal, 4096).decode(errors="replace")
