"""All commands, with their options and help. Bodies are imported when a command runs, so that `up` starts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

DataDir = Annotated[Path, typer.Option(help="Where everything is kept.", envvar="TRIMTAB_DATA_DIR")]


@app.callback()
def trimtab() -> None:
    """A control plane that you pip install: the Kubernetes API on an embedded store."""


@app.command()
def up(
    data_dir: DataDir = Path(".trimtab"),
    port: Annotated[int, typer.Option(help="The port to listen on; 0 picks a free one.")] = 7443,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    tls_host: Annotated[list[str] | None, typer.Option(help="Another name or address for the certificate.")] = None,
) -> None:
    """Run the server on this machine until Ctrl-C.

    Example:  trimtab up --data-dir /var/lib/trimtab --port 7443
    """
    from trimtab.cli.up import run

    raise typer.Exit(run(data_dir, host, port, tuple(tls_host or ())))
