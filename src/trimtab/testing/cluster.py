"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and, when asked for, kube-controller-manager.

`scripts/cluster.sh` builds the binaries. A `RealCluster` is ready when its constructor returns, keeps everything in one
folder (data, certificates, kubeconfig, logs) and ends all its processes in `stop`. Nothing is scheduled or run in it:
there is no kubelet. `python -m trimtab.testing.cluster FOLDER` starts one by hand.
"""

import base64
import contextlib
import http.client
import json
import os
import secrets
import signal
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from trimtab.testing.peer import read_access
from trimtab.testing.pki import Authority, Pair, write_key
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

VERSION = "1.32.13"
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "resourcequota-controller",
    "validatingadmissionpolicy-status-controller",
)


class BinariesMissing(Exception):  # noqa: N818 - it reads as what happened
    """There is no real cluster to start on this machine yet."""


def binaries() -> Path:
    """The folder with etcd, kube-apiserver and kube-controller-manager."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(os.environ.get("TRIMTAB_CLUSTER") or cache / "trimtab" / "cluster" / f"v{VERSION}")
    for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
        if not os.access(home / "bin" / name, os.X_OK):
            raise BinariesMissing(f"{home / 'bin' / name} is missing: run `make cluster`")
    return home / "bin"


class RealCluster:
    """Starts on construction; `durable=False` lets etcd skip fsync, for tests that do not measure."""

    name = "kubernetes"

    def __init__(
        self,
        folder: Path,
        *,
        controllers: Sequence[str] = CONTROLLERS,
        durable: bool = False,
        server_flags: Sequence[str] = (),
    ) -> None:
        self._bin = binaries()
        self._folder = folder
        self._running: dict[str, Process] = {}
        etcd_port, peer_port, port, manager_port = free_ports(4)
        self.url = f"https://127.0.0.1:{port}"
        self.token = secrets.token_hex(16)
        self._authority = Authority(folder)
        self.kubeconfig = self._write_kubeconfig(self._authority.client("admin", groups=("system:masters",)))
        try:
            self._start_etcd(etcd_port, peer_port, durable)
            self._start_server(port, etcd_port, server_flags, accounts="serviceaccount-controller" in controllers)
            if controllers:
                self._start_controllers(manager_port, controllers)
        except BaseException:
            self.stop()
            raise

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._running.items()}

    def logs(self) -> str:
        return "\n".join(f"--- {name}\n{process.tail()}" for name, process in self._running.items())

    def stop(self) -> None:
        """Ends what was started last first; safe to call twice."""
        while self._running:
            _, process = self._running.popitem()
            process.stop(grace=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start_etcd(self, port: int, peer_port: int, durable: bool) -> None:
        url, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        flags: dict[str, object] = {
            "data-dir": self._folder / "etcd",
            "listen-client-urls": url,
            "advertise-client-urls": url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "log-level": "warn",
        }
        etcd = self._start("etcd", "etcd", flags, () if durable else ("--unsafe-no-fsync",))
        etcd.wait_until(lambda: answers_ok(url, "/health"), within=30)

    def _start_server(self, port: int, etcd_port: int, extra: Sequence[str], *, accounts: bool) -> None:
        serving = self._authority.server("kube-apiserver", hosts=("localhost", "kubernetes.default.svc"))
        signing, public = self._folder / "service-account.key", self._folder / "service-account.pub"
        key = ec.generate_private_key(ec.SECP256R1())
        write_key(signing, key)
        public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        tokens = self._folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self.token},token-admin,token-admin,system:masters\n")
        flags: dict[str, object] = {
            "etcd-servers": f"http://127.0.0.1:{etcd_port}",
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": port,
            "tls-cert-file": serving.certificate,
            "tls-private-key-file": serving.key,
            "client-ca-file": self._authority.certificate,
            "token-auth-file": tokens,
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-signing-key-file": signing,
            "service-account-key-file": public,
            "service-cluster-ip-range": "10.0.0.0/24",
            "endpoint-reconciler-type": "none",
        }
        if not accounts:  # nobody would create the default account of a namespace, and no pod could be
            flags["disable-admission-plugins"] = "ServiceAccount"
        server = self._start("server", "kube-apiserver", flags, extra)
        context = read_access(self.kubeconfig).tls()
        server.wait_until(lambda: answers_ok(self.url, "/readyz", context), within=60)

    def _start_controllers(self, port: int, controllers: Sequence[str]) -> None:
        flags: dict[str, object] = {
            "kubeconfig": self.kubeconfig,
            "authentication-kubeconfig": self.kubeconfig,
            "authorization-kubeconfig": self.kubeconfig,
            "bind-address": "127.0.0.1",
            "secure-port": port,
            "cert-dir": self._folder / "controllers",
            "controllers": ",".join(controllers),
            "leader-elect": "false",
            "root-ca-file": self._authority.certificate,
            "service-account-private-key-file": self._folder / "service-account.key",
        }
        manager = self._start("controllers", "kube-controller-manager", flags, ())
        unverified = ssl._create_unverified_context()  # noqa: S323 - it signs its own health endpoint, on loopback
        manager.wait_until(lambda: answers_ok(f"https://127.0.0.1:{port}", "/healthz", unverified), within=60)

    def _start(self, role: str, program: str, flags: dict[str, object], extra: Sequence[str]) -> Process:
        command = [str(self._bin / program), *(f"--{name}={value}" for name, value in flags.items()), *extra]
        process = self._running[role] = Process(command, log=self._folder / f"{program}.log")
        return process

    def _write_kubeconfig(self, admin: Pair) -> Path:
        def data(path: Path) -> str:
            return base64.b64encode(path.read_bytes()).decode()

        cluster = {"server": self.url, "certificate-authority-data": data(self._authority.certificate)}
        user = {"client-certificate-data": data(admin.certificate), "client-key-data": data(admin.key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
            "current-context": "real",
        }
        path = self._folder / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(document, indent=2))  # JSON is YAML
        return path


def answers_ok(url: str, path: str, context: ssl.SSLContext | None = None) -> bool:
    """Whether a GET of the path answers 200 now."""
    host = urlsplit(url).netloc
    connection = (
        http.client.HTTPConnection(host, timeout=5)
        if context is None
        else http.client.HTTPSConnection(host, timeout=5, context=context)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def main() -> None:
    """Runs a cluster in the folder named on the command line until it is interrupted."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with RealCluster(folder) as cluster, contextlib.suppress(KeyboardInterrupt):
        print(f"kubernetes is ready at {cluster.url}  kubeconfig {cluster.kubeconfig}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
