"""The provider as a program: what the launcher of the package runs.

Terraform asks for schemas before it says where the server is, so the kinds come from a file: `$TRIMTAB_TERRAFORM_KINDS`,
else the one that `trimtab terraform install` made. Where there is none, it is made now, from the server that the environment
or a kubeconfig names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from trimtab.terraform.plugin.boot import serve

if TYPE_CHECKING:
    from pathlib import Path

    from trimtab.terraform.protocol.contract import ProviderServer

KINDS = "TRIMTAB_TERRAFORM_KINDS"


class NoKinds(Exception):  # noqa: N818 - it is what we have
    """There is no snapshot, and none could be made; the text says what to do."""


def main() -> NoReturn:
    serve(make)


def make() -> ProviderServer:
    """Called after the first line is written; all that is slow is imported here."""
    from trimtab.terraform.framework.serving import FrameworkServer
    from trimtab.terraform.kinds.provider import TrimtabProvider
    from trimtab.terraform.kinds.snapshot import Snapshot

    path = kinds_path(os.environ)
    if not path.is_file():
        _take(path)
    snapshot = Snapshot(path)
    return FrameworkServer(TrimtabProvider(snapshot), snapshot.schema() or None)


def home(environ: Mapping[str, str]) -> Path:
    """All that an install keeps for itself on this machine."""
    from pathlib import Path

    from trimtab.terraform.plugin.identity import folder

    return Path(folder(environ)).parent


def kinds_path(environ: Mapping[str, str]) -> Path:
    from pathlib import Path

    given = environ.get(KINDS, "")
    return Path(given) if given else home(environ) / "kinds"


def _take(path: Path) -> None:
    """A snapshot of the server that this machine knows. A file that the user named himself is not made behind his back."""
    from trimtab.terraform.framework import logs
    from trimtab.terraform.kinds.access import NoAccess, Settings, access
    from trimtab.terraform.kinds.api import Api, ApiError, Unreachable
    from trimtab.terraform.kinds.precomputing import taken
    from trimtab.terraform.kinds.snapshot import write_snapshot
    from trimtab.terraform.shipped import shipped_hints

    if os.environ.get(KINDS):
        raise NoKinds(f"{KINDS} names {path}, which is not there: run `trimtab terraform install --schema-only`.")
    advice = (
        f"There is no list of the server's kinds in {path}. Run `trimtab terraform install`, or set KUBECONFIG, or "
        "TRIMTAB_ENDPOINT and TRIMTAB_TOKEN, so that the provider can ask the server."
    )
    try:
        reached = access(Settings())
        logs.log("info", "taking the kinds of the server", server=reached.url, path=str(path))
        api = Api(reached)
        try:
            write_snapshot(path, taken(api.get, shipped_hints()))
        finally:
            api.close()
    except (NoAccess, ApiError, Unreachable, OSError) as error:
        raise NoKinds(f"{advice} Now it could not: {error}") from error
