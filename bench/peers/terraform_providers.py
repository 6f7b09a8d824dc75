"""The providers that are measured, each as a folder with a program in it, and how: the first line, memory, plans, schemas.

Peers from PyPI are installed by name into environments of their own, once, below the cache; the one in Go is built from Go
modules by `scripts/go_provider.sh`. Ours is the package that `trimtab terraform install` makes, prepared as it prepares it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import py_compile
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from trimtab import __version__
from trimtab.terraform.certificate import ensure
from trimtab.terraform.install.package import package, put
from trimtab.terraform.install.prepared import interpreter, prepare
from trimtab.terraform.kinds.access import Settings, access
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.catalog import definitions
from trimtab.terraform.kinds.precomputing import precomputed
from trimtab.terraform.plugin.boot import COOKIE, COOKIE_VALUE
from trimtab.testing.embedded import TrimtabServer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCHEMAS = 60


class Peer(NamedTuple):
    name: str
    program: Path
    resource: str
    """A line of HCL that plans one resource, but for how many."""

    @property
    def type(self) -> str:
        return self.program.name.removeprefix("terraform-provider-").partition("_v")[0]


class Start(NamedTuple):
    seconds: list[float]
    memory: float
    """Resident bytes a second after the line: what serves is loaded by then."""


THING = 'resource "small_thing" "it" {\n  count = COUNT\n  name  = "thing ${count.index}"\n}\n'
STATIC = 'resource "time_static" "it" {\n  count    = COUNT\n  triggers = { name = "thing ${count.index}" }\n}\n'


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trimtab" / "bench"


def environment_of(package_name: str) -> Path:
    """A virtual environment with one package of PyPI in it, and what that one needs."""
    folder = cache() / f"terraform-{package_name}"
    python = folder / "bin" / "python"
    if not (folder / ".done").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", package_name], check=True)
        (folder / ".done").touch()
    return python


def go_program() -> Path:
    done = subprocess.run([str(ROOT / "scripts" / "go_provider.sh")], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip().splitlines()[-1])


def ours(folder: Path) -> tuple[Peer, Peer]:
    """The provider itself, and the small one on the same framework."""
    made = package(__version__)
    put(made, folder / "package")
    home = folder / "home"
    code = prepare(made, home)
    ensure(str(home / "identity"))
    os.environ["TRIMTAB_TERRAFORM_HOME"] = str(home)
    small = folder / "small"
    _script(
        small / "terraform-provider-small", f"#!{interpreter()} -ISB", _SMALL.format(code=str(code), here=str(small))
    )
    compiled = small / "terraform_small.py"
    compiled.write_bytes((HERE / "terraform_small.py").read_bytes())
    py_compile.compile(str(compiled), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    return Peer("trimtab", folder / "package" / made.program, ""), Peer(
        "trimtab", small / "terraform-provider-small", THING
    )


_SMALL = """\
import sys
sys.path[:0] = [{code!r}, {here!r}]
from terraform_small import main
main()
"""


def with_tf(folder: Path) -> Peer:
    program = folder / "tf" / "terraform-provider-small"
    _script(program, f"#!{environment_of('tf')}", (HERE / "terraform_tf.py").read_text())
    return Peer("tf", program, THING)


def with_pyvider(folder: Path) -> Peer:
    """Bare, without a resource of its own: it finds components among installed packages only. Its start is measured."""
    program = folder / "pyvider" / "terraform-provider-pyvider"
    _script(program, f"#!{environment_of('pyvider')}", "from pyvider.cli.__main__ import main\n\nmain()\n")
    return Peer("pyvider", program, "")


def in_go() -> Peer:
    return Peer("Go", go_program(), STATIC)


def _script(path: Path, first: str, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n{text}")
    path.chmod(0o755)


# -- the first line ------------------------------------------------------------------------------------------------------


def starts(peers: list[Peer], rounds: int, folder: Path) -> dict[str, Start]:
    """From the start of the process to its line; in turns, so that a busy moment meets all alike."""
    certificate = _certificate(folder)
    seconds: dict[str, list[float]] = {peer.name: [] for peer in peers}
    memory: dict[str, float] = {}
    for turn in range(rounds + 1):
        for peer in peers:
            began = time.perf_counter()
            with _started(peer, certificate, folder) as process:
                line = process.stdout.readline() if process.stdout else b""
                took = time.perf_counter() - began
                if line.count(b"|") < 4:
                    raise RuntimeError(f"{peer.name} did not start: {line!r}")
                if turn:
                    seconds[peer.name].append(took)
                else:  # the first one warms what there is to warm, and shows what it weighs
                    time.sleep(1)
                    memory[peer.name] = _resident(process.pid)
    return {peer.name: Start(seconds[peer.name], memory[peer.name]) for peer in peers}


@contextlib.contextmanager
def _started(peer: Peer, certificate: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    elsewhere = ("KUBECONFIG", "TRIMTAB_KUBECONFIG", "TRIMTAB_ENDPOINT", "TRIMTAB_TOKEN")
    environ = {  # of a desk where nothing else is set up: no server is asked
        **{name: value for name, value in os.environ.items() if name not in elsewhere},
        "HOME": str(folder),
        COOKIE: COOKIE_VALUE,
        "PLUGIN_PROTOCOL_VERSIONS": "5,6",
        "PLUGIN_MIN_PORT": "10000",
        "PLUGIN_MAX_PORT": "25000",
        "PLUGIN_CLIENT_CERT": certificate,
    }
    process = subprocess.Popen(
        [peer.program], env=environ, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()  # what it put beside its socket goes with it
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _certificate(folder: Path) -> str:
    text = Path(ensure(str(folder / "client")).path).read_text()
    return text[: text.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n"


def _resident(pid: int) -> float:
    """Of a process and of those that it started."""
    total = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            if str(pid) in (fields["Pid"].strip(), fields["PPid"].strip()):
                total += 1024 * float(fields.get("VmRSS", "0 kB").split()[0])
    return total


# -- plans ---------------------------------------------------------------------------------------------------------------


def plans(peers: list[Peer], count: int, rounds: int, folder: Path) -> dict[str, float]:
    """The fastest `terraform plan` of so many new resources, in seconds."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for peer in peers:
            work = folder / f"plan-{peer.name}-{count}"
            work.mkdir(exist_ok=True)
            took = _plan(peer, count, work)
            best[peer.name] = min(took, best.get(peer.name, took))
    return best


