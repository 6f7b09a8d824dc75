"""`trimtab canary …`: see how a release goes, and decide about it."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtab.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    Watch,
    access,
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
