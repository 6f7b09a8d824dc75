"""kubectl as tests drive it: the programs on this machine, by version, and one of them bound to a server and a namespace."""

import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.needs import TOOLS
from trimtab.testing.peer import ApiServer, read_access

EXAMPLES = Path(__file__).parents[2] / "examples" / "ground"
REFERENCE = "1.32"  # the version whose words the transcripts hold


@functools.cache
def programs() -> dict[str, Path]:
    """Every kubectl here by minor version, oldest first: on the path, beside that one, and built by `make packages`."""
    found: list[Path] = []
    if on_path := shutil.which("kubectl"):
        real = Path(on_path).resolve()
        found = [real, *real.parent.glob("kubectl.1.*")]
    if (TOOLS / "kubectl").exists():
        found.append(TOOLS / "kubectl")
    by_minor = {_minor(path): path for path in found if os.access(path, os.X_OK)}
    return dict(sorted(by_minor.items(), key=lambda item: int(item[0].partition(".")[2])))


def newest() -> str:
    return next(reversed(programs()))


def reference() -> str:
    """The version for transcripts: the reference when it is here, else the newest."""
    return REFERENCE if REFERENCE in programs() else newest()


def _minor(program: Path) -> str:
    answer = subprocess.run(
        [program, "version", "--client", "-o", "json"],
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    version = json.loads(answer.stdout)["clientVersion"]
    return f"{version['major']}.{version['minor'].rstrip('+')}"


class Outcome(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


class Kubectl:
    """One kubectl on one server in one namespace, as the kubeconfig's user or with a token."""

    def __init__(self, version: str, server: ApiServer, namespace: str, home: Path, token: str | None = None) -> None:
        self.version = version
        self.server = server
        self.namespace = namespace
        self._home = home
        self._kubeconfig = server.kubeconfig if token is None else self._with_token(token)

    def __call__(self, *args: str, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
        """The output of a command that must succeed, without its last line break."""
        code, out, err = self.run(*args, stdin=stdin, env=env)
        assert code == 0, f"kubectl {' '.join(args)}: exit code {code}\n{out}{err}\n{self.server.logs()}"
        return out.rstrip("\n")

    def fails(self, *args: str, stdin: str = "", code: int = 1) -> str:
        """What a command that must fail says about it."""
        outcome = self.run(*args, stdin=stdin)
        assert outcome.code == code, f"kubectl {' '.join(args)}: exit code {outcome.code}\n{outcome.out}{outcome.err}"
        return outcome.err.rstrip("\n")

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "-o", "json"))

    def run(self, *args: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Outcome:
        done = subprocess.run(
            self.command(*args),
            input=stdin,
            capture_output=True,
            text=True,
            cwd=EXAMPLES,
            env=self.env(env),
            timeout=60,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """A command that goes on, with its output in a pipe."""
        return subprocess.Popen(
            self.command(*args),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=EXAMPLES,
            env=self.env(),
        )

    def command(self, *args: str) -> list[str]:
        bound = ["--kubeconfig", str(self._kubeconfig), "--namespace", self.namespace]
        first, *rest = args
        return [str(programs()[self.version]), first, *bound, *rest]

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """An environment with nothing of the user's own kubectl in it."""
        return {"PATH": os.environ["PATH"], "HOME": str(self._home), "TZ": "UTC", **(more or {})}

    def as_account(self, token: str) -> "Kubectl":
        """The same, with a token in the place of the kubeconfig's user."""
        return Kubectl(self.version, self.server, self.namespace, self._home, token)

    def _with_token(self, token: str) -> Path:
        # --token is not enough: a client certificate of the kubeconfig would be sent too
        access = read_access(self.server.kubeconfig)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {"server": access.url, "certificate-authority": str(access.ca)}}],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "current-context": "it",
        }
        path = Path(tempfile.mkdtemp(dir=self._home)) / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(document))
        return path
