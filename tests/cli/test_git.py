"""What the commands of Git sync say and exit with: how a sync stands, why, and what to do about it."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.conftest import Program, Zygote, in_namespace
from tests.runtime.widgets import until_found
from trimtab.cli import git_sync
from trimtab.cli.codes import escaped
from trimtab.cli.git_next import WORDS, next_step
from trimtab.cli.git_plan import CHANGES, code_of
from trimtab.cli.git_status import lines
from trimtab.client.connect import connect
from trimtab.model import kubernetes
from trimtab.model.document import convert
from trimtab.model.hub import HubMeta
from trimtab.model.scheme import Scheme
from trimtab.runtime.prepare import prepare
from trimtab.runtime.status import write_status
from trimtab.runtime.system import System
from trimtab.systems.gitops.kinds import GitSync, GitSyncSpec, GitSyncStatus
from trimtab.systems.gitops.kinds.fields import SUSPENDED_BY, SYNC_NOW
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import Action, Guard, Plan, Refusal, Step
from trimtab.systems.gitops.planning import told as told_plan
from trimtab.testing.embedded import TrimtabServer

PAGE = (Path(__file__).parents[2] / "docs" / "gitops.md").read_text()
OLD, NEW = "1" * 40, "2" * 40
AT = "2026-01-02T03:04:05Z"
THING = Identity("", "ConfigMap", "shop", "a")


def sync(reason: str, message: str = "", **status: Any) -> GitSync:
    ready = {
        "type": "Ready",
        "status": "True" if reason == "Synced" else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": AT,
    }
    document = {
        "apiVersion": "hub.trimtab.dev/v3",
        "kind": "GitSync",
        "metadata": {"name": "fleet", "namespace": "shop"},
        "spec": {"repository": "team", "path": "clusters"},
        "status": {"conditions": [ready], **status},
    }
    return convert(document, GitSync)


def run(number: int, outcome: str, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "trigger": "Webhook", "started": AT, "outcome": outcome, **more}


def test_a_sync_that_is_well_says_so_and_asks_for_nothing() -> None:
    told = lines(sync("Synced", "in sync with 1111", lastAppliedRevision=OLD, inventory={"digest": "d", "count": 3}))
    assert told == [
        "gitsync/fleet  team main clusters, to the system",
        "  Synced: in sync with 1111",
        f"  applied  {OLD}",
        "  objects  3",
    ]


def test_a_failed_run_says_why_and_what_to_do_next() -> None:
    failed = run(2, "Failed", reason="ApplyFailed", message="1 document could not be applied", counts={"failed": 1})
    good = run(1, "Succeeded", reason="Synced", counts={"created": 12})
    told = lines(
        sync(
            "GitUnreachable",
            "no answer\nfrom git.example.com",
            lastAppliedRevision=OLD,
            lastAttemptedRevision=NEW,
            history=[failed, good],
        )
    )
    assert told == [
        "gitsync/fleet  team main clusters, to the system",
        "  GitUnreachable: no answer from git.example.com",
        "  next       see whether the Git server answers; it is tried again by itself",
        f"  applied    {OLD}",
        f"  looked at  {NEW}",
        f"  runs       {AT}  Failed     Webhook  ApplyFailed  1 failed",
        "               1 document could not be applied",
        f"             {AT}  Succeeded  Webhook  Synced       12 created",
    ]


def test_what_the_condition_says_is_not_said_again_of_its_run() -> None:
    message = "1 document could not be applied: a.yaml: no"
    told = lines(sync("ApplyFailed", message, history=[run(1, "Failed", reason="ApplyFailed", message=message)]))
    assert sum(message in line for line in told) == 1


def test_what_is_held_is_named_with_its_reason_and_the_way_on() -> None:
    deletes = [f"ConfigMap shop/c{n:02}" for n in range(12)]
    held = {"plan": "p", "revision": NEW, "reason": "MassDelete", "deletes": deletes, "count": 12}
    told = lines(sync("MassDelete", "12 documents of 20 would be deleted", held=held, lastAppliedRevision=OLD))
    assert told[2].startswith("  next     `trimtab git confirm fleet -n shop` lets them pass")
    assert "  held     12 deletions that 222222222222 would make (MassDelete, plan p)" in told
    assert [line.strip() for line in told if "ConfigMap" in line] == deletes[:10]
    assert told[-1] == "           and 2 more"


def test_a_folder_that_is_not_there_is_looked_for_before_deletions_are_confirmed() -> None:
    step = next_step(sync("EmptySource", 'spec.path: there is no folder "productoin" in 2222'))
    assert step.startswith("name the right folder: spec.path")


def test_who_wonders_why_a_sync_is_suspended_is_told() -> None:
    held = sync("Suspended", "spec.suspend")
    paused = held.replace(
        metadata=msgspec.structs.replace(held.metadata, annotations={SUSPENDED_BY: "the release\nis frozen"}),
        spec=held.spec.replace(suspend=True),
    )
    assert "  suspended  the release is frozen" in lines(paused)


def test_a_port_without_a_host_is_told_with_that_port(bare: Program) -> None:
    said = bare("git", "listen", "--listen", "7481")
    assert "is not HOST:PORT, as 127.0.0.1:7481" in said.err


def test_documents_that_are_not_right_are_a_table() -> None:
    problems = [
        {"path": "a.yaml", "line": 12, "reason": "Invalid", "message": "data: is\nno map"},
        {"path": "deep/b.yaml", "reason": "Refused", "message": "is another sync's"},
    ]
    told = lines(sync("InvalidDocuments", "2 problems", documents=problems, problems=30))
    assert told[-3:] == [
        "  documents  a.yaml:12    Invalid  data: is no map",
        "             deep/b.yaml  Refused  is another sync's",
        "             and 10 more",
    ]


def test_every_reason_of_the_page_has_a_next_step() -> None:
    table = PAGE[PAGE.index("| reason | what it means") :].partition("\n\n")[0]
    reasons = {word for row in table.splitlines()[2:] for word in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert len(reasons) > 20
    assert reasons - {"Synced"} == WORDS.keys()
    for reason in WORDS:
        step = next_step(sync(reason))
        assert step
        assert "{" not in step
    assert next_step(sync("Synced")) == ""


def test_a_plan_is_of_a_folder_that_is_there_or_of_a_revision(bare: Program) -> None:
    bare.write("fleet/a.yaml", "")
    both = bare("git", "plan", "fleet", "--folder", "fleet", "--revision", "feature")
    assert (both.code, both.err) == (2, "error: say --folder or --revision, not both\n")
    gone = bare("git", "diff", "fleet", "--folder", "elsewhere")
    assert (gone.code, gone.err) == (2, "error: elsewhere is no folder\n")


CREATE = Step(THING, Action.CREATE, "a.yaml")


@pytest.mark.parametrize(
    ("plan", "plainly", "asked"),
    [
        (Plan(), 0, 0),
        (Plan(create=(CREATE,)), 0, CHANGES),
        (Plan(create=(CREATE,), guards=(Guard("MassDelete", "…", (THING,), "word"),)), 1, 1),
        (Plan(refused=(Refusal(THING, "a.yaml", "another's"),)), 1, 1),
    ],
)
def test_a_plan_that_waits_for_a_person_exits_with_1_and_one_of_changes_with_2_where_asked(
    plan: Plan, plainly: int, asked: int
) -> None:
    assert (code_of(plan, exit_code=False), code_of(plan, exit_code=True)) == (plainly, asked)


EVIL = "a\x1b]0;title\x07\nb.yaml"
SHOWN = r"a\x1b]0;title\x07\nb.yaml"


def test_control_characters_in_names_of_files_are_shown_and_not_sent_to_the_terminal() -> None:
    found = sync(
        "ApplyFailed",
        f"1 document could not be applied: {EVIL}",
        documents=[{"path": EVIL, "reason": "Invalid", "message": "\x1b[2J no"}],
        history=[run(1, "Failed", reason="ApplyFailed", message=EVIL)],
    )
    for told in (lines(found), git_sync.lines(found, EVIL)):
        assert all(line.isprintable() for line in told)
        assert any(SHOWN in line for line in told)
    step = Step(Identity("", "ConfigMap", "shop", "a\x1b"), Action.CREATE, EVIL, reason="new\rline")
    first, *_ = told_plan(Plan(create=(step,)), show=escaped).splitlines()
    assert first == rf"+ create  ConfigMap shop/a\x1b  {SHOWN}  new\rline"


@pytest.mark.parametrize("words", ["belongs to another sync", "not written to it", "spec.exclude"])
def test_what_to_do_about_a_refusal_fits_all_that_are_refused(words: str) -> None:
    assert words in next_step(sync("Refused"))


async def test_a_run_that_is_asked_for_is_followed_to_its_end(
    quiet_server: TrimtabServer, tmp_path: Path, zygote: Zygote
) -> None:
    """The test is the controller."""
    scheme = kubernetes.register(Scheme())
    scheme.register(GitSync)
    client = connect(quiet_server.kubeconfig, scheme=scheme)
    try:
        await prepare(client, (System(name="gitops", kinds=(GitSync,)),), rights=False)
        trimtab = await in_namespace("git-followed", client, quiet_server, tmp_path, zygote)
        spec = GitSyncSpec(repository="team")
        await client.create(GitSync(metadata=HubMeta(name="fleet", namespace="git-followed"), spec=spec))
        with trimtab.installed("git", "sync", "fleet", "--wait", "30", stderr=subprocess.PIPE) as running:
            assert running.stderr is not None
            asked = held = await until_found(
                client, GitSync, "fleet", "git-followed", lambda sync: sync.metadata.annotations
            )
            for done in (30, 60):
                far = {"done": done, "total": 60, "note": "applying", "started": AT, "updated": AT}
                held = await write_status(client, held, convert({"progress": far}, GitSyncStatus))
                assert await asyncio.to_thread(running.stderr.readline) == f"fleet: {done} of 60: applying\n"
            ended = sync("Synced", "in sync with 1111", handledRequest=asked.metadata.annotations[SYNC_NOW])
            await write_status(client, held, ended.status)
            out, err = await asyncio.to_thread(running.communicate, timeout=30)
        assert (running.returncode, out, err) == (0, "gitsync/fleet Synced: in sync with 1111\n", "")
    finally:
        await client.close()
