"""`trimtab describe`, `tree`, `events` and `wait`: how objects are, and when they are as they should be."""

from __future__ import annotations

import signal

import pytest

from tests.cli.conftest import Program, config_map

POD = """---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {note: hello}}
spec: {containers: [{name: main, image: web:1}]}
"""
EVENT = """---
apiVersion: v1
kind: Event
metadata: {name: NAME, namespace: NAMESPACE}
involvedObject: {kind: Pod, name: web, namespace: NAMESPACE, uid: UID}
type: TYPE
reason: Happened
message: "it\\nhappened"
lastTimestamp: "WHEN"
count: 3
source: {component: tests}
"""


def event(program: Program, name: str, kind: str, when: str, uid: str = '""') -> str:
    text = EVENT.replace("NAMESPACE", program.namespace).replace("NAME", name).replace("TYPE", kind)
    return text.replace("WHEN", when).replace("UID", uid)


def owned(program: Program, name: str, owner: str) -> str:
    uid = program("get", "cm", owner, "-o", "jsonpath={.metadata.uid}").out
    return config_map(name, ownerReferences=f"[{{apiVersion: v1, kind: ConfigMap, name: {owner}, uid: {uid}}}]")


@pytest.fixture
def pod(trimtab: Program) -> Program:
    """A pod that nobody runs."""
    assert trimtab("apply", "-f", "-", stdin=POD).code == 0
    return trimtab


# describe


def test_an_object_is_described_with_fields_health_and_events(pod: Program) -> None:
    uid = pod("get", "pod", "web", "-o", "jsonpath={.metadata.uid}").out
    pod("apply", "-f", "-", stdin=event(pod, "e", "Warning", "2020-01-01T00:00:00Z", uid))
    ran = pod("describe", "pod", "web")
    heading = {line.partition(":")[0]: line.partition(":")[2].strip() for line in ran.lines[:8]}
    assert heading["Name"] == "web"
    assert heading["Kind"] == "Pod (v1)"
    assert (heading["Labels"], heading["Annotations"]) == ("app=web", "note=hello")
    assert heading["Health"].startswith("InProgress: ")
    assert "    - name: main" in ran.lines
    table = ran.lines[ran.lines.index("Events:") + 1 :]
    assert table[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "MESSAGE"]
    assert table[1].split()[1:] == ["(x3)", "Warning", "Happened", "it", "happened"]


def test_conditions_are_a_table(trimtab: Program) -> None:
    manifest = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cogs.show.example.com}
spec:
  group: show.example.com
  scope: Namespaced
  names: {plural: cogs, kind: Cog}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
    assert trimtab("apply", "-f", "-", stdin=manifest).code == 0
    assert trimtab("wait", "crd/cogs.show.example.com", "--for", "condition=Established").code == 0
    ran = trimtab("describe", "crd", "cogs.show.example.com")
    table = ran.lines[ran.lines.index("Conditions:") + 1 :]
    assert table[0].split() == ["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"]
    assert {line.split()[0]: line.split()[1] for line in table[1:3]} == {"NamesAccepted": "True", "Established": "True"}


def test_a_secret_is_described_by_its_sizes(trimtab: Program) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: correct horse}\n"
    trimtab("apply", "-f", "-", stdin=secret)
    ran = trimtab("describe", "secret", "s")
    assert "  password: 13 bytes" in ran.lines
    assert "horse" not in ran.out


def test_control_characters_do_not_reach_the_terminal(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("odd", '{a: "x\\e[31my"}'))
    assert "\033" not in trimtab("describe", "cm", "odd").out


# tree


def test_a_tree_shows_what_an_object_owns(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("root"))
    trimtab("apply", "-f", "-", stdin=owned(trimtab, "a", "root") + owned(trimtab, "b", "root"))
    trimtab("apply", "-f", "-", stdin=owned(trimtab, "leaf", "a"))
    ran = trimtab("tree", "cm", "root")
    assert [line.partition(" Current")[0].partition(" HEALTH")[0].rstrip() for line in ran.lines] == [
        "OBJECT",
        "configmap/root",
        "├─ configmap/a",
        "│  └─ configmap/leaf",
        "└─ configmap/b",
    ]
    assert all("Current" in line for line in ran.lines[1:])


