"""`trimtab rest …`: from an API's document to kinds, and what is known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.options import Context, Kubeconfig, LogFormat, Namespace, access, log_as, one_of

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Any API: make kinds of what its OpenAPI document describes, and see what may be done with their fields.

    Example:  trimtab rest generate openapi.json --endpoint https://api.example.com | kubectl apply --server-side -f -
    """,
)

Root = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder that references between files may not leave; the document's own without it.",
        show_default=False,
    ),
]


@app.command()
def generate(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC", help="An OpenAPI document: a file, a URL, or a folder of them.", show_default=False
        ),
    ],
    service: Annotated[
        str, typer.Option(help="The name of the RestService; after the document without it.", show_default=False)
    ] = "",
    endpoint: Annotated[
        str,
        typer.Option(metavar="URL", help="Where the service is, if not where the document says.", show_default=False),
    ] = "",
    root: Root = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND", help="Only these kinds, or paths as /zones/*; may be repeated.", show_default=False
        ),
    ] = None,
    definitions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="RestDefinitions of your own instead of proposals.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write files there: typed Python structs and docs too.", show_default=False),
    ] = None,
) -> None:
    """Make kinds of an API: definitions, CRDs, rights and a webhook, for `kubectl apply --server-side`.

    Resources are found by the hierarchy of URLs, and what is above another becomes its parent. What is proposed is a
    beginning: correct definitions.yaml and generate again with --definitions.

    Example:  trimtab rest generate compute.json --service azure --only VirtualMachineScaleSet --out azure
    """
    from trimtab.cli import rest_generate

    words = tuple(word for each in only or () for word in each.split(",") if word)
    options = rest_generate.Options(
        spec=spec, service=service, endpoint=endpoint, root=root, only=words, definitions=definitions, out=out
    )
    raise typer.Exit(rest_generate.generate(options))


@app.command()
def explain(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="A kind, its plural, or a RestDefinition's name.", show_default=False)
    ],
    spec: Annotated[
        str,
        typer.Option(
            metavar="SPEC", help="A document to explain the kind by, instead of asking a server.", show_default=False
        ),
    ] = "",
    definition: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --spec: the RestDefinition, if not the one proposed.", show_default=False
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="CLASS", help="Only fields of this class, as create-only; may be repeated."),
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.")] = "table",
    root: Root = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show for each field of a kind what may be done with it, and what decided that.

    Example:  trimtab rest explain VirtualMachineScaleSet --spec compute.json --class create-only
    """
    from trimtab.cli import rest_explain
    from trimtab.systems.rest.model import FieldClass

    known = [each.value for each in FieldClass]
    options = rest_explain.Options(
        kind=kind,
        spec=spec,
        definition=definition,
        root=root,
        output=one_of(output, ("table", "json"), "--output"),
        classes=tuple(one_of(each, known, "--class") for each in classes or ()),
    )
    raise typer.Exit(rest_explain.explain(access(kubeconfig, context, ""), options))


@app.command("import")
def import_(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The RestService.", show_default=False)],
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="A resource's path below the endpoint.", show_default=False)
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="All that can be listed, instead of an ID.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only these kinds; may be repeated.", show_default=False),
    ] = None,
    children: Annotated[bool, typer.Option(help="With all that is below it.")] = True,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there, once it is complete.", show_default=False)
    ] = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Write the YAML of what exists at a service. Applied, it is managed from then on, and nothing is written to it.

    What is read-only or a default is left out. Secrets become references: the Secrets to make are named.

    Example:  trimtab rest import azure /subscriptions/…/resourceGroups/web | kubectl apply --server-side -f -
    """
    from trimtab.cli import rest_import

    options = rest_import.Options(
        service=service,
        identifier=identifier,
        everything=everything,
        kinds=tuple(word for each in kind or () for word in each.split(",") if word),
        children=children,
        out=out,
    )
    raise typer.Exit(rest_import.import_(access(kubeconfig, context, namespace), options))


@app.command()
def listen(
    where: Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Port 0 picks one.")] = "127.0.0.1:7481",
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            "--tls-certificate",
            "--tls-cert",
            metavar="FILE",
            help="In PEM; without, it is plain HTTP.",
            show_default=False,
        ),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key in PEM.", show_default=False)] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    log_format: LogFormat = "auto",
) -> None:
    """Take what services tell of changes, until Ctrl-C: CloudEvents, and Azure's Event Grid.

    Objects of what changed are looked at at once. A service sends its events to /SERVICE, with the token that the
    RestService's spec.notifications names: as Authorization: Bearer, as aeg-sas-key, or as ?token=.

    Example:  trimtab rest listen --listen 0.0.0.0:7481 --tls-certificate tls.crt --tls-key tls.key
    """
    from trimtab.cli import rest_listen

    log_as(log_format)
    options = rest_listen.Options(listen=where, certificate=tls_certificate, key=tls_key)
    raise typer.Exit(rest_listen.listen(access(kubeconfig, context, ""), options))
