"""The guide to REST APIs is true: its YAML is the examples', the server takes it, and what it names is what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from trimtab.model.yaml import load_all
from trimtab.systems.rest import hooks
from trimtab.systems.rest.calling import errors, operations, pages, service
from trimtab.systems.rest.calling.throttling import Throttle
from trimtab.systems.rest.kinds import RestServiceSpec
from trimtab.systems.rest.kinds.definition import FieldOverlay, Quirks, Refresh, RestDefinitionSpec
from trimtab.systems.rest.kinds.service import Credentials, Limits
from trimtab.systems.rest.model import CONTROL, Comparator, FieldClass, Polling
from trimtab.systems.rest.openapi import reading, references
from trimtab.systems.rest.reconciling import converging, subject, telling, updating
from trimtab.systems.rest.state import Policy, Status
from trimtab.testing.embedded import TrimtabServer

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "rest"
PAGE = (ROOT / "docs" / "rest.md").read_text()
TEXT = " ".join(PAGE.split())
SYSTEM = ROOT / "src" / "trimtab" / "systems" / "rest"
PROGRAM = str(Path(sys.executable).with_name("trimtab"))


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


FILES = [file for file in EXAMPLE.rglob("*") if file.suffix in (".yaml", ".py", ".toml", ".md")]
MANIFESTS = [block for block in blocks("yaml") if block.startswith("apiVersion: ")]


def run(server: TrimtabServer, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, *words, "--kubeconfig", str(server.kubeconfig)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    """With the kinds of the example. Nobody answers for the service, which no kind needs."""
    with TrimtabServer(tmp_path_factory.mktemp("guide"), flags=("--systems", "rest")) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=30)
        document = {"compute.json": (EXAMPLE / "compute.json").read_text()}
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "compute"}, "data": document}
        assert run(server, "apply", "-f", "-", stdin=msgspec.json.encode(config_map).decode()).returncode == 0
        files = [word for name in ("service", "definitions") for word in ("-f", str(EXAMPLE / f"{name}.yaml"))]
        assert run(server, "apply", *files).returncode == 0
        for definition in load_all((EXAMPLE / "definitions.yaml").read_text()):
            name = definition["metadata"]["name"]
            done = run(server, "wait", f"restdefinition/{name}", "--for=condition=Ready", "--timeout=30s")
            assert done.returncode == 0, done.stderr
        yield server


# --- what it shows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifest", MANIFESTS, ids=[str(number) for number in range(1, len(MANIFESTS) + 1)])
def test_the_server_takes_every_manifest_of_the_page(server: TrimtabServer, manifest: str) -> None:
    done = run(server, "apply", "--dry-run", "-f", "-", stdin=manifest)
    assert done.returncode == 0, f"{manifest}\n{done.stderr}"


@pytest.mark.parametrize("file", ["scaleset", "storage", "adopted"])
def test_the_server_takes_the_objects_of_the_example(server: TrimtabServer, file: str) -> None:
    done = run(server, "apply", "--dry-run", "-f", str(EXAMPLE / f"{file}.yaml"))
    assert done.returncode == 0, done.stderr


def test_all_that_is_shown_is_from_the_examples_but_for_what_is_about_pushes() -> None:
    there = [file.read_text() for file in FILES]
    shown = [block for language in ("yaml", "python", "toml") for block in blocks(language)]
    foreign = [block for block in shown if not any(block in text for text in there)]
    assert len(shown) >= 7
    assert [block for block in foreign if "notifications:" not in block] == []


def test_the_refusal_of_the_page_is_that_of_the_server(server: TrimtabServer) -> None:
    """But for how the object came to be: here it is not at the service yet."""
    (said,) = (block for block in blocks("") if "is invalid:" in block)
    objects = list(load_all((EXAMPLE / "scaleset.yaml").read_text()))
    (wrong,) = (each for each in objects if each["kind"] == "VirtualMachineScaleSet")
    wrong["spec"]["etag"] = "x"
    wrong["spec"]["sku"]["capcity"] = 3
    done = run(server, "apply", "--dry-run", "-f", "-", stdin=msgspec.json.encode(wrong).decode())
    lines = [line.removeprefix("* ").strip() for line in said.splitlines() if "capcity" in line or "etag" in line]
    assert len(lines) == 2
    assert [line for line in lines if line.partition("Forbidden: ")[2] not in done.stderr] == []


def test_a_newcomer_is_told_where_the_server_is_before_anything_asks_for_it() -> None:
    asking = [block for block in blocks("") if "kubectl create configmap compute" in block]
    assert [block.splitlines()[0] for block in asking] == ["export KUBECONFIG=.trimtab/kubeconfig"]


def test_a_kind_in_the_manner_of_the_page_is_generated_without_a_root(tmp_path: Path) -> None:
    """The folder that Azure's documents are in is found by its name; where the service is, only the command says."""
    (command,) = (
        line for block in blocks("") for line in block.splitlines() if "--only VirtualMachineScaleSet" in line
    )
    assert "--root" not in command
    folder = tmp_path / "specification" / "compute" / "stable"
    folder.mkdir(parents=True)
    (tmp_path / "specification" / "common.json").write_text(json.dumps({"definitions": {"Tags": {"type": "object"}}}))
    document = json.loads((EXAMPLE / "compute.json").read_text())
    document["definitions"]["Elsewhere"] = {"$ref": "../../common.json#/definitions/Tags"}
    (folder / "virtualMachineScaleSet.json").write_text(json.dumps(document))
    done = subprocess.run([PROGRAM, *command.split()[1:]], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "scale:" not in (folder / "azure" / "definitions.yaml").read_text()


def test_a_plain_password_and_a_lack_are_named_by_admission_and_not_by_the_definition(server: TrimtabServer) -> None:
    (wrong,) = (
        each for each in load_all((EXAMPLE / "scaleset.yaml").read_text()) if each["kind"] == "VirtualMachineScaleSet"
    )
    wrong["spec"]["properties"]["virtualMachineProfile"]["osProfile"]["adminPassword"] = "plain"
    del wrong["spec"]["location"]
    done = run(server, "apply", "--dry-run", "-f", "-", stdin=msgspec.json.encode(wrong).decode())
    assert done.returncode != 0
    assert "osProfile.adminPassword" in done.stderr
    assert "spec.location: Required value" in done.stderr
    assert '"plain"' not in done.stderr


# --- what it names ---------------------------------------------------------------------------------------------------

NO_REASONS = {
    *(telling.READY, telling.SYNCED, telling.PROGRESSING, telling.REFERENCES, telling.STALLED),
    *("Secret", "ConfigMap", "Name", "Id", "True", "False"),
    *("CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration"),
}
WORD = re.compile(r'"([A-Z][a-z]+(?:[A-Z][a-z]+)*)"')


def reasons() -> set[str]:
    """Every reason of a condition or an event, and every quirk, that the reconciler and its controllers write."""
    files = [*(SYSTEM / "reconciling").glob("*.py"), *SYSTEM.glob("*_controller.py")]
    return {word for file in files for word in WORD.findall(file.read_text())} - NO_REASONS


@pytest.mark.parametrize("reason", sorted(reasons()))
def test_the_page_explains_every_reason(reason: str) -> None:
    assert f"`{reason}`" in PAGE


def test_the_reasons_are_found_in_the_code() -> None:
    """So that the test above does not pass because nothing is looked at."""
    known = {
        "Settled",
        "DriftContested",
        "CreationUncertain",
        "Throttled",
        "Served",
        "InUse",
        "Adopted",
        "RemovedByNull",
    }
    assert known <= reasons()


@pytest.mark.parametrize("condition", ["Ready", "Synced", "Progressing", "Drifted", "ReferencesResolved", "Stalled"])
def test_the_page_says_what_each_condition_means(condition: str) -> None:
    conditions = {
        telling.READY,
        telling.SYNCED,
        telling.PROGRESSING,
        telling.DRIFTED,
        telling.REFERENCES,
        telling.STALLED,
    }
    assert condition in conditions
    assert f"`{condition}`: " in TEXT


def names(struct: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(struct)]


@pytest.mark.parametrize(
    "struct",
    [RestServiceSpec, RestDefinitionSpec, Quirks, FieldOverlay, Policy, Status],
    ids=lambda each: each.__name__,
)
def test_the_page_names_every_field(struct: type[msgspec.Struct]) -> None:
    obvious = {"serviceRef", "names", "version", "observedGeneration", "fields"}
    missing = [
        name for name in names(struct) if name not in obvious and not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", PAGE)
    ]
    assert [name for name in missing if f"{name}:" not in PAGE] == []


def test_the_fields_that_are_ours_are_those_of_every_kind() -> None:
    (table,) = re.findall(r"Five more fields are ours:\n\n(.*?)\n\n", PAGE, re.DOTALL)
    assert tuple(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == CONTROL


def test_the_policies_have_the_values_and_defaults_of_the_page() -> None:
    for field in msgspec.structs.fields(Policy):
        values = [value for kind in (field.type, *get_args(field.type)) for value in get_args(kind)]
        words = [value for value in values if isinstance(value, str)]
        if words:
            assert words[0] == field.default
            assert f"| `{field.encode_name}` | {', '.join(f'`{word}`' for word in words)} |" in PAGE


def test_the_classes_and_comparators_are_those_of_the_code() -> None:
    (table,) = re.findall(r"### Field classes\n\n(.*?)\n\n", PAGE, re.DOTALL)
    assert set(re.findall(r"^\| ([a-z-]+) \|", table, re.MULTILINE)) - {"class"} == {each.value for each in FieldClass}
    assert [each.value for each in Comparator if f"`{each.value}`" not in PAGE] == []


def test_the_ways_to_log_in_are_those_of_the_code() -> None:
    (kind,) = (field.type for field in msgspec.structs.fields(Credentials) if field.encode_name == "type")
    words: list[Any] = [word for each in get_args(kind) for word in get_args(each)] or list(get_args(kind))
    assert {"bearer", "azure"} <= set(words)
    assert [word for word in words if f"`{word}`" not in PAGE] == []


def test_every_point_of_a_hook_is_in_the_table() -> None:
    points = set(re.findall(r"(\w+)\([^)]*\) → ", hooks.__doc__ or ""))
    (table,) = re.findall(r"^\| point \|.*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
    assert len(points) == 15
    assert [point for point in sorted(points) if f"`{point}`" not in table] == []
    assert f"`{hooks.GROUP}`" in PAGE


def test_the_marks_on_objects_are_those_of_the_code() -> None:
    assert f"`{subject.FINALIZER}`" in PAGE
    assert f"{subject.WAKE}=" in PAGE


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_the_limits_of_a_service_are_those_of_the_code() -> None:
    usual = Limits()
    reads, writes = f"{usual.reads_per_second:g}", f"{usual.writes_per_second:g}"
    said = f"{reads} reads and {writes} writes a second, {usual.concurrent} at once, 30 s for a request"
    assert usual.timeout.seconds == 30
    assert said in TEXT
    assert Throttle.__init__.__kwdefaults__["reads_per_second"] == usual.reads_per_second  # type: ignore[index]


def test_the_times_are_those_of_the_code() -> None:
    assert updating.CONTESTED == 3
    assert updating.CONTESTED_WITHIN.total_seconds() == 3600
    assert "comes back three times within an hour" in TEXT
    assert "After three times in an hour it is left so" in (EXAMPLE / "README.md").read_text()
    assert updating.REPAIRED_AFTER.total_seconds() == 1800
    assert "the same is written again every half hour" in TEXT
    assert updating.STALE == 1.0
    assert "if more than a second has passed" in TEXT
    assert operations.LONGEST == 600
    assert "`Retry-After` counts, up to 10 minutes" in TEXT
    assert f"without it, {operations.FIRST:g} s" in TEXT
    assert Polling().deadline == 3600
    assert (Refresh().interval, Refresh().batch) == ("10m", 5)
    assert "`refresh.interval` (10 minutes;" in TEXT
    assert "`refresh.batch` (5)" in TEXT
    assert errors._VERY_SLOW == 45 * 60


def test_the_limits_are_those_of_the_code() -> None:
    assert f"A document has {reading.MOST_BYTES >> 20} MiB at most, in {references.MOST_FILES} files" in TEXT
    assert f"an answer {service.MOST_BYTES >> 20} MiB; a list {pages.MOST_PAGES:,} pages" in TEXT
    assert f"{converging.LARGEST >> 10} KiB fit" in TEXT


# --- what was managed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server_of", ["lxd", "powerdns", "alertmanager", "docker"])
def test_the_table_of_servers_has_every_kind_that_is_managed(server_of: str) -> None:
    (table,) = re.findall(r"^\| server \|.*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
    definitions = load_all((EXAMPLE / server_of / "definitions.yaml").read_text())
    kinds = [definition["spec"]["names"]["kind"] for definition in definitions]
    rows = [line.split("|") for line in table.strip().splitlines()]
    (named,) = (kinds for _, server, kinds, *_ in rows if server_of in server.lower())
    assert [kind for kind in kinds if not re.search(rf"\b{kind}\b", named)] == []
