"""`trimtab git …`: plan a sync, run it, see how it stands, and decide about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.options import BlobsCa, BlobsToken, BlobsUrl, Context, Kubeconfig, LogFormat, Namespace, access, log_as

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Git sync: see what a revision would change, apply it, and decide about what is held.

    Example:  trimtab git plan fleet --revision feature
    """,
)

Name = Annotated[
    str,
    typer.Argument(metavar="[NAME]", help="The name of a GitSync; needless where there is one.", show_default=False),
]
Revision = Annotated[
    str, typer.Option(metavar="REV", help="A branch, tag or commit; default: the synced branch.", show_default=False)
]
Folder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A folder of this machine, in place of the synced one.", show_default=False),
]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 2 when there are changes; 1 is for what would wait for a person.")
]


@app.command()
def plan(
    name: Name = "",
    revision: Revision = "",
    folder: Folder = None,
    exit_code: ExitCode = False,
    unchanged: Annotated[bool, typer.Option("--unchanged", help="Name what stays as it is, too.")] = False,
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show what a sync would create, change and delete, and what it would write to Git. Nothing is written.

    Example:  trimtab git plan fleet --folder ./fleet --exit-code
    """
    from trimtab.cli import git_plan
    from trimtab.cli.blobs import Place

    options = git_plan.Options(
        revision=revision,
        folder=folder,
        exit_code=exit_code,
        unchanged=unchanged,
        blobs=Place(blobs, blobs_token_file, blobs_ca_file),
    )
    raise typer.Exit(git_plan.plan(access(kubeconfig, context, namespace), name, options))


@app.command()
def diff(
    name: Name = "",
    revision: Revision = "",
    folder: Folder = None,
    exit_code: ExitCode = False,
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show the same plan field by field: objects as they are, and as they would be.

    Example:  trimtab git diff fleet --revision feature
    """
    from trimtab.cli import git_plan
    from trimtab.cli.blobs import Place

    place = Place(blobs, blobs_token_file, blobs_ca_file)
    options = git_plan.Options(revision=revision, folder=folder, exit_code=exit_code, blobs=place)
    raise typer.Exit(git_plan.diff(access(kubeconfig, context, namespace), name, options))


@app.command()
def sync(
    name: Name = "",
    wait: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="How long to wait for its end.")] = 600,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Fetch and sync now, with a progress bar, until it is done.

    Example:  trimtab git sync fleet
    """
    from trimtab.cli import git_sync

    raise typer.Exit(git_sync.sync(access(kubeconfig, context, namespace), name, wait=wait))


@app.command()
def status(
    name: Name = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show what a sync is at, its last runs, and what is in its way. Exits with 1 when it is not in sync.

    Example:  trimtab git status fleet
    """
    from trimtab.cli import git_status

    raise typer.Exit(git_status.status(access(kubeconfig, context, namespace), name))


@app.command()
def confirm(
    name: Name = "",
    plan: Annotated[str, typer.Option(help="Only this plan, as status shows it.", show_default=False)] = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Let the deletions pass that a sync holds back. Others that come later are held again.

    Example:  trimtab git confirm fleet
    """
    from trimtab.cli import git_hold

    raise typer.Exit(git_hold.confirm(access(kubeconfig, context, namespace), name, plan))


@app.command()
def suspend(
    name: Name = "",
    reason: Annotated[str, typer.Option(help="Why, for those who wonder.", show_default=False)] = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Do nothing in either direction, until it is resumed.

    Example:  trimtab git suspend fleet --reason "the release is frozen"
    """
    from trimtab.cli import git_hold

    raise typer.Exit(git_hold.suspend(access(kubeconfig, context, namespace), name, reason))


@app.command()
def resume(
    name: Name = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Let a sync go on that was suspended.

    Example:  trimtab git resume fleet
    """
    from trimtab.cli import git_hold

    raise typer.Exit(git_hold.resume(access(kubeconfig, context, namespace), name))


@app.command()
def listen(
    where: Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Port 0 picks one.")] = "127.0.0.1:7481",
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="In PEM; without, it is plain HTTP.", show_default=False)
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key in PEM.", show_default=False)] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    log_format: LogFormat = "auto",
) -> None:
    """Take what Git servers tell of pushes, until Ctrl-C: GitHub, GitLab, Bitbucket, Azure Repos.

    What was pushed is synced at once. A server sends to /NAMESPACE/GITSYNC/WEBHOOK, signed with the secret that the
    GitSync's spec.triggers.webhooks names.

    Example:  trimtab git listen --listen 0.0.0.0:7481 --tls-certificate tls.crt --tls-key tls.key
    """
    from trimtab.cli import git_listen

    log_as(log_format)
    options = git_listen.Options(listen=where, certificate=tls_certificate, key=tls_key)
    raise typer.Exit(git_listen.listen(access(kubeconfig, context, ""), options))
