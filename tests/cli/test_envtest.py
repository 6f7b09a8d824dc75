"""The stand-ins of envtest: how they read flags, what they serve, and how they end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.cli.envtest_flags import Flag, WrongFlag, parse, seconds
from trimtab.cli.envtest_install import install
from trimtab.testing.pki import Authority, Pair
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

KNOWN = {"port": Flag("int"), "on": Flag("bool"), "names": Flag("list"), "ttl": Flag("duration"), "dir": Flag("str")}


def test_flags_are_read_as_go_reads_them() -> None:
    read = parse(["--port=1", "--dir", "x", "--on", "--names=a,b", "--names=c", "--port=2"], KNOWN)
    assert (read.text("port"), read.text("dir"), read.truth("on", False)) == ("2", "x", True)
    assert read.listed("names") == ("a", "b", "c")


def test_a_flag_that_is_not_known_is_skipped_with_its_value() -> None:
    read = parse(["--other", "x", "--more=y", "-v", "--on=false"], KNOWN)
    assert read.unknown == ("--other", "--more", "-v")
    assert read.truth("on", True) is False


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--port=x"], 'invalid argument "x" for "--port" flag: must be a whole number'),
        (["--on=maybe"], 'invalid argument "maybe" for "--on" flag: must be true or false'),
        (["--ttl=5"], 'invalid argument "5" for "--ttl" flag: "5" is not a duration, as 1h or 90s'),
        (["--dir"], "flag needs an argument: --dir"),
        (["x"], 'unexpected argument "x"'),
    ],
)
def test_a_wrong_flag_is_named(words: list[str], why: str) -> None:
    with pytest.raises(WrongFlag) as refusal:
        parse(words, KNOWN)
    assert str(refusal.value) == why


def test_durations_are_those_of_go() -> None:
    assert [seconds(text) for text in ("1h0m0s", "90s", "1.5h", "250ms", "0")] == [3600, 90, 5400, 0.25, 0]


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("it's a place") / "assets"
    assert install(place) == 0
    return place


def test_the_folder_has_what_envtest_looks_for(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install(assets) == 0  # again changes nothing
    assert all(os.access(assets / name, os.X_OK) for name in ("kube-apiserver", "etcd"))
    printed = capsys.readouterr().out
    value = subprocess.run(
        ["/bin/sh", "-c", f'{printed}\nprintf %s "$KUBEBUILDER_ASSETS"'], capture_output=True, text=True, check=True
    )
    assert value.stdout == str(assets)


def test_help_tells_envtest_which_flags_there_are(assets: Path) -> None:
    shown = subprocess.run([assets / "kube-apiserver", "--help"], capture_output=True, text=True, check=True).stdout
    assert "\n      --secure-port int" in shown
    assert "insecure-port" not in shown
    assert "--unsafe-no-fsync" in subprocess.run([assets / "etcd", "--help"], capture_output=True, text=True).stdout


def refusal(program: Path, *flags: str) -> str:
    done = subprocess.run([program, *flags], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_what_cannot_be_followed_is_said(assets: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    server = assets / "kube-apiserver"
    assert "--etcd-servers must be specified" in refusal(server)
    assert "nothing answers at" in refusal(server, f"--etcd-servers=http://127.0.0.1:{port}")
    assert "serves http://HOST:PORT only" in refusal(assets / "etcd", "--listen-client-urls=https://127.0.0.1:1")


class Plane:
    """Both stand-ins, started as envtest starts them."""

    def __init__(self, assets: Path, folder: Path, *more: str) -> None:
        self.etcd_port, self.port = free_ports(2)
        self.authority = Authority(folder)
        url = f"http://127.0.0.1:{self.etcd_port}"
        self.etcd = Process([str(assets / "etcd"), f"--listen-client-urls={url}", "--data-dir=x"], log=folder / "etcd")
        self.etcd.wait_until(lambda: self.healthy(), within=20)
        command = [
            str(assets / "kube-apiserver"),
            f"--etcd-servers={url}",
            f"--cert-dir={folder / 'certs'}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--some-day=x",
            f"--client-ca-file={self.authority.certificate}",
            *more,
        ]
        self.server = Process(command, log=folder / "server")
        self.server.wait_until(lambda: self.ask("/readyz") == (200, b"ok"), within=20)

    def healthy(self) -> bool:
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=5)) as connection:
                connection.request("GET", "/health")
                return connection.getresponse().read() == b'{"health":"true","reason":""}'
        except OSError:
            return False

    def ask(self, path: str, token: str = "", pair: Pair | None = None, body: object = None) -> tuple[int, bytes]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=5)
        try:
            with contextlib.closing(connection):
                if body is None:
                    connection.request("GET", path, headers=headers)
                else:
                    headers["Content-Type"] = "application/json"
                    connection.request("POST", path, json.dumps(body), headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
        except OSError:
            return 0, b""

    def stop(self) -> None:
        self.server.stop()
        self.etcd.stop()


@pytest.fixture(scope="module")
def plane(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("plane")
    tokens = folder / "tokens"
    tokens.write_text('secret,admin,1,"system:masters"\n')
    signer = folder / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", signer, "2048"], capture_output=True, check=True)
    plane = Plane(assets, folder, f"--token-auth-file={tokens}", f"--service-account-signing-key-file={signer}")
    yield plane
    plane.stop()


def test_the_server_is_well_for_everyone(plane: Plane) -> None:
    assert [plane.ask(path) for path in ("/healthz", "/livez", "/readyz")] == [(200, b"ok")] * 3


def test_only_who_is_known_and_allowed_gets_in(plane: Plane) -> None:
    assert plane.ask("/api/v1/nodes")[0] == 403
    assert plane.ask("/api/v1/nodes", "wrong")[0] == 401
    assert plane.ask("/api/v1/nodes", "secret")[0] == 200


def test_an_rsa_key_signs_tokens_as_at_a_real_one(plane: Plane) -> None:
    (key,) = json.loads(plane.ask("/openid/v1/jwks", "secret")[1])["keys"]
    assert (key["kty"], key["alg"]) == ("RSA", "RS256")
    path = "/api/v1/namespaces/default/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    assert plane.ask(path, "secret", body=account)[0] == 201
    code, made = plane.ask(f"{path}/robot/token", "secret", body={"spec": {}})
    assert code == 201
    assert plane.ask("/api", json.loads(made)["status"]["token"])[0] == 200


def test_a_certificate_of_the_clients_authority_says_who_asks(plane: Plane) -> None:
    master = plane.authority.client("someone", groups=("system:masters",))
    other = plane.authority.client("nobody")
    assert plane.ask("/api/v1/nodes", pair=master)[0] == 200
    code, body = plane.ask("/api/v1/nodes", pair=other)
    assert (code, 'User "nobody" cannot list' in json.loads(body)["message"]) == (403, True)


def test_the_server_tells_of_itself_as_a_service(plane: Plane) -> None:
    code, body = plane.ask("/api/v1/namespaces/default/services/kubernetes", "secret")
    spec = json.loads(body)["spec"]
    assert (code, spec["clusterIP"], spec["ports"][0]["targetPort"]) == (200, "10.0.0.1", plane.port)


def test_there_is_no_controller_manager(plane: Plane) -> None:
    accounts = json.loads(plane.ask("/api/v1/serviceaccounts", "secret")[1])
    assert "default" not in [account["metadata"]["name"] for account in accounts["items"]]


def test_an_unknown_flag_is_warned_of(plane: Plane) -> None:
    assert "--some-day is not known to this stand-in, and ignored" in plane.server.tail()


def test_both_end_at_once_when_they_are_told(assets: Path, tmp_path: Path) -> None:
    plane = Plane(assets, tmp_path)
    for process in (plane.server, plane.etcd):
        os.kill(process.pid, signal.SIGTERM)
        process.wait_until(lambda process=process: not process.running, within=5)
    assert plane.ask("/readyz") == (0, b"")
