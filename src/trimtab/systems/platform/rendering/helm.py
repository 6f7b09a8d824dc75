"""Charts become manifests by the `helm` program, in an empty folder, with no cluster, no plugins and bounded time, memory,
files and output, a few at a time. A chart that is here already gets no network; one of a repository is fetched by helm
itself.

Caveats: hooks are left out: nobody would run them in their order. Helm is not a sandbox; a chart's templates can compute
for long, and are then ended.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import msgspec

from trimtab.model.redacted import Redacted
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.rendering.manifests import MAX_TOTAL

TIME = 60.0
GRACE = 5.0
TOGETHER = 4
MEMORY, LARGEST_FILE = 1 << 30, 256 << 20
SAID = 400
REPOSITORY = "source"
NOWHERE = "http://127.0.0.1:9"  # a proxy that never answers
MISSING = "Helm charts are rendered by the helm program: install helm 3 where Trimtab's controllers run"


class ChartFolder(msgspec.Struct, frozen=True):
    """A chart as files, by their paths in it."""

    files: Mapping[str, bytes]


class RemoteChart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart of a Helm repository, or of a registry (oci://)."""

    endpoint: str
    chart: str
    version: str = ""
    username: str = ""
    password: Redacted | None = None
    ca: str = ""
    insecure: bool = False


class Helm:
    """`program` is found on the path when it is not given."""

    def __init__(self, program: str = "", *, time: float = TIME) -> None:
        self._program, self._time = program, time
        self._turns = asyncio.Semaphore(TOGETHER)

    async def template(
        self,
        release: str,
        chart: bytes | ChartFolder | RemoteChart,
        values: Sequence[bytes],
        namespace: str,
        *,
        secret: bool = False,
    ) -> bytes:
        """The YAML of a chart. With `secret` a failure says nothing of what helm said: it may quote values."""
        program = self._program or shutil.which("helm")
        if not program:
            raise Fault("HelmMissing", MISSING)
        async with self._turns:
            return await self._templated(program, release, chart, values, namespace, secret)

    async def _templated(
        self,
        program: str,
        release: str,
        chart: bytes | ChartFolder | RemoteChart,
        values: Sequence[bytes],
        namespace: str,
        secret: bool,
    ) -> bytes:
        remote = isinstance(chart, RemoteChart)
        with tempfile.TemporaryDirectory(prefix="trimtab-helm-") as name:
            home = Path(name)
            arguments = await asyncio.to_thread(_prepared, home, chart)
            for number, content in enumerate(values):
                file = home / f"values-{number}.yaml"
                file.write_bytes(content)
                arguments += ["--values", str(file)]
            env = _environment(home, network=remote)
            if (home / "config" / "repositories.yaml").exists():
                await self._updated(program, env, home)
            command = [program, "template", _release(release), *arguments]
            command += ["--namespace", namespace, "--include-crds", "--no-hooks"]
            return await self._run(command, env, home, secret, again=remote)

    async def _updated(self, program: str, env: Mapping[str, str], home: Path) -> None:
        """The repository's index, afresh. Why that failed, helm says where it writes results."""
        command = [program, "repo", "update", REPOSITORY, "--fail-on-repo-update-fail"]
        code, out, said = await self._ran(command, env, home, again=True)
        if code != 0:
            _, found, why = out.partition(b"Unable to get an update")
            raise Fault("RepositoryUnreadable", f"helm gets no index: {_first(why if found else said, home)}")

    async def _run(
        self, command: Sequence[str], env: Mapping[str, str], home: Path, secret: bool, *, again: bool
    ) -> bytes:
        """What it wrote. `again`: another attempt may fare better, for the network has a part in it."""
        code, out, said = await self._ran(command, env, home, again=again)
        if code != 0:
            told = "it is not shown, for values are sensitive" if secret else _first(said, home)
            raise Fault("HelmFailed", f"helm ended with {code}: {told}", again=again)
        return out

    async def _ran(
        self, command: Sequence[str], env: Mapping[str, str], home: Path, *, again: bool
    ) -> tuple[int, bytes, bytes]:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env),
            cwd=home,
            start_new_session=True,
        )
        confined(process.pid)
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - piped
        reading = asyncio.ensure_future(_bounded(process.stdout, MAX_TOTAL))
        listening = asyncio.ensure_future(_bounded(process.stderr, MAX_TOTAL))
        try:
            async with asyncio.timeout(self._time):
                out, said = await asyncio.gather(reading, listening)
        except TimeoutError:
            raise Fault("HelmFailed", f"helm did not finish within {self._time:g} s", again=again) from None
        finally:
            for task in (reading, listening):
                task.cancel()
            await asyncio.gather(reading, listening, return_exceptions=True)
            code = await _ended(process)
        return code, out, said


