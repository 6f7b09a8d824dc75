"""The launcher of the real control plane, which every comparison stands on."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.testing.cluster import BinariesMissing, RealCluster, answers_ok, binaries
from trimtab.testing.peer import read_access
from trimtab.testing.processes import PeerFailed, Process

pytestmark = pytest.mark.cluster


def test_it_is_ready_when_the_constructor_returns(real_cluster: RealCluster) -> None:
    assert answers_ok(real_cluster.url, "/readyz", read_access(real_cluster.kubeconfig).tls())


def test_its_kubeconfig_is_an_administrators(real_cluster: RealCluster) -> None:
    command = ["kubectl", "--kubeconfig", real_cluster.kubeconfig, "auth", "can-i", "*", "*"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "yes"


def test_it_says_which_version_it_is(real_cluster: RealCluster) -> None:
    command = ["kubectl", "--kubeconfig", real_cluster.kubeconfig, "version", "-o", "json"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert answer["serverVersion"]["gitVersion"] == "v1.32.13"


def test_missing_binaries_name_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIMTAB_CLUSTER", str(tmp_path))
    with pytest.raises(BinariesMissing, match="run `make cluster`"):
        binaries()


def test_a_process_that_ends_before_it_is_ready_shows_its_log(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", "print('no such luck'); raise SystemExit(3)"], log=tmp_path / "log")
    with pytest.raises(PeerFailed, match=r"ended with code 3:\nno such luck"):
        process.wait_until(lambda: False, within=30)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_process_ends_with_the_one_that_started_it_even_when_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys; from trimtab.testing.processes import Process;"
        "print(Process(['sleep', '600'], log=pathlib.Path(sys.argv[1])).pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "log"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            assert ended(child)
        finally:
            os.close(child)


def ended(pidfd: int) -> bool:
    readable, _, _ = select.select([pidfd], [], [], 10)
    return bool(readable)
