"""Images made by hand, and pushed over the API: also those that no tool would make.

    app = image([layer({"etc/os-release": b"ID=debian"})])
    async with Pusher(registry.url) as pusher:
        await pusher.push("team/app", "1.0", index([entry(app, "linux/amd64"), attestation(app)]))

Everything is deterministic: the same parts have the same digests.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import ssl
import tarfile
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
import msgspec

OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker."
OCI_MANIFEST, OCI_INDEX, OCI_CONFIG = f"{OCI}manifest.v1+json", f"{OCI}index.v1+json", f"{OCI}config.v1+json"
DOCKER_MANIFEST = f"{DOCKER}distribution.manifest.v2+json"
DOCKER_LIST = f"{DOCKER}distribution.manifest.list.v2+json"
DOCKER_CONFIG = f"{DOCKER}container.image.v1+json"
Compression = Literal["gzip", "zstd", "none"]
Family = Literal["oci", "docker"]


class Blob(msgspec.Struct, frozen=True):
    """Content with a name."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    @property
    def descriptor(self) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


class MadeLayer(msgspec.Struct, frozen=True):
    """A layer, and the digest of what it unpacks to."""

    blob: Blob
    diff_id: str


class Made(msgspec.Struct, frozen=True):
    """A manifest, and all that must be pushed before it."""

    manifest: Blob
    blobs: tuple[Blob, ...] = ()
    children: tuple[Made, ...] = ()

    @property
    def digest(self) -> str:
        return self.manifest.digest


class Entry(msgspec.Struct, frozen=True):
    """What an index says of one of its parts."""

    made: Made
    descriptor: Mapping[str, Any]


