"""controller-runtime's own tests on our stand-ins and on the real kube-apiserver and etcd, side by side.

    python -m bench.envtest [PACKAGE …]

It takes controller-runtime from the Go module cache, by name, copies it into a temporary folder, compiles the tests of each
package once, and runs them with `KUBEBUILDER_ASSETS` set to each of the two; ginkgo counts what passed. It also measures
how long each control plane takes from the start of etcd until `/readyz` says ok. Real binaries are those of `make cluster`;
without them only ours are run.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from trimtab.cli.envtest_install import install
from trimtab.testing.cluster import BinariesMissing, binaries
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

MODULE, VERSION = "sigs.k8s.io/controller-runtime", "v0.20.4"
PACKAGES = ("client", "cache", "builder", "cluster", "controller", "controller/controllerutil", "handler", "manager",
            "source", "webhook", "envtest", "internal/controller", "internal/recorder")  # fmt: skip
PATIENCE = 900


class Outcome(NamedTuple):
    """One package on one control plane."""

    passed: int
    total: int
    seconds: float
    failed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.passed} of {self.total}, {self.seconds:.1f} s"


def source(folder: Path) -> Path:
    """A copy of the module that may be written to."""
    found = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], capture_output=True, check=True)
    target = folder / "module"
    shutil.copytree(json.loads(found.stdout)["Dir"], target)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | (0o700 if path.is_dir() or path.suffix == ".sh" else 0o600))
    return target


def compiled(module: Path, package: str) -> Path:
    binary = module.parent / f"{package.replace('/', '_')}.test"
    subprocess.run(["go", "test", "-c", "-o", str(binary), f"./pkg/{package}"], cwd=module, check=True)
    return binary


def outcome(module: Path, package: str, binary: Path, assets: Path) -> Outcome:
    """Runs one package's tests; ginkgo's report says how they went."""
    report = module.parent / "report.json"
    report.unlink(missing_ok=True)
    started = time.perf_counter()
    done = subprocess.run(
        [str(binary), f"-ginkgo.json-report={report}"],
        cwd=module / "pkg" / package,
        env={**os.environ, "KUBEBUILDER_ASSETS": str(assets)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    elapsed = time.perf_counter() - started
    if not report.exists():
        raise RuntimeError(f"{package} made no report:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    specs = [spec for suite in json.loads(report.read_bytes()) for spec in suite["SpecReports"] or ()]
    ran = [spec for spec in specs if spec["LeafNodeType"] == "It" and spec["State"] not in ("pending", "skipped")]
    bad = [spec for spec in specs if spec["State"] not in ("passed", "pending", "skipped")]
    names = tuple(" / ".join((*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"])) for spec in bad)
    return Outcome(sum(spec["State"] == "passed" for spec in ran), len(ran), elapsed, names)


def real_assets(folder: Path) -> Path | None:
    """The folder of the real ones, with kubectl; None when they were not built."""
    try:
        home = binaries()
    except BinariesMissing:
        return None
    place = folder / "real"
    place.mkdir()
    for name in ("etcd", "kube-apiserver"):
        (place / name).symlink_to(home / name)
    if kubectl := shutil.which("kubectl"):
        (place / "kubectl").symlink_to(kubectl)
    return place


def start_to_ready(assets: Path, folder: Path) -> float:
    """Seconds from the start of etcd until the API server is ready, with the flags that envtest gives."""
    folder.mkdir()
    etcd_port, peer_port, port = free_ports(3)
    authority = Authority(folder)
    pair = authority.server("apiserver", hosts=("127.0.0.1", "localhost"))
    signer = authority.client("sa")
    url = f"http://127.0.0.1:{etcd_port}"
    peer = f"http://127.0.0.1:{peer_port}"
    started = time.perf_counter()
    etcd = [
        str(assets / "etcd"),
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--data-dir={folder / 'data'}",
        "--unsafe-no-fsync=true",
    ]
    server = [
        str(assets / "kube-apiserver"),
        f"--etcd-servers={url}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={pair.certificate}",
        f"--tls-private-key-file={pair.key}",
        f"--client-ca-file={authority.certificate}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        f"--service-account-issuer=https://127.0.0.1:{port}/",
        f"--service-account-key-file={signer.certificate}",
        f"--service-account-signing-key-file={signer.key}",
    ]
    with Process(etcd, log=folder / "etcd.log") as store:
        store.wait_until(lambda: _says(http.client.HTTPConnection("127.0.0.1", etcd_port), "/health"), within=60)
        with Process(server, log=folder / "server.log") as api:
            context = ssl._create_unverified_context()
            api.wait_until(
                lambda: _says(http.client.HTTPSConnection("127.0.0.1", port, context=context), "/readyz"), within=120
            )
            return time.perf_counter() - started


def _says(connection: http.client.HTTPConnection, path: str) -> bool:
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except OSError:
            return False


def compared(packages: Sequence[str]) -> Iterator[tuple[str, Outcome, Outcome | None]]:
    """For each package: ours, and the real ones beside it."""
    with tempfile.TemporaryDirectory(prefix="trimtab-envtest-") as name:
        folder = Path(name)
        if install(folder / "ours"):
            raise SystemExit(1)
        real = real_assets(folder)
        module = source(folder)
        for index, assets in enumerate((folder / "ours", real)):
            if assets is not None:
                best = min(start_to_ready(assets, folder / f"start-{index}-{turn}") for turn in range(3))
                print(f"{'ours' if index == 0 else 'real'}: {best:.2f} s from start to ready", flush=True)
        for package in packages:
            binary = compiled(module, package)
            ours = outcome(module, package, binary, folder / "ours")
            yield package, ours, outcome(module, package, binary, real) if real is not None else None


def main() -> int:
    behind = False
    for package, ours, real in compared(sys.argv[1:] or PACKAGES):
        print(f"pkg/{package}: ours {ours}; real {real or 'not built'}", flush=True)
        for title in ours.failed:
            behind = True
            print(f"  not on ours: {title}")
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
