"""The guide to Git sync is true: its YAML is that of the example or is taken, and it has every reason, field and command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import typer

from trimtab.cli.app import app
from trimtab.model.document import convert
from trimtab.model.yaml import load_all
from trimtab.runtime.git import errors as git_errors
from trimtab.runtime.git.limits import Limits as GitLimits
from trimtab.systems.gitops import conducting, listening, running
from trimtab.systems.gitops.kinds import (
    DeletionGuard,
    Destination,
    GitSync,
    GitSyncSpec,
    GitSyncStatus,
    Repository,
    RepositorySpec,
    SyncConflict,
    SyncConflictSpec,
    Triggers,
    Webhook,
)
from trimtab.systems.gitops.kinds.fields import AUTHOR, CONFIRM, SYNC_NOW
from trimtab.systems.gitops.kinds.gitsync import Policy, Provider
from trimtab.systems.gitops.parsing.reading import LIMITS
from trimtab.systems.gitops.planning.plan import PRUNE

ROOT = Path(__file__).parents[2]
SYSTEM = ROOT / "src" / "trimtab" / "systems" / "gitops"
PAGE = (ROOT / "docs" / "gitops.md").read_text()
EXAMPLE = ROOT / "examples" / "gitops"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)*")
CLASSES: dict[str, Any] = {"Repository": Repository, "GitSync": GitSync, "SyncConflict": SyncConflict}


def anchors(page: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[1])
def test_its_manifests_are_good(block: str) -> None:
    for document in load_all(block):
        cls = CLASSES[document["kind"]]
        assert convert(document, cls).kind == document["kind"]


def test_the_manifests_of_the_example_are_good_and_quoted() -> None:
    found = [document for file in sorted(EXAMPLE.glob("*.yaml")) for document in load_all(file.read_text())]
    assert all(convert(document, CLASSES[document["kind"]]) for document in found if document["kind"] in CLASSES)
    parts = (EXAMPLE / "sync.yaml").read_text().split("---\n")
    assert [part for part in parts[1:] if part not in PAGE] == []


def test_the_two_deletions_of_the_example_are_held_whatever_else_the_project_has() -> None:
    (sync,) = (each for each in load_all((EXAMPLE / "sync.yaml").read_text()) if each["kind"] == "GitSync")
    guard = convert(sync, GitSync).spec.deletion_guard
    assert (guard.max_count, guard.max_percent) == (1, 0)


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
    assert [link for link in re.findall(r"\]\(#([^)]+)\)", PAGE) if link not in anchors(PAGE)] == []
    hub = anchors((ROOT / "docs" / "hub.md").read_text())
    assert [link for link in re.findall(r"\]\(hub\.md#([^)]+)\)", PAGE) if link not in hub] == []


def said() -> set[str]:
    """Every word that is given to a verdict, an event or a run as its reason."""
    found: set[str] = set()
    for file in SYSTEM.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in ("Verdict", "normal", "warning", "Guard", "_tell", "DocumentProblem", "problems_of"):
                    found |= words([*node.args, *(word.value for word in node.keywords if word.arg == "reason")])
            elif isinstance(node, ast.Return) and file.name == "conducting.py" and node.value is not None:
                found |= words([each for each in ast.walk(node.value) if isinstance(each, ast.Constant)])
    return found


def words(nodes: Iterable[ast.expr]) -> set[str]:
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return {text for text in texts if isinstance(text, str) and WORD.fullmatch(text)}


def test_every_reason_is_in_the_page() -> None:
    found = said()
    assert {"InvalidDocuments", "PushRace", "MassDelete", "HistoryRewritten", "Webhook", "Reachable"} <= found
    assert [word for word in sorted(found) if f"`{word}`" not in PAGE] == []


def failures() -> list[str]:
    kinds = [cls for cls in vars(git_errors).values() if isinstance(cls, type)]
    return sorted(cls.__name__ for cls in kinds if issubclass(cls, git_errors.RemoteError))


@pytest.mark.parametrize("name", [name for name in failures() if name != "RemoteError"])
def test_every_failure_of_git_is_in_the_page(name: str) -> None:
    assert f"`Git{name}`" in PAGE


@pytest.mark.parametrize(
    "struct",
    [RepositorySpec, GitSyncSpec, GitSyncStatus, SyncConflictSpec, Triggers, Webhook, Destination, DeletionGuard],
    ids=lambda each: each.__name__,
)
def test_the_page_names_every_field(struct: type[msgspec.Struct]) -> None:
    obvious = {"conditions", "observedGeneration", "lastRunTime", "handledRequest", "name"}
    names = [field.encode_name for field in msgspec.structs.fields(struct)]
    assert [name for name in names if name not in obvious and not re.search(rf"\b{name}\b", PAGE)] == []


@pytest.mark.parametrize("word", [*get_args(Policy), *get_args(Provider), SYNC_NOW, CONFIRM, AUTHOR, PRUNE])
def test_every_word_that_users_give_is_in_the_page(word: str) -> None:
    assert re.search(rf"`{word}[`:]|: {word}\b", PAGE)


def test_every_command_is_in_the_page() -> None:
    group = typer.main.get_group(app).commands["git"]
    assert [name for name in group.commands if f"`trimtab git {name}" not in PAGE] == []  # type: ignore[attr-defined]


def test_its_numbers_are_those_of_the_code() -> None:
    spec = GitSyncSpec(repository="a")
    guard, triggers = spec.deletion_guard, spec.triggers
    assert f"`maxCount` {guard.max_count}, `maxPercent` {guard.max_percent}" in PAGE
    assert f"`triggers.interval`, {triggers.interval}." in PAGE
    assert f"has failed: {spec.timeout}" in PAGE
    assert f"`{spec.committer.name}`, `{spec.committer.email}`" in PAGE
    assert running.PUSHES == 5
    assert "tried again, five times" in PAGE
    assert conducting.LONGEST == 10
    limits = GitLimits()
    assert (limits.repository_bytes >> 30, limits.files, limits.blob_bytes >> 20, limits.time) == (2, 200_000, 32, 600)
    assert "2 GiB of history, 200,000 files, 32 MiB for one file, 10 minutes" in PAGE
    assert f"documents has {LIMITS.file_bytes >> 20} MiB at most" in " ".join(PAGE.split())
    assert f"too large ({listening.MAX_BYTES >> 20} MiB)" in PAGE
