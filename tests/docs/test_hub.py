"""The guide to the hub is true: its code and YAML are the examples', and it has every reason, field and command."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
import typer

from trimtab.cli.app import app
from trimtab.hub import contract
from trimtab.hub.artifacts.endpoint import MAX_ARTIFACT
from trimtab.hub.cache import fleet, group
from trimtab.hub.proto.loading import load
from trimtab.model.document import convert
from trimtab.model.hub import OWN_METADATA, lineage_key
from trimtab.model.scheme import SUFFIX
from trimtab.model.yaml import load_all
from trimtab.systems.platform import ground
from trimtab.systems.platform.kinds import Addon, Artifact, Blueprint, Cluster, Project, Workload
from trimtab.systems.platform.kinds.addon import AddonSpec
from trimtab.systems.platform.kinds.artifact import HelmInRepo, UploadedHelm, UploadedYAML, YAMLInRepo
from trimtab.systems.platform.kinds.blueprint import BlueprintSpec
from trimtab.systems.platform.kinds.cluster import ClusterConfig
from trimtab.systems.platform.kinds.project import Deletion, ProjectSpec
from trimtab.systems.platform.kinds.workload import DriftAction, WorkloadSpec

ROOT = Path(__file__).parents[2]
SYSTEM = ROOT / "src" / "trimtab" / "systems" / "platform"
PAGE = (ROOT / "docs" / "hub.md").read_text()
EXAMPLE = ROOT / "examples" / "hub"
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)*")
CLASSES = {cls.__name__: cls for cls in (Addon, Blueprint, Cluster, Project, Workload)}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_file_of_one_kind_is_quoted_as_it_is_and_short() -> None:
    file = (EXAMPLE / "zones.py").read_text()
    section = PAGE[PAGE.index("## A kind of your own over a service") : PAGE.index("### From a proto file")]
    quoted = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert len(quoted) >= 5
    assert [part for part in quoted if part not in file] == []
    assert "fewer than 150 lines" in section
    assert len(file.splitlines()) < 150


def test_the_provisioner_of_the_page_is_one() -> None:
    (code,) = (block for block in blocks("python") if "class Metal" in block)
    (cls,) = (node for node in ast.parse(code).body if isinstance(node, ast.ClassDef))
    methods = {
        node.name: [arg.arg for arg in node.args.args] for node in cls.body if isinstance(node, ast.AsyncFunctionDef)
    }
    assert methods == {name: ["self", "cluster", "state"] for name in ("provision", "deprovision")}


def test_its_manifests_and_those_of_the_example_are_good() -> None:
    texts = [*blocks("yaml"), *(file.read_text() for file in sorted(EXAMPLE.glob("*.yaml")))]
    documents = [document for text in texts for document in load_all(text)]
    ours = [document for document in documents if document["kind"] in CLASSES]
    assert len(ours) >= 7
    for document in ours:
        assert convert(document, CLASSES[document["kind"]]).kind == document["kind"]
    cluster = "".join((EXAMPLE / "cluster.yaml").read_text().splitlines(keepends=True)[1:])
    assert cluster in PAGE


def test_the_proto_file_of_the_example_is_a_kind() -> None:
    loaded = load({"ticket.proto": (EXAMPLE / "ticket.proto").read_text()}, group="desk", version="v1")
    assert loaded.config.kind is not None
    assert loaded.config.kind.kind == "Ticket"


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
    for page, link in re.findall(r"\]\((gitops\.md)?#([^)]+)\)", PAGE):
        text = (ROOT / "docs" / (page or "hub.md")).read_text()
        titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert link in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, link


def said() -> set[str]:
    """Every word that is given to a condition, an event, a part or a fault as its reason."""
    found: set[str] = set()
    calls = ("Fault", "normal", "warning", "condition", "ready", "Provisioned", "_unbrought", "replace", "Part")
    for file in SYSTEM.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                given = [word.value for word in node.keywords if word.arg == "reason"]
                if name in calls:
                    found |= words([*node.args, *given])
            elif isinstance(node, ast.For):
                found |= words([node.iter])
            elif isinstance(node, ast.Return | ast.Assign) and file.name in (
                "applying.py",
                "keeping.py",
                "spreading.py",
            ):
                found |= words([node.value] if node.value is not None else [])
    return found


def words(nodes: list[ast.expr]) -> set[str]:
    """Constants among them, in tuples and choices too."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Tuple):
            found |= words(node.elts)
        elif isinstance(node, ast.IfExp):
            found |= words([node.body, node.orelse])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and WORD.fullmatch(node.value):
            found.add(node.value)
    return found