def tar(files: Mapping[str, bytes]) -> bytes:
    """A tar archive. A name that ends with / is a directory."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name.rstrip("/"))
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            member.mode = 0o755 if name.endswith("/") else 0o644
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def layer(files: Mapping[str, bytes] | bytes, compression: Compression = "gzip", family: Family = "oci") -> MadeLayer:
    """A layer of files, or of an archive that is there already."""
    raw = files if isinstance(files, bytes) else tar(files)
    plain = f"{OCI}layer.v1.tar" if family == "oci" else f"{DOCKER}image.rootfs.diff.tar"
    if compression == "gzip":
        content, media_type = gzip.compress(raw, 6, mtime=0), f"{plain}{'+' if family == 'oci' else '.'}gzip"
    elif compression == "zstd":
        from backports import zstd

        content, media_type = zstd.compress(raw), f"{plain}{'+' if family == 'oci' else '.'}zstd"
    else:
        content, media_type = raw, plain
    return MadeLayer(Blob(media_type, content), f"sha256:{hashlib.sha256(raw).hexdigest()}")


def image(
    layers: Sequence[MadeLayer],
    platform: str = "linux/amd64",
    *,
    history: bool | Sequence[Mapping[str, Any]] = True,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    family: Family = "oci",
) -> Made:
    """An image of these layers. Its history is one step for each and an empty one after it, or what is given, or none."""
    os, _, rest = platform.partition("/")
    architecture, _, variant = rest.partition("/")
    config: dict[str, Any] = {
        "architecture": architecture,
        "os": os,
        "created": "2026-01-01T00:00:00Z",
        "config": {"Labels": dict(labels)} if labels else {},
        "rootfs": {"type": "layers", "diff_ids": [each.diff_id for each in layers]},
    }
    if variant:
        config["variant"] = variant
    if history is True:
        steps = [({"created_by": f"COPY {n}"}, {"created_by": f"ENV {n}", "empty_layer": True}) for n in _count(layers)]
        config["history"] = [step for pair in steps for step in pair]
    elif history:
        config["history"] = list(history)
    return _manifest(_json(OCI_CONFIG if family == "oci" else DOCKER_CONFIG, config), layers, annotations, family)


def artifact(config_type: str, content: bytes, content_type: str) -> Made:
    """What is kept like an image and is none: a Helm chart, a signature."""
    return _manifest(_json(config_type, {"name": "chart"}), [MadeLayer(Blob(content_type, content), "")], None, "oci")


def helm_chart() -> Made:
    packed = gzip.compress(tar({"chart/Chart.yaml": b"name: chart"}), 6, mtime=0)
    helm = "application/vnd.cncf.helm"
    return artifact(f"{helm}.config.v1+json", packed, f"{helm}.chart.content.v1.tar+gzip")


def entry(made: Made, platform: str = "", annotations: Mapping[str, str] | None = None) -> Entry:
    """A part of an index; without a platform when there is none."""
    descriptor = dict(made.manifest.descriptor)
    if platform:
        os, _, rest = platform.partition("/")
        architecture, _, variant = rest.partition("/")
        descriptor["platform"] = {"os": os, "architecture": architecture, **({"variant": variant} if variant else {})}
    if annotations:
        descriptor["annotations"] = dict(annotations)
    return Entry(made, descriptor)


def attestation(of: Made) -> Entry:
    """What buildkit adds to an index: a statement on one of its images."""
    statement = layer({"attestation.json": b'{"of": "' + of.digest.encode() + b'"}'})
    marks = {"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": of.digest}
    return entry(image([statement], "unknown/unknown"), "unknown/unknown", marks)


def index(entries: Sequence[Entry | Made], family: Family = "oci") -> Made:
    """Several in one; an index may be an entry too."""
    parts = [each if isinstance(each, Entry) else entry(each) for each in entries]
    media_type = OCI_INDEX if family == "oci" else DOCKER_LIST
    document = {"schemaVersion": 2, "mediaType": media_type, "manifests": [dict(each.descriptor) for each in parts]}
    return Made(_json(media_type, document), (), tuple({each.made.digest: each.made for each in parts}.values()))


class Pusher:
    """Pushes to one registry. `headers` gives those for a repository, where it wants a login."""

    def __init__(
        self,
        url: str,
        *,
        headers: Callable[[str], Mapping[str, str]] = lambda repository: {},
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._url, self._headers, self._tls = url, headers, tls
        self._session: aiohttp.ClientSession | None = None
        self._there: set[tuple[str, str]] = set()

    async def push(self, repository: str, tag: str, made: Made) -> str:
        """All of it, then the tag; the digest of what the tag points to."""
        for child in made.children:
            await self.push(repository, child.digest, child)
        for blob in made.blobs:
            await self.blob(repository, blob)
        await self.put(repository, tag, made.manifest)
        return made.digest

    async def blob(self, repository: str, blob: Blob) -> None:
        if (repository, blob.digest) in self._there:
            return
        async with self._request("POST", repository, f"{self._url}/v2/{repository}/blobs/uploads/") as started:
            started.raise_for_status()
            where = started.headers["Location"]
        where += f"{'&' if '?' in where else '?'}digest={blob.digest}"
        binary = {"Content-Type": "application/octet-stream"}
        async with self._request("PUT", repository, where, data=blob.content, headers=binary) as done:
            done.raise_for_status()
        self._there.add((repository, blob.digest))

    async def put(self, repository: str, reference: str, manifest: Blob) -> None:
        """Only the manifest: what it refers to must be there."""
        url = f"{self._url}/v2/{repository}/manifests/{reference}"
        typed = {"Content-Type": manifest.media_type}
        async with self._request("PUT", repository, url, data=manifest.content, headers=typed) as done:
            done.raise_for_status()

    async def delete(self, repository: str, digest: str) -> None:
        """A manifest, and with it the tags that point to it."""
        async with self._request("DELETE", repository, f"{self._url}/v2/{repository}/manifests/{digest}") as done:
            done.raise_for_status()

    def _request(
        self, method: str, repository: str, url: str, *, data: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Any:
        if self._session is None:
            raise RuntimeError("a Pusher is used between `async with` and its end")
        sent = {**headers, **self._headers(repository)}
        body = None if data is None else io.BytesIO(data)
        return self._session.request(method, url, data=body, headers=sent, ssl=self._tls or True)

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def _manifest(config: Blob, layers: Sequence[MadeLayer], annotations: Mapping[str, str] | None, family: Family) -> Made:
    media_type = OCI_MANIFEST if family == "oci" else DOCKER_MANIFEST
    document = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": config.descriptor,
        "layers": [each.blob.descriptor for each in layers],
        **({"annotations": dict(annotations)} if annotations else {}),
    }
    return Made(_json(media_type, document), (config, *(each.blob for each in layers)))


def _json(media_type: str, document: Any) -> Blob:
    return Blob(media_type, json.dumps(document, separators=(",", ":")).encode())


def _count(layers: Sequence[MadeLayer]) -> range:
    return range(len(layers))
