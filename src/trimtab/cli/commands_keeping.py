"""Commands that keep what a server has, and bring it back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.options import (
    BlobsCa,
    BlobsToken,
    BlobsUrl,
    Context,
    DataDir,
    Kubeconfig,
    access,
)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive, a .tar.gz.")],
    data_dir: DataDir = Path(".trimtab"),
    with_keys: Annotated[
        bool,
        typer.Option("--with-keys", help="Take keys, certificates and tokens along: who has the file has the server."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show what FILE holds.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read all of FILE and check that it is whole.")] = False,
) -> None:
    """Write all that a data directory holds into one file, while its server goes on. Secrets are in it: keep it safe.

    Example:  trimtab backup --data-dir /var/lib/trimtab monday.tar.gz
    """
    from trimtab.cli import backup as command

    if list_ and verify:
        raise typer.BadParameter("say --list or --verify, not both", param_hint="--list")
    if list_ or verify:
        raise typer.Exit(command.listed(file) if list_ else command.verified(file))
    options = command.Options(data_dir=data_dir, keys=with_keys, force=force)
    raise typer.Exit(command.backup(file, options))


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An archive of `trimtab backup`.")],
    data_dir: DataDir = Path(".trimtab"),
    server: Annotated[
        bool, typer.Option("--server", help="Bring objects back to the running server of the kubeconfig instead.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --server: do it, after showing the plan.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --server: where the server's object differs, the archive wins.")
    ] = False,
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="With --server: a Python file with further kinds of the hub; may be repeated."
        ),
    ] = None,
    proto: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[GROUP/VERSION=]FILE",
            help="With --server: a proto3 file with a further kind of the hub; may be repeated.",
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Make a new data directory from a backup; or, with --server, bring its objects back to a running server: those of the
    store, and the hub's with their versions and files.

    Example:  trimtab restore monday.tar.gz --data-dir /var/lib/trimtab-new
    """
    if not server:
        from trimtab.cli import restore as command

        if yes or overwrite:
            raise typer.BadParameter("is for --server; a data directory is never overwritten", param_hint="--overwrite")
        raise typer.Exit(command.offline(file, data_dir))
    from trimtab.cli import restore_server
    from trimtab.cli.blobs import Place

    options = restore_server.Options(
        yes=yes,
        overwrite=overwrite,
        blobs=Place(blobs, blobs_token_file, blobs_ca_file),
        operators=tuple(map(Path, operator or ())),
        protos=tuple(proto or ()),
    )
    raise typer.Exit(restore_server.online(file, access(kubeconfig, context, ""), options))
