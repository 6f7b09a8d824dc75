"""The example of Git sync works as it is: the Git server, the commands of its page in their order, and what they promise."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import newest, programs
from tests.needs import needs
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "gitops"
PAGE = (EXAMPLE / "README.md").read_text()
PORT = "7418"

Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A terminal where the example is, with its server and its Git server beside it."""
    needs("git")
    folder = tmp_path_factory.mktemp("gitops")
    port = str(free_ports(1)[0])
    copied = Path(shutil.copytree(EXAMPLE, folder / "examples" / "gitops"))
    manifest = copied / "sync.yaml"
    assert PORT in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(PORT, port))
    (started,) = (line for line in PAGE.splitlines() if line.startswith("python -m trimtab.lab.git_demo "))
    command = [sys.executable, *started.replace("examples", str(ROOT / "examples")).split()[1:], "--port", port]
    log = folder / "git.log"
    with (
        Process(command, log=log) as git,
        TrimtabServer(folder, flags=("--systems", "gitops,platform")) as server,
    ):
        git.wait_until(lambda: port in log.read_text(), within=30)
        server.wait_until(lambda: '"gitsync", "event": "controller works"' in server.log(), within=30)
        (folder / ".trimtab").mkdir()
        path = f"{programs()[newest()].parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
        env = {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(server.kubeconfig), "GIT_PAGER": "cat"}

        def run(script: str, *, code: int = 0) -> subprocess.CompletedProcess[str]:
            words = ["bash", "-euo", "pipefail", "-c", script.replace(PORT, port)]
            done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=110)
            assert done.returncode == code, f"{script}\n{done.stdout}{done.stderr}\n{server.log()[-4000:]}"
            return done

        yield run


@pytest.fixture(scope="module")
def said(shell: Shell) -> dict[str, str]:
    """What the commands of each part of the page say, by the title above them; all of it is run in order."""
    found: dict[str, str] = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        for block in re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
            done = shell(block.replace("export KUBECONFIG=.trimtab/kubeconfig ", "export "))
            found[title] = found.get(title, "") + done.stdout + done.stderr
    return found


def test_what_is_in_git_is_applied_and_a_plan_says_what_a_commit_would_do(said: dict[str, str]) -> None:
    text = said["Git → system"]
    for name in (
        "configmap/settings",
        "configmap/team-blue",
        "addon.infra.trimtab.dev/ingress",
        "blueprint.infra.trimtab.dev/edge",
    ):
        assert name in text
    assert "~ update  ConfigMap shop/settings  settings.yaml  changed in Git" in text
    assert text.rstrip().endswith("SEK")


def test_a_change_by_kubectl_is_a_commit_of_one_line(said: dict[str, str]) -> None:
    text = said["System → Git"]
    lines = [line for line in text.splitlines() if re.match(r"[+-][^+-]", line)]
    assert lines == ['-  limit: "200"', '+  limit: "350"']
    assert "Synced-By: shop/fleet" in text
    assert "shop/configmaps/opening-hours.yaml" in text


def test_a_conflict_shows_both_sides_and_ends_by_a_decision(said: dict[str, str]) -> None:
    text = said["A conflict"]
    (shown,) = re.findall(r"^`?(\[\{.*\}\])", text, re.MULTILINE)
    assert json.loads(shown) == [{"base": '"350"', "git": '"400"', "path": "data.limit", "system": '"450"'}]
    assert shown in PAGE
    assert "# of all prices" in text  # the comment is where it was
    assert '{"banner":"Hej","currency":"NOK","limit":"450"}' in text


def test_many_deletions_wait_for_a_person(said: dict[str, str]) -> None:
    text = said["Prune, with a guard"]
    assert "MassDelete: 2 documents of 6 (33 %) would be deleted from the system" in text
    assert "! held  ConfigMap shop/team-blue   teams.yaml  is gone from Git" in text
    after = text[text.index("gitsync/fleet deletes 2 objects") :]
    assert "team-blue " not in after
    assert re.search(r"Succeeded +Confirmed +Synced +2 deleted$", after, re.MULTILINE)


def test_what_the_table_says_is_seen(said: dict[str, str], shell: Shell) -> None:
    rows = {cells[0].strip(): cells[1].strip() for cells in re.findall(r"^\| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)}
    secret = next(row for row in rows if row.startswith("`kubectl create secret"))
    shell(re.findall(r"`([^`]+)`", secret)[0])
    shell("kubectl delete configmap opening-hours; trimtab git sync fleet; git -C .trimtab/fleet pull -q")
    files = shell("git -C .trimtab/fleet ls-files").stdout
    assert "opening-hours" not in files
    assert "secret" not in files
    shell('cd .trimtab/fleet; echo "  limit: [" >> settings.yaml; git commit -qam Mistake; git push -q')
    assert "InvalidDocuments" in shell("trimtab git sync fleet", code=1).stdout
    shell("cd .trimtab/fleet; git revert --no-edit HEAD >/dev/null; git push -q; trimtab git sync fleet")
    role = "apiVersion: rbac.authorization.k8s.io/v1\\nkind: ClusterRole\\nmetadata: {name: all}\\n"
    shell(f'cd .trimtab/fleet; printf "{role}" > role.yaml; git add .; git commit -qm More; git push -q')
    assert "InvalidDocuments" in shell("trimtab git sync fleet", code=1).stdout
    shell("cd .trimtab/fleet; git revert --no-edit HEAD >/dev/null; git push -q; trimtab git sync fleet")
    shell("kubectl delete gitsync fleet --timeout=30s; kubectl get configmap settings")
