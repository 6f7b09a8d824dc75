"""Waiting until an object is what it declares: by its conditions, for so long and no longer, and never with its state lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.binary import binary
from tests.terraform.kinds import water
from tests.terraform.kinds.conftest import Waters
from tests.terraform.kinds.others import changed
from tests.terraform.kinds.scripted import scripted
from tests.terraform.kinds.terraforming import Terraform, attached
from tests.terraform.plugin.running import sentence, surroundings
from trimtab.terraform.kinds import waiting
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow

IT = "trimtab_water_buoy.it"


def buoy(name: str, depth: int = 1, **more: Any) -> dict[str, Any]:
    return {"trimtab_water_buoy": {"it": {"metadata": {"name": name}, "spec": {"depth": depth}, **more}}}


@pytest.mark.row(62)
def test_apply_ends_when_the_object_is_ready(sea: Terraform, waters: Waters) -> None:
    with ThreadPoolExecutor() as pool:
        applying = pool.submit(sea.apply, buoy("ready"))
        water.seen(waters.api, "ready")
        water.tell(waters.api, "ready", "Ready", "False", "sinking")
        water.tell(waters.api, "ready", "Ready", "True", "floats")
        applying.result(timeout=60)
    assert sea.state(IT)["status"]["conditions"]["Ready"]["message"] == "floats"
    sea.unchanged()


@pytest.mark.row(62)
@pytest.mark.row(60)
def test_a_failure_is_told_and_the_resource_is_known_and_tainted(sea: Terraform, waters: Waters) -> None:
    with ThreadPoolExecutor() as pool:
        applying = pool.submit(sea.apply, buoy("leaky"), fails=True)
        water.seen(waters.api, "leaky")
        water.tell(waters.api, "leaky", "Failed", "True", "it has a hole")
        told = applying.result(timeout=60)
    assert "Buoy default/leaky has failed" in told
    assert "it has a hole" in told
    assert _is_tainted(sea)


@pytest.mark.row(62)
@pytest.mark.row(60)
def test_a_time_out_leaves_a_resource_that_is_known_and_tainted(sea: Terraform, waters: Waters) -> None:
    told = sea.apply(buoy("slow", timeouts={"create": "500ms"}), fails=True)
    assert "Buoy default/slow took too long to be ready" in told
    assert "no controller has seen it yet" in told
    assert "`timeouts`" in told
    assert waters.api.get(water.path("slow"))["spec"]["depth"] == 1
    assert _is_tainted(sea)
    told = sea.plan(buoy("slow", wait=False))
    assert "is tainted, so" in told
    assert "must be replaced" in told


@pytest.mark.row(62)
def test_interrupting_ends_the_wait_and_keeps_the_state(sea: Terraform, waters: Waters) -> None:
    sea.write(buoy("interrupted"))
    told = _interrupted(sea, lambda: water.seen(waters.api, "interrupted"))
    assert "Interrupted while waiting for Buoy default/interrupted to be ready" in told
    assert _is_tainted(sea)


def test_interrupting_ends_a_request_that_nobody_answers(sea: Terraform) -> None:
    asked = threading.Event()
    with scripted(lambda *_: asked.set()) as server:
        sea.provider = {"endpoint": server.url, "token": "t"}
        sea.write(buoy("unanswered"))
        told = _interrupted(sea, lambda: asked.wait(60))
    assert "Interrupted: Buoy default/unanswered cannot be created" in told
    assert sea.addresses() == []


def _interrupted(sea: Terraform, when: Callable[[], object]) -> str:
    """What an apply says that is interrupted as soon as `when` returns."""
    process = subprocess.Popen(
        [binary(), "apply", "-auto-approve", "-no-color"],
        cwd=sea.folder,
        env={**surroundings(sea.folder), **sea.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        when()
        os.kill(process.pid, signal.SIGINT)
        told, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    return sentence(told)


def test_an_update_that_times_out_keeps_what_was_written(sea: Terraform, waters: Waters) -> None:
    sea.apply(buoy("updated", wait=False))
    water.tell(waters.api, "updated", "Ready", "True")
    told = sea.apply(buoy("updated", depth=2, timeouts={"update": "500ms"}), fails=True)
    assert "generation 2 was not observed yet" in told
    assert sea.state(IT)["spec"]["depth"] == 2
    sea.unchanged(buoy("updated", depth=2, timeouts={"update": "500ms"}))


@pytest.mark.row(62)
def test_a_deletion_waits_for_finalizers_and_says_which_it_waited_for(sea: Terraform, waters: Waters) -> None:
    _made(sea, waters, "held", timeouts={"delete": "500ms"})
    path = water.path("held")
    changed(waters.api, path, {"metadata": {"finalizers": ["example.com/anchor"]}})
    told = sea.run("destroy", "-auto-approve", fails=True)
    assert "Buoy default/held took too long to be gone" in told
    assert "example.com/anchor" in told
    assert "`wait = false`" in told
    assert sea.addresses() == [IT]
    told = sea.plan()
    assert "Buoy default/held is being deleted" in told
    assert "example.com/anchor" in told
    changed(waters.api, path, {"metadata": {"finalizers": []}})
    sea.destroy()
    assert waters.api.find(path) is None


def test_a_deletion_that_nobody_waits_for_is_begun_and_left(sea: Terraform, waters: Waters) -> None:
    sea.apply(buoy("left", wait=False, timeouts={"create": "500ms", "delete": "500ms"}))
    path = water.path("left")
    changed(waters.api, path, {"metadata": {"finalizers": ["example.com/anchor"]}})
    sea.destroy()
    assert waters.api.get(path)["metadata"]["deletionTimestamp"]
    assert sea.addresses() == []
    told = sea.apply(buoy("left", wait=False, timeouts={"create": "500ms"}), fails=True)
    assert "Buoy default/left took too long to be gone" in told
    assert "`wait = false`" not in told
    with ThreadPoolExecutor() as pool:
        applying = pool.submit(sea.apply, buoy("left", wait=False))
        changed(waters.api, path, {"metadata": {"finalizers": []}})
        applying.result(timeout=60)
    assert "deletionTimestamp" not in waters.api.get(path)["metadata"]


def test_a_deletion_ends_when_the_last_finalizer_goes(sea: Terraform, waters: Waters) -> None:
    _made(sea, waters, "let-go")
    path = water.path("let-go")
    changed(waters.api, path, {"metadata": {"finalizers": ["example.com/anchor"]}})
    with ThreadPoolExecutor() as pool:
        destroying = pool.submit(sea.destroy)
        _until_deleted(waters, "let-go")
        changed(waters.api, path, {"metadata": {"finalizers": []}})
        destroying.result(timeout=60)
    assert waters.api.find(path) is None


def test_what_nobody_reconciles_is_waited_for_a_while_only(
    sea: Terraform, waters: Waters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "FIRST_WORD", 0.5)
    told = sea.apply(buoy("alone"))
    assert "Nobody tells how Buoy default/alone does" in told
    sea.unchanged()


def test_progress_is_in_the_log(sea: Terraform, waters: Waters, capfd: pytest.CaptureFixture[str]) -> None:
    sea.apply(buoy("logged", timeouts={"create": "500ms"}), fails=True)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    waits = [line for line in lines if line["@message"] == "waiting for Buoy default/logged"]
    assert waits
    assert waits[0]["state"] == "InProgress"
    assert waits[0]["reason"] == "no controller has seen it yet"


def _made(tf: Terraform, waters: Waters, name: str, **more: Any) -> None:
    """One that is ready, and waited for."""
    tf.apply(buoy(name, wait=False))
    water.tell(waters.api, name, "Ready")
    tf.apply(buoy(name, **more))


def _is_tainted(tf: Terraform) -> bool:
    state = json.loads(tf.run("show", "-json"))
    return [one.get("tainted") for one in state["values"]["root_module"]["resources"]] == [True]


def _until_deleted(waters: Waters, name: str) -> None:
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}"}
    collection = f"/apis/{water.GROUP}/v1/namespaces/default/buoys"
    for event in waters.api.watch(collection, query, within=30, cancelled=threading.Event()):
        if event.object["metadata"].get("deletionTimestamp"):
            return
    raise AssertionError("nobody deleted it")


def test_a_server_that_dies_in_the_middle_leaves_a_resource_that_is_known(tmp_path: Path) -> None:
    folder, work = tmp_path / "server", tmp_path / "work"
    folder.mkdir()
    work.mkdir()
    flags = ("--systems", "discovery")
    with TrimtabServer(folder, flags=flags) as server:
        waters = Waters(server, folder)
        with attached(work, waters.kinds, waters.kubeconfig, "default") as tf, ThreadPoolExecutor() as pool:
            applying = pool.submit(tf.apply, buoy("orphan"), fails=True)
            water.seen(waters.api, "orphan")
            server.kill()
            told = applying.result(timeout=100)
            assert "The server cannot be reached" in told
            assert _is_tainted(tf)
        waters.api.close()
