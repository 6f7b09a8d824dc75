"""`trimtab hub artifacts …`: the files of a resource: see which there are, get them, give them."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtab.cli.options import Context, Kubeconfig, Namespace, access, one_of

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Files of a resource, which its spec names by a path: list them, get them, put them.

    Example:  trimtab hub artifacts put workload/web chart.tgz
    """,
)

Object = Annotated[str, typer.Argument(metavar="KIND/NAME", help="Whose file, as workload/web.", show_default=False)]
File = Annotated[str, typer.Argument(metavar="PATH", help="As the spec names it.", show_default=False)]
Version = Annotated[
    str, typer.Option("--version", metavar="VERSION", help="Of this published version.", show_default=False)
]


@app.command(name="list")
def list_(
    object_: Object,
    version: Version = "",
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.")] = "table",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """List the files that a resource names: their sizes and digests, or that they were not given yet.

    Example:  trimtab hub artifacts list workload/web
    """
    from trimtab.cli import artifacts

    form = one_of(output, ("table", "json"), "--output")
    raise typer.Exit(artifacts.listed(access(kubeconfig, context, namespace), object_, version, form))


@app.command()
def get(
    object_: Object,
    path: File,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="Where to; - is standard output. Default: the last part of PATH.")
    ] = "",
    version: Version = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Get a file of a resource. It is there whole, or not at all.

    Example:  trimtab hub artifacts get workload/web charts/web.tgz web.tgz
    """
    from trimtab.cli import artifacts

    raise typer.Exit(artifacts.got(access(kubeconfig, context, namespace), object_, path, file, version))


@app.command()
def put(
    object_: Object,
    path: File,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="What; - is standard input. Default: the last part of PATH.")
    ] = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Give a file of a resource, whose spec must name it.

    Example:  trimtab hub artifacts put workload/web charts/web.tgz web.tgz
    """
    from trimtab.cli import artifacts

    raise typer.Exit(artifacts.put(access(kubeconfig, context, namespace), object_, path, file))
