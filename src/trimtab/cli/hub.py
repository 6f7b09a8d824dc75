"""`trimtab hub …`: the hub behind a cluster, its storage on its own, and its kinds in other languages."""

from __future__ import annotations

import typer

from trimtab.cli.hub_artifacts import app as artifacts
from trimtab.cli.hub_proto import proto
from trimtab.cli.hub_serve import serve
from trimtab.cli.hub_storage import storage

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""The hub: serve its kinds behind a cluster's API, and its storage to other processes.

    Example:  trimtab hub serve --storage postgresql://db.example.com/hub
    """,
)
app.add_typer(artifacts, name="artifacts")
app.command()(proto)
app.command()(serve)
app.command()(storage)
