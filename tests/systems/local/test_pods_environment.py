"""What a process finds: its variables and its volumes."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from tests.systems.local.pods_kit import Bench, Document, app, container, deployment, is_ready
from trimtab.model.kubernetes import Deployment
from trimtab.systems.local.pods.expansion import expand

PRINT = "import json, os, sys, time; print(json.dumps([dict(os.environ), sys.argv[1:]]), flush=True); time.sleep(60)"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("x-$(A)-$(B)", "x-1-2"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(NONE)", "$(NONE)"),
        ("$A $", "$A $"),
        ("$(A", "$(A"),
        ("$(C)", "$(A)"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1", "B": "2", "C": "$(A)"}) == expanded


async def test_a_process_has_the_variables_of_its_pod_and_few_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "not yours")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "shop"}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
    await bench.create({**secret, "data": {"token": base64.b64encode(b"hush").decode()}})
    await bench.create({**config, "data": {"colour": "red", "size": "7"}})
    env = [
        {"name": "PLAIN", "value": "one"},
        {"name": "BUILT", "value": "$(PLAIN)-$(POD_NAME)"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
        {"name": "MISSING", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "no", "optional": True}}},
        {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    source = [{"prefix": "SET_", "configMapRef": {"name": "settings"}}]
    async with bench.running():
        await bench.create(deployment("web", container(PRINT, args=["$(PLAIN)", "$$(PLAIN)"], env=env, envFrom=source)))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
        found, words = await printed(bench, pod)
    assert words == ["one", "$(PLAIN)"]
    name = pod["metadata"]["name"]
    expected = {
        "PLAIN": "one",
        "BUILT": f"one-{name}",
        "TOKEN": "hush",
        "COLOUR": "red",
        "ME": "web",
        "ADDRESS": pod["status"]["podIP"],
        "POD_IP": pod["status"]["podIP"],
        "SET_size": "7",
        "HOSTNAME": name,
    }
    assert expected.items() <= found.items()
    assert not {"OURS", "MISSING"} & found.keys()


async def test_a_container_waits_for_a_config_map_that_is_not_there(bench: Bench) -> None:
    env = [{"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}}]
    async with bench.running():
        await bench.create(deployment("web", container(PRINT, env=env)))
        (pod,) = await bench.until(
            lambda pods: pods and app(pods[0]).get("state", {}).get("waiting", {}).get("message")
        )
        assert app(pod)["state"]["waiting"] == {
            "reason": "CreateContainerConfigError",
            "message": 'ConfigMap "settings" is not there',
        }
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
        await bench.create({**config, "data": {"colour": "blue"}})
        await bench.until(lambda pods: is_ready(pods[0]))


async def test_volumes_are_folders_that_variables_name(bench: Bench) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
    await bench.create({**config, "data": {"app.yaml": "colour: red\n"}})
    volumes = [
        {"name": "data", "emptyDir": {}},
        {"name": "my-config", "configMap": {"name": "settings", "items": [{"key": "app.yaml", "path": "a/b.yaml"}]}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "settings"}}]}},
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/mnt/{volume['name']}"} for volume in volumes]
    main = container(PRINT, args=["$(TRIMTAB_VOLUME_MY_CONFIG)/a/b.yaml"], volumeMounts=mounts)
    async with bench.running():
        await bench.create(deployment("web", main, pod={"volumes": volumes}))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
        _, (path,) = await printed(bench, pod)
        folder = bench.pods_folder / pod["metadata"]["uid"] / "volumes"
        assert path == str(folder / "my-config" / "a" / "b.yaml")
        assert (folder / "my-config" / "a" / "b.yaml").read_text() == "colour: red\n"
        assert (folder / "all" / "app.yaml").read_text() == "colour: red\n"
        assert (folder / "data").is_dir()


async def test_a_file_has_a_name_as_long_as_names_can_be_and_one_that_cannot_be_written_is_named(bench: Bench) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "long", "namespace": "shop"}}
    await bench.create({**config, "data": {"k" * 253: "here"}})
    volumes = [{"name": "all", "configMap": {"name": "long"}}]
    wrong = [{"name": "all", "configMap": {"name": "long", "items": [{"key": "k" * 253, "path": "p" * 256}]}}]
    async with bench.running():
        await bench.create(deployment("web", container(PRINT), pod={"volumes": volumes}))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
        folder = bench.pods_folder / pod["metadata"]["uid"] / "volumes"
        assert [path.name for path in (folder / "all").iterdir()] == ["k" * 253]
        await bench.delete(Deployment, "web")
        await bench.until(lambda pods: not pods)
        await bench.create(deployment("bad", container(PRINT), pod={"volumes": wrong}))
        (pod,) = await bench.until(
            lambda pods: pods and app(pods[0]).get("state", {}).get("waiting", {}).get("message")
        )
        assert "cannot be written: File name too long" in app(pod)["state"]["waiting"]["message"]


async def test_a_volume_that_is_not_to_be_had_is_named(bench: Bench) -> None:
    volumes = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
    async with bench.running():
        await bench.create(deployment("web", container(PRINT), pod={"volumes": volumes}))
        (pod,) = await bench.until(
            lambda pods: pods and app(pods[0]).get("state", {}).get("waiting", {}).get("message")
        )
        assert app(pod)["state"]["waiting"]["reason"] == "VolumeNotSupported"


async def printed(bench: Bench, pod: Document) -> Any:
    """The line that the process has printed; it is ready before it has."""
    log = bench.pods_folder / pod["metadata"]["uid"] / "app.log"
    async with asyncio.timeout(10):
        while not log.read_text().endswith("\n"):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
    return json.loads(log.read_text())
