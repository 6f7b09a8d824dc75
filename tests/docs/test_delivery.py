"""The guide to canary delivery is true: its YAML is good, its numbers are the code's, and it has every reason there is."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlencode
from urllib.request import urlopen

import msgspec
import pytest

from tests.needs import needs
from trimtab.lab.prometheus import Prometheus
from trimtab.model.duration import Duration
from trimtab.model.yaml import load_all
from trimtab.systems.delivery import letting_go, measures, releasing
from trimtab.systems.delivery.hooks import messages
from trimtab.systems.delivery.judging import budget, comparing
from trimtab.systems.delivery.kinds import Analysis, CanaryDeployment, CanaryDeploymentSpec, RunStatus, Webhook
from trimtab.systems.delivery.kinds.analysis import Comparison, Gate, Hook, Judge, Metric
from trimtab.systems.delivery.kinds.canary import Phase, Promotion, Verdict
from trimtab.systems.delivery.kinds.group import ReleaseState
from trimtab.systems.delivery.machine import analysing
from trimtab.systems.delivery.measuring.rendering import NAMES, problems
from trimtab.testing.ports import free_ports

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "delivery"
CLUSTER = EXAMPLE / "cluster"
PAGE = (ROOT / "docs" / "delivery.md").read_text()
TEXT = " ".join(PAGE.split())
SYSTEM = ROOT / "src" / "trimtab" / "systems" / "delivery"
PROGRAM = str(Path(sys.executable).with_name("trimtab"))
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def quoted(word: str) -> bool:
    return f"`{word}`" in PAGE


# --- what it shows ---------------------------------------------------------------------------------------------------


def test_its_manifests_and_those_of_the_example_are_good(tmp_path: Path) -> None:
    own = {"CanaryDeployment", "MetricTemplate", "ReleaseGroup"}
    files = [file for file in EXAMPLE.rglob("*.yaml") if own & {each["kind"] for each in load_all(file.read_text())}]
    assert len(files) == 6
    for number, manifest in enumerate(block for block in blocks("yaml") if block.startswith("apiVersion: ")):
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(manifest)
    command = [PROGRAM, "canary", "check", *(word for file in files for word in ("-f", str(file)))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_payload_of_webhooks_is_what_is_sent() -> None:
    (shown,) = (json.loads(block) for block in blocks("json"))
    template = {"metadata": {"labels": {"app": "shop"}}, "spec": {}}
    canary = msgspec.convert(
        {
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"deployment": {"template": template}, "service": {}},
            "status": {"phase": "Progressing"},
        },
        CanaryDeployment,
    )
    hook = Webhook(name="load", type="Rollout", url="http://example.com/", metadata={"team": "checkout"})
    run = RunStatus(
        id=shown["run"], revision=shown["revision"], before="", started="", since="", step=1, weight=shown["weight"]
    )
    assert messages.payload(hook, canary, run) == shown


@pytest.mark.parametrize("name", re.findall(r"\]\((?!http)([^)#]+)", PAGE))
def test_what_it_leads_to_is_there(name: str) -> None:
    assert (ROOT / "docs" / name).exists()


def test_its_links_within_the_page_lead_somewhere() -> None:
    heads = [head.lower() for head in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)]
    anchors = {re.sub(r"[^a-z0-9 -]", "", head).replace(" ", "-") for head in heads}
    assert [link for link in re.findall(r"\]\(#([^)]+)\)", PAGE) if link not in anchors] == []


# --- every word that the code says -----------------------------------------------------------------------------------


def said() -> set[str]:
    """Reasons: of conditions, events and runs. Texts of one CamelCase word where the code says why."""
    found: set[str] = set()
    for file in SYSTEM.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                given = [*node.args, *(word.value for word in node.keywords if word.arg == "reason")]
                if name in (
                    "Trouble",
                    "Said",
                    "left",
                    "say",
                    "condition",
                    "normal",
                    "warning",
                    "_over",
                    "Promotion",
                    "Moved",
                ):
                    found |= words(given)
                elif any(word.arg == "reason" for word in node.keywords):
                    found |= words([word.value for word in node.keywords if word.arg == "reason"])
            elif isinstance(node, ast.Return | ast.Assign | ast.AnnAssign) and file.name in (
                "telling.py",
                "answering.py",
                "budget.py",
                "group_controller.py",
                "release.py",
            ):
                found |= words([node.value] if node.value is not None else [])
    return found


def words(nodes: list[ast.expr]) -> set[str]:
    """The constants in them that are one such word, but not those of calls inside."""
    found = set()
    for node in nodes:
        inner = node.elts if isinstance(node, ast.Tuple) else [node]
        for each in inner:
            if isinstance(each, ast.Tuple):
                found |= words([each])
            if isinstance(each, ast.IfExp):
                found |= words([each.body, each.orelse])
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and WORD.fullmatch(each.value):
                found.add(each.value)
    return found


NOT_REASONS = {"Advance", "Repeat", "Hold", "Rollback", "Freeze"}
"""What follows from a check."""


def test_every_reason_is_in_the_page() -> None:
    found = said()
    assert {"CanaryLost", "ConfigMissing", "SnapshotMissing", "DriftCorrected", "ReleaseBegan", "Withdrawn"} <= found
    assert {"NoTraffic", "StableNotReady", "MembersMissing", "Fought", "SourceFailed", "Superseded"} <= found
    assert [word for word in sorted(found - NOT_REASONS) if not re.search(rf"\b{word}\b", PAGE)] == []


@pytest.mark.parametrize("outcome", ["Succeeded", "Failed", "Cancelled"])
def test_the_events_of_a_group_are_in_the_page(outcome: str) -> None:
    assert quoted(f"Release{outcome}")


@pytest.mark.parametrize(
    "literal", [Phase, Hook, Gate, Judge, ReleaseState], ids=["phases", "hooks", "gates", "judges", "states"]
)
def test_every_word_that_users_give_or_read_is_in_the_page(literal: Any) -> None:
    assert [word for word in get_args(literal) if not quoted(word)] == []
    assert [word for word in get_args(Verdict) if f"| {word} |" not in PAGE] == []


def test_every_way_straight_out_is_in_the_page() -> None:
    (literal,) = (field.type for field in msgspec.structs.fields(Promotion) if field.name == "reason")
    assert [word for word in get_args(get_args(literal)[0]) if not quoted(word)] == []


def names_of(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]


@pytest.mark.parametrize("kind", [CanaryDeploymentSpec, Analysis, Metric, Comparison], ids=lambda kind: kind.__name__)
def test_every_field_is_in_the_page(kind: type[msgspec.Struct]) -> None:
    assert [name for name in names_of(kind) if not re.search(rf"\b{name}\b", PAGE)] == []


def test_every_variable_of_queries_is_in_the_page() -> None:
    assert [name for name in NAMES if f"`{{{{ {name} }}}}`" not in PAGE] == []


def test_every_command_is_in_the_page() -> None:
    import typer

    from trimtab.cli.canary import app

    names = list(typer.main.get_group(app).commands)
    assert "replay" in names
    assert [name for name in names if not re.search(rf"`(trimtab canary )?{name}\b", PAGE)] == []


def test_every_metric_of_the_controllers_is_in_the_page() -> None:
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry()
    measures.Measures(registry)
    names = {family.name for family in registry.collect()}
    assert [name for name in names if name not in PAGE] == []


# --- its numbers -----------------------------------------------------------------------------------------------------


def test_its_numbers_are_those_of_the_code() -> None:
    analysis, metric = Analysis(), Metric(name="request-duration")
    assert f"`threshold` ({analysis.threshold}) failed checks roll back" in TEXT
    assert f"once `passes` ({analysis.passes}) of them came" in TEXT
    assert (analysis.no_data_limit, analysis.error_limit) == (0, 0)
    assert f"a `quantile` ({metric.quantile})" in TEXT
    assert f"`confidence` ({metric.compare.confidence}) sure" in TEXT
    assert f"`margin` ({comparing.MARGIN}: half a percentage point)" in TEXT
    assert f"`margin` ({comparing.TOLERANCE}: a tenth of stable's median)" in TEXT
    assert analysis.settle == Duration("5s")
    assert "`settle` (5 s) after it was written" in TEXT
    assert analysis.scale_down_delay == Duration("30s")
    assert f"ask again after {budget.RETRY:g} s at most" in TEXT
    assert analysing.WINDOWS == 10
    assert "up to ten intervals" in TEXT
    assert f"More than {releasing.FIGHT} corrections within ten minutes are a fight" in TEXT
    assert releasing.PEACE == 600
    assert f"live ({letting_go.PATIENCE:g} seconds at most)" in TEXT
    assert analysing.RECREATIONS == 3
    assert "for the third time" in TEXT
    assert analysing.CHECKS == 10


# --- what a cluster needs --------------------------------------------------------------------------------------------


def test_istios_kinds_are_what_the_command_prints() -> None:
    printed = subprocess.run([PROGRAM, "crds", "--borrowed"], capture_output=True, text=True, timeout=60, check=True)
    assert (CLUSTER / "istio-crds.yaml").read_text() == printed.stdout


def test_prometheus_scrapes_what_is_asked_for() -> None:
    from trimtab.systems.delivery.measuring.names import DURATION_BUCKETS, REQUESTS

    documents = list(load_all((CLUSTER / "prometheus.yaml").read_text()))
    of = {document["kind"]: document for document in documents}
    assert {document["metadata"].get("namespace", "monitoring") for document in documents} == {"monitoring"}
    chosen = of["Prometheus"]["spec"]["podMonitorSelector"]["matchLabels"]
    assert chosen.items() <= of["PodMonitor"]["metadata"]["labels"].items()
    (endpoint,) = of["PodMonitor"]["spec"]["podMetricsEndpoints"]
    (kept,) = endpoint["metricRelabelings"]
    assert kept["regex"].split("|") == [REQUESTS, DURATION_BUCKETS]
    account = of["ServiceAccount"]["metadata"]["name"]
    assert account == of["Prometheus"]["spec"]["serviceAccountName"] == of["ClusterRoleBinding"]["subjects"][0]["name"]
    assert of["ClusterRoleBinding"]["roleRef"]["name"] == of["ClusterRole"]["metadata"]["name"]
    assert of["Service"]["spec"]["selector"] == {"prometheus": of["Prometheus"]["metadata"]["name"]}
    _, shop = load_all((CLUSTER / "shop.yaml").read_text())
    service = of["Service"]["metadata"]
    address = f"http://{service['name']}.{service['namespace']}:{of['Service']['spec']['ports'][0]['port']}"
    assert shop["spec"]["analysis"]["prometheus"]["address"] == address


def queries() -> dict[str, str]:
    """By the first words of what their comments say."""
    found = {}
    for paragraph in (CLUSTER / "queries.promql").read_text().split("\n\n")[1:]:
        comment, _, query = paragraph.strip().partition("\n")
        found[re.split(r"[:,]", comment.removeprefix("# "))[0]] = query
    return found


@pytest.mark.parametrize("name", queries())
def test_the_sample_queries_are_promql(name: str) -> None:
    assert problems(queries()[name]) == []


SAMPLES = """\
# TYPE istio_requests_total counter
{requests}
# TYPE istio_request_duration_milliseconds histogram
{buckets}
# EOF
"""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, float]]:
    """With half an hour of a stable that answers 9 requests a second and a canary that answers one, of which a tenth fails; and
    the moment at which that ends."""
    needs("promtool")
    folder = tmp_path_factory.mktemp("prometheus")
    end = int(time.time()) // 60 * 60 - 7200
    requests, buckets = [], []
    for at in range(0, 1800, 15):
        for workload, rate, failing in (("shop", 9, 0), ("shop-canary", 1, 0.1)):
            of = f'reporter="destination",destination_workload_namespace="shop",destination_workload="{workload}"'
            moment = end - 1800 + at
            for code, share in (("200", 1 - failing), ("500", failing)):
                if share:
                    line = f'istio_requests_total{{{of},response_code="{code}"}} {rate * share * at:g} {moment}'
                    requests.append(line)
            for bound, share in (("10", 0.5), ("100", 0.98), ("500", 1), ("+Inf", 1)):
                name = f'istio_request_duration_milliseconds_bucket{{{of},le="{bound}"}}'
                buckets.append(f"{name} {rate * share * at:g} {moment}")
    file = folder / "samples.om"
    file.write_text(SAMPLES.format(requests="\n".join(sorted(requests)), buckets="\n".join(buckets)))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(file), str(folder / "data")]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stdout + made.stderr
    with Prometheus(folder, free_ports(1)[0]) as server:
        yield server, end - 30


def answer(prometheus: tuple[Prometheus, float], query: str) -> dict[str, float]:
    """By workload, and code where there is one."""
    server, moment = prometheus
    url = f"{server.url}/api/v1/query?{urlencode({'query': query, 'time': moment})}"
    with urlopen(url, timeout=10) as response:
        found = json.load(response)["data"]["result"]
    return {" ".join(each["metric"].values()): float(each["value"][1]) for each in found}


def test_the_sample_queries_say_what_they_promise(prometheus: tuple[Prometheus, float]) -> None:
    asked = {name: answer(prometheus, query) for name, query in queries().items()}
    assert asked["success rate"] == pytest.approx({"shop": 100, "shop-canary": 90})
    assert asked["P99"] == pytest.approx({"shop": 300, "shop-canary": 300})
    assert asked["P50"] == pytest.approx({"shop": 10, "shop-canary": 10})
    assert asked["requests per second"] == pytest.approx({"shop": 9, "shop-canary": 1})
    assert asked["the share of the traffic that the canary really gets"] == pytest.approx({"": 10})
    codes = {"shop 200": 9, "shop-canary 200": 0.9, "shop-canary 500": 0.1}
    assert asked["answers per second by code and workload"] == pytest.approx(codes)


def test_the_templates_give_one_number_each(prometheus: tuple[Prometheus, float]) -> None:
    from trimtab.systems.delivery.measuring.rendering import rendered

    known = {"namespace": "shop", "target": "shop-canary", "interval": "5m", "window": "5m", "variables.code": "5.."}
    found = {}
    for file in (CLUSTER / "templates.yaml", EXAMPLE / "errors.yaml"):
        for template in load_all(file.read_text()):
            query = rendered(template["spec"]["query"], known)
            (found[template["metadata"]["name"]],) = answer(prometheus, query).values()
    assert found == pytest.approx({"slow-requests": 0, "code-share": 0.1, "errors": 0.1})
