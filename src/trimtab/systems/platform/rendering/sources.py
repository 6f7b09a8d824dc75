"""Gets the files of an artifact, wherever they are, and makes manifests of them. The result is kept for as long as what it
was made from does not change."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from trimtab.client.protocol import Client
from trimtab.model.errors import StatusError
from trimtab.model.hub import File
from trimtab.model.kubernetes import Secret
from trimtab.runtime.objects import uncached
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Addon, Artifact, Workload
from trimtab.systems.platform.kinds.artifact import HelmInRepo, YAMLInRepo
from trimtab.systems.platform.rendering.helm import ChartFolder, Helm, RemoteChart
from trimtab.systems.platform.rendering.manifests import MAX_FILE, MAX_TOTAL, Manifests, Unfit, read
from trimtab.systems.platform.resolving import resolve_repository

ReadFile = Callable[[Addon | Workload, str], Awaitable[bytes]]
"""The bytes of a file of a resource."""

KEPT, KEPT_BYTES = 256, 64 << 20
EXACT = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?")
MAX_CHART = 16 << 20
SUFFIXES = (".yaml", ".yml", ".json")


class Sources:
    """Manifests of addons and workloads. `folder` is where clones may be."""

    def __init__(self, read_file: ReadFile, folder: Path, helm: Helm) -> None:
        self._read_file, self._folder, self._helm = read_file, folder, helm
        self._kept: dict[bytes, tuple[Manifests, int]] = {}

    async def manifests(self, client: Client, owner: Addon | Workload, namespace: str) -> Manifests:
        """Fault when there is no getting them, or they are none."""
        artifact = owner.spec.artifact
        if source := artifact.yaml_in_repo:
            files, commit = await self._in_repo(client, owner, source)
            key = ("yaml", namespace, commit, sorted(files.items()))
            return await self._once(key, lambda: _parsed(files, namespace, commit))
        if artifact.uploaded_yaml:
            files = await self._uploaded(owner, artifact.uploaded_yaml.paths)
            return await self._once(("yaml", namespace, sorted(files.items())), lambda: _parsed(files, namespace))
        return await self._charted(client, owner, artifact, namespace)

    async def _charted(self, client: Client, owner: Addon | Workload, artifact: Artifact, namespace: str) -> Manifests:
        secret = any(file.sensitive for file in artifact.files())
        chart: bytes | ChartFolder | RemoteChart
        revision = ""
        if uploaded := artifact.uploaded_helm:
            chart = await self._file(owner, uploaded.chart_path, MAX_CHART)
            values = await self._uploaded(owner, uploaded.values_paths)
            order = [file.name for file in uploaded.values_paths]
        elif source := artifact.helm_in_repo:
            values = await self._uploaded(owner, source.values_paths)
            order = [file.name for file in source.values_paths]
            if source.path:
                chart, revision = await self._chart_in_git(client, owner, source)
            else:
                chart = await _remote_chart(client, owner, source)
        else:
            raise Fault("ArtifactInvalid", "spec.artifact: exactly one source must be set", again=False)

        async def make() -> Manifests:
            text = await self._helm.template(
                owner.name, chart, [values[name] for name in order], namespace, secret=secret
            )
            return await _parsed({"chart": text}, namespace, revision)

        if isinstance(chart, RemoteChart) and not EXACT.fullmatch(chart.version):
            return await make()  # whatever is newest there, or newest in a range
        return await self._once(("helm", owner.name, namespace, _told(chart), [values[name] for name in order]), make)

    async def _once(self, key: Any, make: Callable[[], Awaitable[Manifests]]) -> Manifests:
        digest = hashlib.sha256(msgspec.msgpack.encode(key)).digest()
        if digest in self._kept:
            return self._kept[digest][0]
        made = await make()
        size = await asyncio.to_thread(lambda: len(msgspec.json.encode(made.documents)))
        self._kept[digest] = made, size
        while len(self._kept) > KEPT or sum(each for _, each in self._kept.values()) > KEPT_BYTES:
            self._kept.pop(next(iter(self._kept)))
        return made

    async def _uploaded(self, owner: Addon | Workload, files: tuple[File, ...]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for file in files:
            found[file.name] = await self._file(owner, file, MAX_FILE)
            if sum(map(len, found.values())) > MAX_TOTAL:
                raise Fault(
                    "ManifestsInvalid", f"the files are larger than {MAX_TOTAL >> 20} MiB together", again=False
                )
        return found

    async def _file(self, owner: Addon | Workload, file: File, most: int) -> bytes:
        content = await self._read_file(owner, file.name)
        if len(content) > most:
            raise Fault("ManifestsInvalid", f"{file.name}: is larger than {most >> 20} MiB", again=False)
        if file.digest and file.digest != f"sha256:{hashlib.sha256(content).hexdigest()}":
            raise Fault("ArtifactChanged", f"file {file.name} is not the one that this version of {owner.name} names")
        return content

    async def _in_repo(
        self, client: Client, owner: Addon | Workload, source: YAMLInRepo
    ) -> tuple[dict[str, bytes], str]:
        commit, files = await self._tree(client, owner, source.repository, source.revision, source.paths)
        chosen = {
            name: content
            for name, content in files.items()
            if name.endswith(SUFFIXES) or name in {path.strip("/") for path in source.paths}
        }
        if not chosen:
            raise Fault("PathMissing", f"nothing at {', '.join(source.paths[:5])} in {source.repository} is YAML")
        return chosen, commit

    async def _chart_in_git(
        self, client: Client, owner: Addon | Workload, source: HelmInRepo
    ) -> tuple[ChartFolder, str]:
        path = (source.path or "").strip("/")
        commit, files = await self._tree(client, owner, source.repository, source.revision or "HEAD", (path,))
        prefix = f"{path}/" if path not in ("", ".") else ""
        inside = {name.removeprefix(prefix): content for name, content in files.items() if name.startswith(prefix)}
        if "Chart.yaml" not in inside:
            raise Fault("PathMissing", f"{path} in {source.repository} is no chart: it has no Chart.yaml")
        return ChartFolder(files=inside), commit

    async def _tree(
        self, client: Client, owner: Addon | Workload, name: str, revision: str, paths: tuple[str, ...]
    ) -> tuple[str, dict[str, bytes]]:
        """The commit, and the bytes of all plain files at or below the paths."""
        from trimtab.runtime.git import Mirror, Remote, RemoteError

        document = await resolve_repository(client, name, owner.namespace)
        spec, place = document.get("spec") or {}, (document.get("metadata") or {}).get("namespace", "")
        if spec.get("type", "git") != "git":
            raise Fault("RepositoryUnfit", f"Repository {name} is of type {spec.get('type')}: this needs git")
        endpoint = str(spec.get("endpoint") or "")
        remote = Remote(url=endpoint, access=await _access(client, spec, place))
        folder = self._folder / hashlib.sha256(f"{place}\0{name}\0{endpoint}".encode()).hexdigest()[:32]
        try:
            mirror = Mirror(folder, remote)
            commit = (await mirror.fetch(revision))[revision]
            found = {}
            for path in paths:
                listed = await mirror.files(commit, "" if path in (".", "") else path.strip("/"))
                found.update({each: file for each, file in listed.items() if file.regular})
            if not found:
                raise Fault("PathMissing", f"{name} at {revision} has nothing at {', '.join(paths[:5])}")
            contents = await mirror.read([file.oid for file in found.values()], max_bytes=MAX_TOTAL)
        except RemoteError as error:
            raise Fault("RepositoryUnreadable", f"Repository {name}: {error}", again=error.again) from None
        except ValueError as error:  # no branch and no file can be called so
            raise Fault("PathMissing", f"Repository {name} cannot have that: {error}", again=False) from None
        return commit, {each: contents[file.oid] for each, file in found.items()}


async def _parsed(files: dict[str, bytes], namespace: str, revision: str = "") -> Manifests:
    try:
        return await asyncio.to_thread(read, files, revision=revision, namespace=namespace)
    except Unfit as error:
        raise Fault("ManifestsInvalid", str(error), again=False) from None


async def _remote_chart(client: Client, owner: Addon | Workload, source: HelmInRepo) -> RemoteChart:
    document = await resolve_repository(client, source.repository, owner.namespace)
    spec, place = document.get("spec") or {}, (document.get("metadata") or {}).get("namespace", "")
    if spec.get("type") != "helm":
        raise Fault("RepositoryUnfit", f"Repository {source.repository} is not of type helm: give path for one of Git")
    access = await _access(client, spec, place)
    return RemoteChart(
        endpoint=str(spec.get("endpoint") or ""),
        chart=source.chart or "",
        version=source.version or "",
        username=access.username,
        password=access.password or access.token,
        ca=access.ca,
        insecure=access.insecure,
    )


async def _access(client: Client, spec: dict[str, Any], namespace: str) -> Any:
    from trimtab.model.redacted import Redacted
    from trimtab.runtime.git import Access

    reference = (spec.get("secretRef") or {}).get("name")
    insecure = bool(spec.get("insecure"))
    if not reference:
        return Access(insecure=insecure)
    try:
        secret = await uncached(client).get(Secret, reference, namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        raise Fault(
            "SecretMissing", f"there is no Secret {reference} in {namespace}, which a Repository names"
        ) from None
    held = secret.data or {}

    def plain(key: str) -> str:
        try:
            return base64.b64decode(held.get(key, ""), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise Fault("SecretInvalid", f"key {key} of Secret {reference} cannot be read") from None

    def hidden(key: str) -> Redacted | None:
        value = plain(key)
        return Redacted(value) if value else None

    return Access(
        username=plain("username"),
        password=hidden("password"),
        token=hidden("token"),
        key=hidden("identity"),
        passphrase=hidden("passphrase"),
        known_hosts=plain("known_hosts"),
        ca=plain("ca.crt"),
        insecure=insecure,
    )


def _told(chart: bytes | ChartFolder | RemoteChart) -> Any:
    if isinstance(chart, bytes):
        return chart
    if isinstance(chart, ChartFolder):
        return sorted(chart.files.items())
    # With whose right it was fetched counts too: what is kept for one must not serve another.
    password = chart.password.reveal() if chart.password is not None else ""
    return [chart.endpoint, chart.chart, chart.version, chart.username, password, chart.ca, chart.insecure]
