"""`trimtab canary …`: see how a release goes, and decide about it."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtab.cli.options import (
    BlobsCa,
    BlobsToken,
    BlobsUrl,
    Context,
    Files,
    Kubeconfig,
    Namespace,
    Watch,
    access,
    one_of,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Canaries: see how a release goes, let it go on, hold it, or roll it back.

    Example:  trimtab canary status web --watch
    """,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a CanaryDeployment.", show_default=False)]


@app.command()
def status(
    name: Name,
    watch: Watch = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show how a release goes: its weight and step, what was measured, and what it waits for.

    Example:  trimtab canary status web --watch
    """
    from trimtab.cli import canary_status

    raise typer.Exit(canary_status.status(access(kubeconfig, context, namespace), name, watch=watch))


@app.command()
def promote(
    name: Name,
    full: Annotated[
        bool, typer.Option("--full", help="Send the revision straight out: no further steps and checks.")
    ] = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Let a release pass the gate that it stands at, or go on after it was frozen.

    Example:  trimtab canary promote web
    """
    from trimtab.cli import canary_promote

    raise typer.Exit(canary_promote.promote(access(kubeconfig, context, namespace), name, full=full))


@app.command()
def pause(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why, for those who wonder.", show_default=False)] = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Hold a release where it is: weights stay, and nothing is checked until it is resumed.

    Example:  trimtab canary pause web --reason "the shop is busy"
    """
    from trimtab.cli import canary_pause

    raise typer.Exit(canary_pause.pause(access(kubeconfig, context, namespace), name, reason))


@app.command()
def resume(
    name: Name,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Let a release go on that was paused.

    Example:  trimtab canary resume web
    """
    from trimtab.cli import canary_pause

    raise typer.Exit(canary_pause.resume(access(kubeconfig, context, namespace), name))


@app.command()
def abort(
    name: Name,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Roll the release back that goes on. Its revision does not run again until `retry`, or another change.

    Example:  trimtab canary abort web
    """
    from trimtab.cli import canary_abort

    raise typer.Exit(canary_abort.abort(access(kubeconfig, context, namespace), name))


@app.command()
def retry(
    name: Name,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Let the revision that failed run again, from its first step.

    Example:  trimtab canary retry web
    """
    from trimtab.cli import canary_retry

    raise typer.Exit(canary_retry.retry(access(kubeconfig, context, namespace), name))


@app.command()
def replay(
    name: Name,
    run: Annotated[
        str, typer.Option(metavar="ID", help="Which run; the newest with a record without it.", show_default=False)
    ] = "",
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="METRIC.FIELD=VALUE",
            help="Another threshold, as request-success-rate.min=99, or passes=3; may be repeated.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        int | None, typer.Option(help="So many failed checks roll back, instead of analysis.threshold.")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.")] = "table",
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show what other thresholds would have made of a run, from the numbers that it measured.

    Without --blobs, records are read from the folder of the `trimtab up` that the kubeconfig is of.

    Example:  trimtab canary replay web --set request-success-rate.min=99.5 --threshold 2
    """
    from trimtab.cli import canary_replay
    from trimtab.cli.blobs import Place

    given = (*(changes or ()), *([f"threshold={threshold}"] if threshold is not None else ()))
    options = canary_replay.Options(run=run, changes=given, output=one_of(output, ("table", "json"), "--output"))
    place = Place(blobs, blobs_token_file, blobs_ca_file)
    raise typer.Exit(canary_replay.replayed(access(kubeconfig, context, namespace), name, options, place))


@app.command()
def check(
    filename: Files = None,
    recursive: Annotated[bool, typer.Option("--recursive", "-R", help="Folders inside folders, too.")] = False,
) -> None:
    """Say what is wrong with manifests, without a server; the exit code is 1 when something is.

    What shows only beside other objects of a cluster is not looked at.

    Example:  trimtab canary check -f web.yaml
    """
    from trimtab.cli import canary_check

    raise typer.Exit(canary_check.check(filename or [], recursive=recursive))
