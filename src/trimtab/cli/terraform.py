"""`trimtab terraform …`: the provider, where Terraform finds it, and what it offers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.options import Context, Kubeconfig

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Terraform: every kind of a server as a resource, with a provider that needs nothing but Python.

    Example:  trimtab terraform install
    """,
)

Kinds = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The snapshot of a server's kinds; the installed one without it.", show_default=False
    ),
]


@app.command()
def install(
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    mirror: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A filesystem mirror; default: ~/.terraform.d/plugins, which Terraform and OpenTofu know.",
            show_default=False,
        ),
    ] = None,
    schema_only: Annotated[
        bool, typer.Option("--schema-only", help="Only take the server's kinds anew; the provider stays as it is.")
    ] = False,
) -> None:
    """Put the provider where `terraform init` and `tofu init` find it, and take the kinds of the server.

    The package is the same on every machine, and so is its hash in .terraform.lock.hcl. The kinds are kept outside of it:
    take them again, with --schema-only, when the server has new ones.

    Example:  trimtab terraform install --kubeconfig .trimtab/kubeconfig
    """
    from trimtab.cli import terraform_install as command

    options = command.Options(kubeconfig=kubeconfig, context=context, mirror=mirror, schema_only=schema_only)
    raise typer.Exit(command.install(options))


@app.command()
def check(kubeconfig: Kubeconfig = None, context: Context = "") -> None:
    """Say whether the provider here knows all kinds of the server; exit code 1 when it does not.

    Example:  trimtab terraform check
    """
    from trimtab.cli import terraform_install as command

    raise typer.Exit(command.check(command.Options(kubeconfig=kubeconfig, context=context)))


@app.command()
def spec(
    kinds: Kinds = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="Only these, as trimtab_infra_cluster; may be repeated.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write it there.", show_default=False)
    ] = None,
) -> None:
    """Print the provider's schemas as a provider code specification (version 0.1), in JSON.

    What the format cannot say is named on standard error.

    Example:  trimtab terraform spec --only trimtab_infra_cluster -o spec.json
    """
    from trimtab.cli import terraform_spec as command

    raise typer.Exit(command.spec(kinds, tuple(only or ()), out))


@app.command()
def generate(
    document: Annotated[
        Path, typer.Argument(metavar="SPEC", help="A provider code specification in JSON.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the Python package to write.")
    ] = Path("generated"),
) -> None:
    """Write typed Python code for the resources of a provider code specification: schema, values, a class to fill in.

    Example:  trimtab terraform generate spec.json -o my_provider/schemas
    """
    from trimtab.cli import terraform_spec as command

    raise typer.Exit(command.generate(document, out))


@app.command()
def compare(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A specification of before.", show_default=False)],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="One of now.", show_default=False)],
) -> None:
    """Say what a change of schemas means for users: major, minor or patch; exit code 1 when it breaks what nobody was warned of.

    A type or an attribute may go in a major version, after a release in which it was deprecated.

    Example:  trimtab terraform compare released.json spec.json
    """
    from trimtab.cli import terraform_spec as command

    raise typer.Exit(command.compare(old, new))


@app.command()
def docs(
    kinds: Kinds = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Where resources/ and data-sources/ go; default: docs, where nothing else is in it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a page for each resource and data source, and one that maps their types to groups, versions and kinds.

    Example:  trimtab terraform docs -o docs
    """
    from trimtab.cli import terraform_docs as command

    raise typer.Exit(command.docs(kinds, out))