def _prepared(home: Path, chart: bytes | ChartFolder | RemoteChart) -> list[str]:
    """Puts the chart there, and says which it is."""
    if isinstance(chart, bytes):
        (home / "chart.tgz").write_bytes(chart)
        return [str(home / "chart.tgz")]
    if isinstance(chart, ChartFolder):
        for name, content in chart.files.items():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise Fault("ManifestsInvalid", f"{name}: leads out of the chart", again=False)
            file = home / "chart" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return [str(home / "chart")]
    return _remote(home, chart)


def _remote(home: Path, chart: RemoteChart) -> list[str]:
    """Credentials go by files that only we can read: arguments are seen by everybody on the machine."""
    extra = ["--version", chart.version] if chart.version else []
    if chart.ca:
        (home / "ca.crt").write_text(chart.ca)
    parts = urlsplit(chart.endpoint)
    if parts.scheme == "oci":
        if chart.password is not None:
            auth = base64.b64encode(f"{chart.username}:{chart.password.reveal()}".encode()).decode()
            _private(home / "registry.json", json.dumps({"auths": {parts.netloc: {"auth": auth}}}))
        extra += ["--ca-file", str(home / "ca.crt")] if chart.ca else []
        extra += ["--insecure-skip-tls-verify"] if chart.insecure else []
        return [f"{chart.endpoint.rstrip('/')}/{chart.chart}", *extra]
    if parts.scheme not in ("https", "http"):
        raise Fault("RepositoryUnfit", f"{parts.scheme}:// is no address of a Helm repository", again=False)
    if parts.scheme == "http" and not chart.insecure and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise Fault("RepositoryUnfit", "http:// shows everything on the way: use https, or set insecure", again=False)
    entry = {
        "name": REPOSITORY,
        "url": chart.endpoint,
        "username": chart.username,
        "password": chart.password.reveal() if chart.password is not None else "",
        "caFile": str(home / "ca.crt") if chart.ca else "",
        "insecure_skip_tls_verify": chart.insecure,
    }
    (home / "config").mkdir()
    _private(home / "config" / "repositories.yaml", json.dumps({"apiVersion": "", "repositories": [entry]}))
    return [f"{REPOSITORY}/{chart.chart}", *extra]


def _environment(home: Path, network: bool) -> dict[str, str]:
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "HELM_CACHE_HOME": str(home / "cache"),
        "HELM_CONFIG_HOME": str(home / "config"),
        "HELM_DATA_HOME": str(home / "data"),
        "HELM_PLUGINS": str(home / "plugins"),
        "HELM_REGISTRY_CONFIG": str(home / "registry.json"),
        "KUBECONFIG": os.devnull,
        "GOMEMLIMIT": str(MEMORY * 3 // 4),  # tidy up before the kernel refuses
    }
    if network:
        names = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
        return env | {name: os.environ[name] for name in names if name in os.environ}
    return env | {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "ALL_PROXY": NOWHERE, "NO_PROXY": ""}


def confined(pid: int) -> None:
    """A chart of a few lines can ask for all the memory there is."""
    with contextlib.suppress(ProcessLookupError, AttributeError):  # it ended already; or this is no Linux
        for limit, most in (
            (resource.RLIMIT_DATA, MEMORY),
            (resource.RLIMIT_FSIZE, LARGEST_FILE),
            (resource.RLIMIT_CORE, 0),
        ):
            _, hard = resource.prlimit(pid, limit)
            top = most if hard == resource.RLIM_INFINITY else min(most, hard)  # nobody may raise it
            resource.prlimit(pid, limit, (top, top))


async def _bounded(stream: asyncio.StreamReader, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(64 << 10):
        size += len(part)
        if size > most:
            raise Fault("HelmFailed", f"helm makes more than {most >> 20} MiB of manifests", again=False)
        parts.append(part)
    return b"".join(parts)


async def _ended(process: asyncio.subprocess.Process) -> int:
    """Ends it and all that it started, if it goes on after its output ended; its pipes are emptied, so that they close."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0 if process.stdout and not process.stdout.at_eof() else GRACE):
            return await process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(64 << 10):
            pass
    return await process.wait()


def _first(said: bytes, home: Path) -> str:
    text = " ".join(said.decode("utf-8", "replace").replace(str(home), "").split())
    return text[:SAID]


def _release(name: str) -> str:
    """Helm's names of releases are shorter than ours."""
    return name[:53].rstrip("-.") or "release"


def _private(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)
