"""Images run by a real podman, from a tiny one of busybox that is made here."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import lacks, needs
from tests.systems.local.pods_kit import PORT, Bench, Document, alive, app, deployment, get, is_ready, pid_of
from trimtab.model.kubernetes import Deployment
from trimtab.systems.local.pods import podman as ours

IMAGE = "localhost/tiny:v1"
PODMAN = {"local.trimtab.dev/runtime": "podman"}


@pytest.fixture
def images(tmp_path: Path) -> Iterator[None]:
    """A store of podman's own with one image. Its paths are short, as podman wants them."""
    needs("podman", "busybox", root=True)
    root = tmp_path / "root"
    for folder in ("bin", "etc", "www"):
        (root / folder).mkdir(parents=True)
    (root / "bin" / "busybox").write_bytes(Path("/bin/busybox").read_bytes())
    (root / "bin" / "busybox").chmod(0o755)
    for program in ("sh", "httpd", "sleep", "cat", "true", "test"):
        (root / "bin" / program).symlink_to("busybox")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    (root / "www" / "index.html").write_text("from the image\n")
    with (
        tempfile.TemporaryDirectory(prefix="pod-", ignore_cleanup_errors=True) as store,
        pytest.MonkeyPatch.context() as patch,
    ):
        storage, settings = Path(store, "storage.conf"), Path(store, "containers.conf")
        storage.write_text(f'[storage]\ndriver = "vfs"\nrunroot = "{store}/run"\ngraphroot = "{store}/graph"\n')
        settings.write_text('[engine]\nlock_type = "file"\nevents_logger = "none"\n')
        patch.setenv("CONTAINERS_STORAGE_CONF", str(storage))
        patch.setenv("CONTAINERS_CONF", str(settings))
        archive = tmp_path / "image.tar"
        subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
        subprocess.run(["podman", "import", archive, IMAGE], check=True, capture_output=True)
        trial = ["podman", *ours.choice(), "run", *ours.flags(), "--rm", "--network=host", IMAGE, "/bin/true"]
        tried = subprocess.run(trial, capture_output=True, text=True, check=False)
        if tried.returncode:
            lacks(f"podman does not run containers here: {tried.stderr.strip()[:200]}")
        yield
        subprocess.run(["podman", "rm", "--all", "--force", "--time=0"], capture_output=True, check=False)


def server(**fields: object) -> Document:
    command = ["/bin/sh", "-c", f'exec /bin/httpd -f -p "$POD_IP:{PORT}" -h "$FOLDER"']
    env = [{"name": "FOLDER", "value": "/www"}]
    probe = {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1}
    base = {"name": "app", "image": IMAGE, "imagePullPolicy": "Never", "command": command, "env": env}
    return {**base, "readinessProbe": probe, **fields}


@pytest.mark.dataplane
async def test_an_image_runs_on_the_pods_address_and_ends_with_it(bench: Bench, images: None) -> None:
    live = {
        "exec": {"command": ["/bin/test", "-d", "/www"]},
        "periodSeconds": 1,
        "failureThreshold": 1,
        "timeoutSeconds": 5,
    }
    async with bench.running():
        await bench.create(deployment("web", server(livenessProbe=live), annotations=PODMAN))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
        assert await get(pod["status"]["podIP"]) == "from the image\n"
        command = Path(f"/proc/{pid_of(pod)}/cmdline").read_bytes()  # noqa: ASYNC240 - of the kernel
        assert b"--env=FOLDER\0" in command
        await bench.delete(Deployment, "web")
        await bench.until(lambda pods: not pods)
        assert not alive(pid_of(pod))
    assert not _containers()


@pytest.mark.dataplane
async def test_volumes_are_mounted_where_the_pod_says(bench: Bench, images: None) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page", "namespace": "shop"}}
    await bench.create({**config, "data": {"index.html": "from the volume\n"}})
    mounts = [{"name": "page", "mountPath": "/srv/page", "readOnly": True}]
    env = [{"name": "FOLDER", "value": "/srv/page"}]
    volumes = [{"name": "page", "configMap": {"name": "page"}}]
    async with bench.running():
        spec = server(volumeMounts=mounts, env=env)
        await bench.create(deployment("web", spec, annotations=PODMAN, pod={"volumes": volumes}))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
        assert await get(pod["status"]["podIP"]) == "from the volume\n"
    assert not _containers()


@pytest.mark.dataplane
async def test_containers_go_on_without_the_controllers(bench: Bench, images: None) -> None:
    async with bench.running(home_ends=False):
        await bench.create(deployment("web", server(), annotations=PODMAN))
        (pod,) = await bench.until(lambda pods: pods and is_ready(pods[0]))
    assert await get(pod["status"]["podIP"]) == "from the image\n"
    async with bench.running():
        await bench.change("web", lambda spec: spec.update(replicas=2))
        pods = await bench.until(lambda pods: len(pods) == 2 and all(map(is_ready, pods)))
        assert pid_of(pod) in [pid_of(each) for each in pods]
    assert not _containers()


async def test_a_machine_without_podman_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    async with bench.running():
        await bench.create(deployment("web", server(), annotations=PODMAN))
        (pod,) = await bench.until(lambda pods: pods and "message" in app(pods[0]).get("state", {}).get("waiting", {}))
        assert app(pod)["state"]["waiting"] == {
            "reason": "PodmanUnavailable",
            "message": "podman does not work here: it is not installed",
        }


def _containers() -> list[str]:
    found = subprocess.run(["podman", "ps", "--all", "--quiet"], capture_output=True, text=True, check=True)
    return found.stdout.split()