def _plan(peer: Peer, count: int, work: Path) -> float:
    source = f"example.com/bench/{peer.type}"
    (work / "main.tf").write_text(
        f'terraform {{\n  required_providers {{ {peer.type} = {{ source = "{source}" }} }}\n}}\n'
        + peer.resource.replace("COUNT", str(count))
    )
    settings = work / "terraform.rc"
    override = f'  dev_overrides {{ "{source}" = "{peer.program.parent}" }}\n  direct {{}}\n'
    settings.write_text(f"disable_checkpoint = true\nprovider_installation {{\n{override}}}\n")
    environ = {**os.environ, "TF_CLI_CONFIG_FILE": str(settings), "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    began = time.perf_counter()
    done = subprocess.run(
        ["terraform", "plan", "-no-color"], cwd=work, env=environ, capture_output=True, text=True, check=False
    )
    took = time.perf_counter() - began
    if f"{count} to add" not in done.stdout:
        raise RuntimeError(f"{peer.name}: {done.stdout}{done.stderr}")
    return took


# -- schemas -------------------------------------------------------------------------------------------------------------


class Answered(NamedTuple):
    first: float
    """The median, in seconds, of the first answer to GetProviderSchema, asked for as soon as there is a connection."""
    seconds: float
    """Of further ones."""
    size: int
    schemas: int


def schemas(provider: Peer, rounds: int, folder: Path) -> Answered:
    """Sixty resources, made of the kinds of a server, the largest first; Google's gRPC asks over mutual TLS."""
    with tempfile.TemporaryDirectory() as place, TrimtabServer(Path(place)) as server:
        api = Api(access(Settings(kubeconfig=str(server.kubeconfig)), {}))
        known = [one for one in definitions(api.get) if not one.branch]
        api.close()
    known.sort(key=lambda one: len(str(one.root)), reverse=True)
    chosen: list[Any] = []
    for number in range(SCHEMAS):
        one = known[number % len(known)]
        chosen.append(replace(one, name=f"{one.name}_{number}", plural_name=f"{one.plural_name}_{number}_all"))
    path = folder / "kinds"
    path.write_bytes(precomputed(chosen))
    os.environ["TRIMTAB_TERRAFORM_KINDS"] = str(path)
    first, again, size = [], [], 0
    for _ in range(rounds):
        with _channel(provider, folder) as channel:
            ask = channel.unary_unary("/tfplugin6.Provider/GetProviderSchema")
            for took in (first, again, again):
                began = time.perf_counter()
                size = len(ask(b""))
                took.append(time.perf_counter() - began)
    return Answered(statistics.median(first), statistics.median(again), size, len(chosen))


@contextlib.contextmanager
def _channel(provider: Peer, folder: Path) -> Iterator[grpc.Channel]:
    pem = Path(ensure(str(folder / "client")).path).read_bytes()
    with _started(provider, _certificate(folder), folder) as process:
        line = process.stdout.readline().decode() if process.stdout else ""
        _, _, _, where, _, certificate = line.strip().split("|")[:6]
        der = base64.b64decode(certificate + "=" * (-len(certificate) % 4))
        key = pem[pem.index(b"-----BEGIN PRIVATE KEY") :]
        credentials = grpc.ssl_channel_credentials(
            ssl.DER_cert_to_PEM_cert(der).encode(), key, _certificate(folder).encode()
        )
        options = [("grpc.max_receive_message_length", -1), ("grpc.ssl_target_name_override", "localhost")]
        with grpc.secure_channel(f"unix:{where}", credentials, options=options) as channel:
            grpc.channel_ready_future(channel).result(timeout=30)
            yield channel