NO_REASONS = {"Degraded", "Failed", "Pending", "Applying", "Workload", "Cluster", "True", "False"}
"""Phases and kinds."""


def test_every_reason_is_in_the_page() -> None:
    found = said() - NO_REASONS
    assert {"NoProvisioner", "DriftCorrected", "HelmMissing", "AnchorForeign", "NotEmpty", "Drifted"} <= found
    assert [word for word in sorted(found) if f"`{word}`" not in PAGE] == []


@pytest.mark.parametrize("kind", ["Blueprint", "Addon", "Cluster", "Repository"])
@pytest.mark.parametrize("fault", ["Missing", "Ambiguous", "Invalid"])
def test_every_way_to_miss_another_resource_is_in_the_page(kind: str, fault: str) -> None:
    assert f"`{kind}{fault}`" in PAGE


@pytest.mark.parametrize("condition", ["Reachable", "BlueprintApplied", "Provisioned", "Ready", "Rendered", "Applied"])
def test_the_page_says_what_each_condition_means(condition: str) -> None:
    assert f"`{condition}`: " in PAGE


@pytest.mark.parametrize(
    "struct",
    [
        *(ProjectSpec, AddonSpec, BlueprintSpec, WorkloadSpec, ClusterConfig, Artifact),
        *(UploadedYAML, YAMLInRepo, UploadedHelm, HelmInRepo),
    ],
    ids=lambda each: each.__name__,
)
def test_the_page_names_every_field(struct: type[msgspec.Struct]) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(struct)]
    assert [name for name in names if not re.search(rf"\b{name}\b", PAGE)] == []


@pytest.mark.parametrize(
    "word",
    [
        *(*OWN_METADATA, *get_args(Deletion), *get_args(DriftAction), lineage_key(SUFFIX)),
        *(ground.ADOPT, ground.ALLOW_MASS_DELETE, ground.FORCE_DELETE),
    ],
)
def test_every_word_that_users_give_is_in_the_page(word: str) -> None:
    assert re.search(rf"`{word}[`:]|: {word}\b", PAGE)


@pytest.mark.parametrize("error", [contract.Missing, contract.Refused, contract.Stale, contract.Down])
def test_what_an_accessor_raises_is_what_a_client_gets(error: type[contract.HubError]) -> None:
    (row,) = re.findall(rf"^\| `{error.__name__}\b.*\| (\d+)", PAGE, re.MULTILINE)
    assert int(row) == error.code


def test_every_command_is_in_the_page() -> None:
    group_of = typer.main.get_group(app).commands["hub"]
    assert [name for name in group_of.commands if f"trimtab hub {name}" not in PAGE] == []  # type: ignore[attr-defined]


def test_its_numbers_are_those_of_the_code() -> None:
    assert f"up to {MAX_ARTIFACT >> 20} MiB" in PAGE
    assert (group.MAX_BYTES >> 20, group.EXPIRY, group.NEGATIVE_EXPIRY) == (64, 300, 5)
    assert "64 MiB for each group of a kind, five minutes; what is not there, five seconds" in PAGE
    assert f"its lease ({fleet.LEASE:g} s)" in PAGE
    assert f"wait up to {fleet.PATIENCE:g} s" in PAGE
