"""The example of canary delivery works as it is: its services, its requests, the commands of its page, and what they promise.

The tests go through the page in its order, on one server: what one leaves behind the next finds.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.kubectl import newest, programs
from tests.needs import needs
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

pytestmark = pytest.mark.dataplane

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "delivery"
PAGE = (EXAMPLE / "README.md").read_text()
THEIRS, OURS = "127.20.0.", "127.21.7."
"""The addresses of the page, and those of the test: someone may be trying the example on this machine."""
LAB = "python -m trimtab.lab.load "

Shell = Callable[[str], str]


class Home(NamedTuple):
    folder: Path
    server: TrimtabServer
    requests: Path
    """What the load says."""


def block(holding: str) -> str:
    """The commands of the page that have these words, without where the kubeconfig is."""
    found = [text for text in re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if holding in text]
    assert found, holding
    lines = [line for line in found[0].splitlines() if not line.startswith("export KUBECONFIG=")]
    return "\n".join(lines).replace(THEIRS, OURS)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("delivery")
    copied = Path(shutil.copytree(EXAMPLE, folder / "examples" / "delivery"))
    for file in copied.glob("*.yaml"):
        file.write_text(file.read_text().replace(THEIRS, OURS))
    (started,) = (line for line in PAGE.splitlines() if line.startswith("trimtab up "))
    log = folder / "load.log"
    with TrimtabServer(folder, flags=tuple(started.split()[2:])) as server:
        server.wait_until(lambda: '"gateway", "event": "controller works"' in server.log(), within=60)
        said = ran(folder, server, block("apply -f examples/delivery/shop.yaml"))
        assert said.endswith("version 1\n")
        steady = next(line for line in PAGE.splitlines() if line.startswith(LAB))
        words = steady.replace(THEIRS, OURS).split()[1:]
        with Process([sys.executable, *words], log=log) as load:
            load.wait_until(lambda: "version 1" in log.read_text(), within=20)
            yield Home(folder, server, log)


def ran(folder: Path, server: TrimtabServer, script: str) -> str:
    """A script, as the page's reader runs it, where the example is. Whoever runs on beside it must not keep us waiting."""
    script = script.replace(".log &", ".log 2>&1 &")
    path = f"{programs()[newest()].parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(server.kubeconfig)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}\n{server.log()[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def shell(home: Home) -> Shell:
    return lambda script: ran(home.folder, home.server, script)


def canary(shell: Shell, name: str = "shop") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell(f"kubectl get canary {name} -o json"))
    return found


def test_a_good_release_and_a_bad_one_take_less_than_two_minutes(home: Home, shell: Shell) -> None:
    began = time.monotonic()
    good = shell(block("""s/"1"/"2"/' examples/delivery/shop.yaml"""))
    assert re.search(r"^shop +True +Stable .*\bSucceeded +Stable ", good, re.MULTILINE)
    bad = shell(block("""s/"1"/"3", --errors"""))
    assert time.monotonic() - began < 120
    assert "2 checks failed: request-success-rate" in bad
    answered = home.requests.read_text()
    assert "version 2: 200 (100 %)" in answered or "version 2: 201 (100 %)" in answered
    assert "no answer" not in answered
    assert "failed" not in "".join(line for line in answered.splitlines() if "version 3" not in line)


def test_a_replay_tells_what_other_thresholds_would_have_done(shell: Shell) -> None:
    as_it_was, milder = (shell(line) for line in block("canary replay").splitlines())
    assert "RolledBack at check 2" in as_it_was
    assert "RolledBack" not in milder


def test_a_release_waits_for_a_person_and_what_is_changed_by_hand_is_put_back(home: Home, shell: Shell) -> None:
    said = shell(block("manual"))
    assert "`trimtab canary promote shop` lets it become stable" in said
    told = shell(block("kubectl patch virtualservice"))
    assert "VirtualService shop: spec.http[0].route[0].weight was 100, not 50 by kubectl-patch" in told
    shell(block("canary promote shop"))
    assert shell(f"curl -s http://{OURS}80:8000/") == "version 4\n"


def test_skip_analysis_is_used_once(shell: Shell) -> None:
    assert shell(block("skipAnalysis")).splitlines()[-1] == "false"
    assert canary(shell)["status"]["history"][0]["trigger"] == "SkipAnalysis"
    assert shell(f"curl -s http://{OURS}80:8000/") == "version 5\n"


def test_only_those_who_match_get_the_new_version(shell: Shell) -> None:
    said = shell(block("examples/delivery/ab.yaml"))
    assert said.splitlines()[-3:-1] == ["version 1", "version 2"]


def test_a_good_member_of_a_group_goes_back_with_a_bad_one(shell: Shell) -> None:
    shell(block("examples/delivery/group.yaml"))
    ended = {name: canary(shell, name)["status"]["history"][0]["reason"] for name in ("front", "stock")}
    assert ended == {"front": "ChecksFailed", "stock": "GroupRolledBack"}


def test_a_query_of_ones_own_is_answered_by_a_prometheus(home: Home, shell: Shell) -> None:
    needs("prometheus")
    port = str(free_ports(1)[0])
    file = home.folder / "examples" / "delivery" / "errors.yaml"
    file.write_text(file.read_text().replace(":9090", f":{port}"))
    env = {"PATH": f"{programs()[newest()].parent}:/usr/bin:/bin", "KUBECONFIG": str(home.server.kubeconfig)}
    command = [sys.executable, str(EXAMPLE / "prometheus.py"), port]
    with Process(command, log=home.folder / "prometheus.log", env=env) as prometheus:
        prometheus.wait_until(lambda: f"http://127.0.0.1:{port} scrapes" in prometheus.tail(), within=20)
        blocks = [text for _, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)]
        (commands,) = (text for text in blocks if "errors.yaml" in text)
        shell(commands.partition("trimtab canary status")[0])
        shell("kubectl wait canary/shop --for=condition=Ready --timeout=100s")
        run = json.loads(shell("trimtab canary replay shop -o json"))
    asked = [metric for check in run["replayed"] for metric in check["metrics"] if metric["name"] == "errors"]
    assert [metric["verdict"] for metric in asked].count("Pass") >= 3


def test_what_was_made_goes_with_its_owner(shell: Shell) -> None:
    shell("kubectl delete canary --all --timeout=60s; kubectl wait deployment --all --for=delete --timeout=60s")
    assert shell("kubectl get deployments,virtualservices,services -o name").split() in ([], ["service/kubernetes"])
