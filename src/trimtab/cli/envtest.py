"""`trimtab envtest …`: stand-ins for kube-apiserver and etcd, for tests of operators in Go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Tests of Go operators (controller-runtime's envtest) on this server, instead of kube-apiserver and etcd.

    Example:  trimtab envtest install --dir .envtest
    """,
)


@app.callback()
def envtest() -> None:
    """Without it, typer would take a group of one command for the command itself."""


@app.command()
def install(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="Where to put them; default: trimtab/envtest below $XDG_DATA_HOME or ~/.local/share.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write `kube-apiserver`, `etcd` and a link to kubectl, and print the variable that lets envtest find them.

    Example:  trimtab envtest install --dir .envtest
    """
    from trimtab.cli import envtest_install as command

    raise typer.Exit(command.install(directory))