def test_a_tree_has_one_root(trimtab: Program) -> None:
    assert trimtab("tree", "cm").code == 2
    assert trimtab("tree", "cm", "none").code == 3


# events


def test_events_are_shown_the_latest_last(trimtab: Program) -> None:
    assert trimtab("events").out == "no events\n"
    late = event(trimtab, "late", "Warning", "2021-01-01T00:00:00Z")
    trimtab("apply", "-f", "-", stdin=late + event(trimtab, "early", "Normal", "2020-01-01T00:00:00Z"))
    ran = trimtab("events", "--for", "pod/web")
    assert ran.lines[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert [row[2] for row in ran.rows] == ["Normal", "Warning"]
    assert ran.rows[0][3:] == ["Happened", "pod/web", "it", "happened"]
    assert [row[2] for row in trimtab("events", "--types", "warning").rows] == ["Warning"]
    assert trimtab("events", "--for", "pod/other").out == "no events\n"


def test_events_are_told_as_they_happen(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=event(trimtab, "first", "Normal", "2020-01-01T00:00:00Z"))
    with trimtab.installed("events", "-w") as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().startswith("LAST SEEN")
        assert "Normal" in watch.stdout.readline()
        trimtab("apply", "-f", "-", stdin=event(trimtab, "second", "Warning", "2020-01-01T00:00:00Z"))
        assert "Warning" in watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        assert watch.wait(10) == 130


# wait


@pytest.mark.parametrize(
    "asked", ["ready", "create", "jsonpath={.data.a}=1", "jsonpath={.data.a}", "jsonpath=.data.a=1"]
)
def test_what_already_is_so_is_not_waited_for(trimtab: Program, asked: str) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("one", "{a: '1'}"))
    ran = trimtab("wait", "cm/one", "--for", asked)
    assert (ran.code, ran.out) == (0, "configmap/one condition met\n")


@pytest.mark.parametrize(
    ("asked", "lacking"),
    [
        ("delete", "it is still there"),
        ("jsonpath={.data.a}=2", "{.data.a} is 1, not 2"),
        ("condition=Ready", "it has no condition Ready"),
    ],
)
def test_when_the_time_is_over_it_says_what_lacks(trimtab: Program, asked: str, lacking: str) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("one", "{a: '1'}"))
    ran = trimtab("wait", "cm", "one", "--for", asked, "--timeout", "100ms")
    assert (ran.code, ran.err) == (124, f"error: configmap/one: timed out after 0.1 s: {lacking}\n")


def test_a_pod_that_does_not_run_is_not_ready(pod: Program) -> None:
    ran = pod("wait", "pod", "web", "--timeout", "100ms")
    assert ran.code == 124
    assert "InProgress" in ran.err


@pytest.mark.parametrize(("asked", "change"), [("delete", "delete"), ("jsonpath={.data.a}=2", "apply")])
def test_it_returns_as_soon_as_it_is_so(trimtab: Program, asked: str, change: str) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("one", "{a: '1'}"))
    with trimtab.installed("wait", "cm/one", "--for", asked, "--timeout", "20s") as waiting:
        if change == "delete":
            trimtab("delete", "cm", "one")
        else:
            trimtab("apply", "-f", "-", stdin=config_map("one", "{a: '2'}"))
        assert waiting.wait(20) == 0


def test_what_is_not_there_is_not_waited_for_unless_it_is_to_come_or_go(trimtab: Program) -> None:
    assert trimtab("wait", "cm/none").code == 3
    assert trimtab("wait", "cm/none", "--for", "delete").code == 0
    assert trimtab("wait", "cm/none", "--for", "create", "--timeout", "100ms").code == 124
    assert trimtab("wait", "secrets", "--all").code == 3


def test_all_of_a_kind_can_be_waited_for(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("one", labels="{a: b}") + config_map("two", labels="{a: b}"))
    assert len(trimtab("wait", "cm", "-l", "a=b").lines) == 2


@pytest.mark.parametrize("asked", ["", "condition", "ready=1", "jsonpath={", "jsonpath="])
def test_what_cannot_be_waited_for_is_told(bare: Program, asked: str) -> None:
    assert bare("wait", "cm/one", "--for", asked).code == 2
