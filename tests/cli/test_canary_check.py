"""`trimtab canary check`: manifests are judged where they are written, without a server."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.cli.canary_kit import ANALYSIS, DEPLOYMENT, SERVICE
from tests.cli.conftest import Program

API = "delivery.trimtab.dev/v1alpha1"


def canary(name: str = "web", **spec: Any) -> dict[str, Any]:
    given = {"deployment": DEPLOYMENT, "service": SERVICE, "analysis": ANALYSIS, **spec}
    return {"apiVersion": API, "kind": "CanaryDeployment", "metadata": {"name": name}, "spec": copy.deepcopy(given)}


def written(*documents: dict[str, Any]) -> str:
    return "\n---\n".join(json.dumps(document) for document in documents)


def checked(bare: Program, *documents: dict[str, Any]) -> tuple[int, str]:
    bare.write("web.yaml", written(*documents))
    ran = bare("canary", "check", "-f", "web.yaml")
    assert ran.err == ""
    return ran.code, ran.out


def test_a_good_one_is_good(bare: Program) -> None:
    assert checked(bare, canary()) == (0, "web.yaml:1 canarydeployment/web: good\n")


def test_a_warning_is_no_failure(bare: Program) -> None:
    few = [{**ANALYSIS["metrics"][0], "minSamples": 1}]
    code, out = checked(bare, canary(analysis={**ANALYSIS, "metrics": few}))
    assert code == 0
    assert out.startswith("web.yaml:1 canarydeployment/web: warning: spec.analysis.metrics[0].minSamples")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"analysis": {**ANALYSIS, "stepWeights": [50, 10]}}, "spec.analysis.stepWeights"),
        ({"analysis": {**ANALYSIS, "stepWeights": [0]}}, "spec.analysis.stepWeights[0]"),
        ({"analysis": {**ANALYSIS, "treshold": 3}}, 'unknown field "spec.analysis.treshold"'),
        ({"service": {"selector": {"app": "web"}, "ports": []}}, "spec.service.ports"),
    ],
    ids=["order", "schema", "misspelt", "no-port"],
)
def test_what_is_wrong_is_said_with_its_place(bare: Program, spec: dict[str, Any], said: str) -> None:
    code, out = checked(bare, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, canary(**spec))
    assert code == 1
    assert out.startswith("web.yaml:3 canarydeployment/web: error: ")
    assert said in out


def test_all_that_is_wrong_is_said_at_once(bare: Program) -> None:
    nameless = {**SERVICE, "ports": [{"port": 0, "targetPort": 8080}]}
    _, alone = checked(bare, canary(service=nameless))
    for analysis, said in (
        ({**ANALYSIS, "treshold": 3}, 'unknown field "spec.analysis.treshold"'),
        ({**ANALYSIS, "stepWeights": [0]}, "spec.analysis.stepWeights[0]"),
        ({**ANALYSIS, "interval": 5}, "spec.analysis.interval"),
    ):
        code, out = checked(bare, canary(service=nameless, analysis=analysis))
        assert code == 1
        assert said in out
        assert {line for line in alone.splitlines() if ": error: " in line} < set(out.splitlines())


def test_nothing_is_said_that_only_a_field_of_a_wrong_shape_is_to_blame_for(bare: Program) -> None:
    _, out = checked(bare, canary(analysis={**ANALYSIS, "stepWeights": "many"}))
    assert [line for line in out.splitlines() if "spec.analysis.stepWeights" not in line] == []
    assert "error" in out
    _, out = checked(bare, {**canary(), "spec": 3})
    assert len(out.splitlines()) == 1


def test_objects_of_one_file_are_judged_beside_each_other(bare: Program) -> None:
    code, out = checked(bare, canary(), canary("web-canary"))
    assert code == 1
    assert "web-canary" in out


def test_a_variable_that_a_template_wants_and_nobody_gives_is_found(bare: Program) -> None:
    template = {
        "apiVersion": API,
        "kind": "MetricTemplate",
        "metadata": {"name": "errors"},
        "spec": {"query": 'sum(errors{shop="{{ variables.shop }}"})'},
    }
    metric = {"name": "errors", "templateRef": "errors", "thresholdRange": {"max": 1}}
    code, out = checked(bare, template, canary(analysis={**ANALYSIS, "metrics": [metric]}))
    assert code == 1
    assert "variables" in out
    metric["variables"] = {"shop": "north"}
    assert checked(bare, template, canary(analysis={**ANALYSIS, "metrics": [metric]}))[0] == 0


def test_files_without_any_are_not_taken_for_good_ones(bare: Program) -> None:
    bare.write("other.yaml", written({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}))
    assert bare("canary", "check", "-f", "other.yaml").code == 3
    assert bare("canary", "check").code == 2


def test_a_file_that_is_no_yaml_is_an_error(bare: Program) -> None:
    bare.write("bad.yaml", "kind: [")
    ran = bare("canary", "check", "-f", "bad.yaml")
    assert ran.code == 1
    assert "is no YAML" in ran.out
