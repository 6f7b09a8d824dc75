"""`trimtab get`: tables, documents, names, selectors and live changes."""

from __future__ import annotations

import json
import signal

import pytest

from tests.cli.conftest import Program, config_map
from trimtab.model.yaml import load

DEPLOYMENT = """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: web:1}]}}
"""


@pytest.fixture
def filled(trimtab: Program) -> Program:
    documents = DEPLOYMENT + config_map("one", "{a: '1'}", labels="{tier: front}") + config_map("two")
    assert trimtab("apply", "-f", "-", stdin=documents).code == 0
    return trimtab


def test_a_table_has_the_servers_columns_aligned(filled: Program) -> None:
    ran = filled("get", "configmaps")
    assert ran.lines[0].split() == ["NAME", "DATA", "AGE"]
    assert [row[:2] for row in ran.rows] == [["kube-root-ca.crt", "1"], ["one", "1"], ["two", "0"]]
    column = ran.lines[0].index("DATA")
    assert all(line[column - 1] == " " and line[column].isdigit() for line in ran.lines[1:])
    assert "\033" not in ran.out, "no colours in a pipe"


@pytest.mark.parametrize("kind", ["deployments", "Deployment", "deploy", "deployments.apps", "deployment.v1.apps"])
def test_a_kind_goes_by_all_its_names(filled: Program, kind: str) -> None:
    assert filled("get", kind, "-o", "name").out == "deployment.apps/web\n"


def test_several_kinds_and_categories_are_shown_each_with_its_kind(filled: Program) -> None:
    ran = filled("get", "cm,deploy", "--no-headers")
    assert [line.split()[0] for line in ran.lines if line] == [
        "configmap/kube-root-ca.crt",
        "configmap/one",
        "configmap/two",
        "deployment.apps/web",
    ]
    assert filled("get", "all", "-o", "name").lines == ["deployment.apps/web"]


def test_objects_are_named_alone_or_with_their_kind(filled: Program) -> None:
    assert filled("get", "cm", "two", "one", "-o", "name").lines == ["configmap/two", "configmap/one"]
    assert filled("get", "cm/one", "deploy/web", "-o", "name").lines == ["configmap/one", "deployment.apps/web"]


def test_selectors_choose(filled: Program) -> None:
    assert filled("get", "cm", "-l", "tier=front", "-o", "name").lines == ["configmap/one"]
    assert filled("get", "cm", "--field-selector", "metadata.name=two", "-o", "name").lines == ["configmap/two"]


def test_all_namespaces_have_a_column(filled: Program) -> None:
    ran = filled("get", "cm", "-A", "-l", "tier=front")
    assert ran.lines[0].split()[:2] == ["NAMESPACE", "NAME"]
    assert [filled.namespace, "one"] in [row[:2] for row in ran.rows]


def test_wide_shows_more(filled: Program) -> None:
    assert "IMAGES" not in filled("get", "deploy").lines[0]
    ran = filled("get", "deploy", "-o", "wide")
    assert "IMAGES" in ran.lines[0]
    assert "web:1" in ran.out


def test_one_object_is_a_document_and_several_are_a_list(filled: Program) -> None:
    one = load(filled("get", "cm", "one", "-o", "yaml").out)
    assert (one["kind"], one["data"]) == ("ConfigMap", {"a": "1"})
    assert "managedFields" not in one["metadata"]
    several = json.loads(filled("get", "cm", "-o", "json").out)
    assert several["kind"] == "List"
    assert [item["kind"] for item in several["items"]] == ["ConfigMap"] * 3
    whole = json.loads(filled("get", "cm/one", "-o", "json", "--show-managed-fields").out)
    assert whole["metadata"]["managedFields"]


def test_jsonpath_prints_what_it_asks_for(filled: Program) -> None:
    assert filled("get", "cm", "one", "-o", "jsonpath={.data.a}").out == "1"
    template = "jsonpath={range .items[*]}{.metadata.name};{end}"
    assert filled("get", "cm", "-o", template).out == "kube-root-ca.crt;one;two;"


def test_what_is_not_there_is_told_and_has_its_exit_code(filled: Program) -> None:
    ran = filled("get", "cm", "none")
    assert (ran.code, ran.out, ran.err) == (3, "", 'error: configmaps "none" not found\n')
    assert filled("get", "cm", "none", "--ignore-not-found").code == 0
    both = filled("get", "cm", "one", "none", "-o", "name")
    assert (both.code, both.out) == (3, "configmap/one\n")


def test_nothing_found_is_no_failure(filled: Program) -> None:
    ran = filled("get", "secrets")
    assert (ran.code, ran.out, ran.err) == (0, "", f"no secrets found in namespace {filled.namespace}\n")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("gadgets",), 1, 'the server has no kind "gadgets"'),
        (("cm", "-o", "xml"), 2, '-o "xml" is not one of'),
        (("cm", "-o", "jsonpath={.a"), 2, "-o jsonpath: "),
        (("cm", "one", "-l", "a=b"), 2, "a name goes with no selector"),
        (("cm/one", "two"), 2, '"two" is not of the form kind/name'),
        (("cm", "-l", "a in ("), 1, "unable to parse requirement"),
        (("cm", "-w", "-o", "json"), 2, "-w watches one kind"),
    ],
)
def test_mistakes_are_one_line(trimtab: Program, words: tuple[str, ...], code: int, told: str) -> None:
    ran = trimtab("get", *words)
    assert ran.code == code
    assert ran.err.startswith("error: ")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_a_watch_prints_a_line_for_each_change(filled: Program) -> None:
    with filled.installed("get", "cm", "-l", "tier=front", "-w") as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().split() == ["NAME", "DATA", "AGE"]
        assert watch.stdout.readline().split()[:2] == ["one", "1"]
        filled("apply", "-f", "-", stdin=config_map("one", "{a: '1', b: '2'}", labels="{tier: front}"))
        assert watch.stdout.readline().split()[:2] == ["one", "2"]
        watch.send_signal(signal.SIGINT)
        assert watch.wait(10) == 130
