"""A small registry on this machine with images of several kinds, for the example of image discovery.

It is Debian's docker-registry on 127.0.0.1 and nowhere else, and its images are made here, so nothing is downloaded. Their
files are package databases with old versions, and no programs. The same release has the same digests at every start.

    python -m trimtab.lab.registry_demo [--release 2] [--port 5051]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry
from trimtab.testing.processes import PeerFailed

PORT = 5051
RELEASES = (1, 2)


class Stocked(msgspec.Struct, frozen=True):
    """A tag of the registry, and what it shows."""

    repository: str
    tag: str
    made: made.Made
    about: str


def stock(release: int = 1) -> tuple[Stocked, ...]:
    """What the registry has: in the second release a tag was added, one was moved and one is gone."""
    old, new = _web("amd64", OLD_PYTHON), _web("amd64", NEW_PYTHON)
    arm = _web("arm64", OLD_PYTHON if release == 1 else NEW_PYTHON)
    current = old if release == 1 else new
    both = made.index([made.entry(current, "linux/amd64"), made.entry(arm, "linux/arm64"), made.attestation(current)])
    other = (
        Stocked("team/api", "2.0", _api(), "Alpine 3.16 and Node packages")
        if release == 1
        else Stocked("team/web", "1.1", new, "newer Python packages on the same base")
    )
    return (
        Stocked("team/web", "1.0", old, "Debian 12 and Python packages, all of them old"),
        Stocked("team/web", "stable", both, "for two platforms, with an attestation"),
        other,
        Stocked("team/api", "latest", _api(), "left out by the filter"),
        Stocked("charts/web", "1.0", made.helm_chart(), "a Helm chart, which is no image"),
        Stocked("team/broken", "1.0", _broken(), "its layer is damaged: the SBOM fails, and only this one"),
    )


async def push(url: str, release: int = 1) -> None:
    async with made.Pusher(url) as pusher:
        for each in stock(release):
            await pusher.push(each.repository, each.tag, each.made)


DEBIAN = {
    "glibc": ("libc6", "2.36-9+deb12u1"),
    "curl": ("libcurl4", "7.88.1-10+deb12u1"),
    "nghttp2": ("libnghttp2-14", "1.52.0-1"),
    "bash": ("bash", "5.2.15-2+b2"),
    "python3.11": ("python3.11-minimal", "3.11.2-6"),
}
"""Source packages, with the binary package that is installed and its version."""
OLD_PYTHON = {"Jinja2": "3.1.2", "PyYAML": "5.3.1", "requests": "2.28.1"}
NEW_PYTHON = {"Jinja2": "3.1.6", "PyYAML": "6.0.2", "requests": "2.28.1"}
ALPINE = {"musl": "1.2.3-r0", "busybox": "1.35.0-r17", "zlib": "1.2.12-r1"}
NODE = {"lodash": "4.17.15", "minimist": "1.2.0"}


def _web(architecture: str, python: Mapping[str, str]) -> made.Made:
    stanzas = [
        f"Package: {name}\nStatus: install ok installed\nArchitecture: {architecture}\nSource: {source}\n"
        f"Version: {version}\n"
        for source, (name, version) in DEBIAN.items()
    ]
    base = {
        "etc/os-release": b'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
        "var/lib/dpkg/status": "\n".join(stanzas).encode(),
    }
    packages = {
        f"usr/lib/python3/dist-packages/{name}-{version}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
        )
        for name, version in python.items()
    }
    return made.image([made.layer(base), made.layer(packages)], f"linux/{architecture}")


def _api() -> made.Made:
    stanzas = [f"P:{name}\nV:{version}\nA:x86_64\no:{name}\n" for name, version in ALPINE.items()]
    base = {
        "etc/os-release": b'ID=alpine\nVERSION_ID=3.16.2\nPRETTY_NAME="Alpine Linux v3.16"\n',
        "lib/apk/db/installed": "\n".join(stanzas).encode(),
    }
    packages = {
        f"app/node_modules/{name}/package.json": json.dumps({"name": name, "version": version}).encode()
        for name, version in NODE.items()
    }
    return made.image([made.layer(base), made.layer(packages, "zstd")])


def _broken() -> made.Made:
    whole = made.layer({"etc/os-release": b"ID=debian\n"})
    cut = made.Blob(whole.blob.media_type, whole.blob.content[:-20])
    return made.image([made.MadeLayer(cut, whole.diff_id)])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trimtab.lab.registry_demo", description="A registry with images.")
    parser.add_argument("--release", type=int, choices=RELEASES, default=1, help="which state of it (%(default)s)")
    parser.add_argument("--port", type=int, default=PORT, help="of 127.0.0.1 (%(default)s)")
    parser.add_argument("--notify", default="", metavar="URL", help="tell `trimtab images listen` of pushes")
    parser.add_argument("--notify-token", default="", metavar="TOKEN", help="what to show there")
    options = parser.parse_args(arguments)
    if shutil.which("docker-registry") is None:
        print("error: docker-registry is not installed; Debian's package has the same name", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory() as folder:
            _serve(Path(folder), options)
    except KeyboardInterrupt:
        return 0
    except PeerFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _serve(folder: Path, options: argparse.Namespace) -> None:
    release = options.release
    with Registry(folder, options.port, notify=options.notify, notify_token=options.notify_token) as registry:
        asyncio.run(push(registry.url, release))
        for each in sorted(stock(release), key=lambda one: (one.repository, one.tag)):
            print(f"{f'{each.repository}:{each.tag}':<18} {each.about}")
        print(f"{registry.host} listens on this machine only. Next: kubectl apply -f examples/images/registry.yaml")
        print("Ctrl-C ends it", flush=True)
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
