"""What Terraform reads of mirrors: the archive, the two JSON documents of its provider network mirror protocol, and the
part of a CLI configuration file that names one.

A network mirror is a folder of files behind HTTPS: `HOST/NAMESPACE/TYPE/index.json` lists versions, `VERSION.json` the
archives of one version, relative to itself.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

from trimtab.terraform.install.hashing import zh
from trimtab.terraform.install.package import Package
from trimtab.terraform.install.places import ADDRESS, TARGETS

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip can tell; the real one would make two archives of one release differ."""


def archive(made: Package) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        for name in sorted(made.files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3  # Unix: the mode below counts
            entry.external_attr = (0o100000 | made.mode(name)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, made.files[name])
    return buffer.getvalue()


def archive_name(version: str) -> str:
    return f"terraform-provider-trimtab_{version}.zip"


def network(made: Package) -> dict[str, bytes]:
    """The files of a network mirror below its base URL."""
    data = archive(made)
    link = {"url": archive_name(made.version), "hashes": [made.h1, zh(data)]}
    return {
        f"{ADDRESS}/index.json": _json({"versions": {made.version: {}}}),
        f"{ADDRESS}/{made.version}.json": _json({"archives": dict.fromkeys(TARGETS, link)}),
        f"{ADDRESS}/{archive_name(made.version)}": data,
    }


def filesystem_configuration(mirror: Path) -> str:
    return _configuration("filesystem_mirror", f"path    = {json.dumps(str(mirror))}")


def network_configuration(url: str) -> str:
    return _configuration("network_mirror", f"url     = {json.dumps(url)}")


def _configuration(kind: str, where: str) -> str:
    return f"""\
provider_installation {{
  {kind} {{
    {where}
    include = ["{ADDRESS}"]
  }}
  direct {{
    exclude = ["{ADDRESS}"]
  }}
}}
"""


def _json(document: object) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"
