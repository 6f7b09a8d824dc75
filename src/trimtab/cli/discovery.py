"""`trimtab discovery …`: ask for a sweep, see what one would cost and find, and why an address is no Target."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtab.cli.options import (
    BlobsCa,
    BlobsToken,
    BlobsUrl,
    Context,
    Everywhere,
    Kubeconfig,
    Namespace,
    Operators,
    access,
    seconds,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Network discovery: sweep now, see what a sweep costs and finds, and why an address is no Target.

    Example:  trimtab discovery why 10.1.2.3
    """,
)

Rule = Annotated[str, typer.Argument(metavar="RULE", help="The name of a DiscoveryRule.", show_default=False)]


@app.command()
def why(
    address: Annotated[str, typer.Argument(help="An address, or a DNS name of a rule.", show_default=False)],
    everywhere: Everywhere = False,
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    operator: Operators = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Say what came of an address in the last sweeps, by every rule that has it; exit code 1 when none has.

    Without --blobs, what is known of addresses is read from the folder of the `trimtab up` that the kubeconfig is of.

    Example:  trimtab discovery why 10.1.2.3 -A
    """
    from trimtab.cli import discovery_why
    from trimtab.cli.blobs import Place

    place = Place(blobs, blobs_token_file, blobs_ca_file)
    reached = access(kubeconfig, context, namespace)
    told = discovery_why.why(reached, address, everywhere=everywhere, place=place, operators=operator or ())
    raise typer.Exit(told)


@app.command()
def run(
    rule: Rule,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Plan and probe from this machine; log in nowhere, write nothing.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="With --dry-run: list every address that answers.")] = False,
    wait: Annotated[bool, typer.Option(help="Follow the sweep until it ends.")] = True,
    timeout: Annotated[str, typer.Option(help="How long to follow it, as 30s or 2m.")] = "10m",
    operator: Operators = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Sweep now, and show how far it is and what came of it; exit code 1 when the sweep failed.

    Example:  trimtab discovery run campus --dry-run
    """
    reached = access(kubeconfig, context, namespace)
    if dry_run:
        from trimtab.cli import discovery_probe

        raise typer.Exit(discovery_probe.dry_run(reached, rule, everything=all_, operators=operator or ()))
    from trimtab.cli import discovery_run

    raise typer.Exit(discovery_run.run(reached, rule, wait=wait, timeout=seconds(timeout, "--timeout")))


@app.command()
def plan(
    rule: Rule,
    operator: Operators = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show what a sweep costs at most: addresses, packets, time. Nothing is sent to any of them.

    Example:  trimtab discovery plan campus
    """
    from trimtab.cli import discovery_probe

    reached = access(kubeconfig, context, namespace)
    raise typer.Exit(discovery_probe.plan(reached, rule, operators=operator or ()))


@app.command()
def release(
    rule: Rule,
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Let go what a sweep lost at once and was held back (condition MassLoss).

    Example:  trimtab discovery release campus
    """
    from trimtab.cli import discovery_run
    from trimtab.cli.blobs import Place

    place = Place(blobs, blobs_token_file, blobs_ca_file)
    raise typer.Exit(discovery_run.release(access(kubeconfig, context, namespace), rule, place))
