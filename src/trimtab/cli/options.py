"""Options that several commands have, each said once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from trimtab.cli.access import Access

Systems = Annotated[str, typer.Option(help="Which to run, as a,b; or all, or none.", show_default=True)]
ManageCrds = Annotated[
    bool, typer.Option("--manage-crds", help="Let systems define kinds, with the rights that this needs.")
]
Operators = Annotated[
    list[str] | None,
    typer.Option(
        "--operator",
        metavar="FILE",
        help="A Python file with controllers of your own; may be repeated.",
        show_default=False,
    ),
]
LogFormat = Annotated[str, typer.Option(help="text, json, or auto: text on a terminal.")]
BlobsUrl = Annotated[
    str, typer.Option(help="Where blobs are: a folder, postgresql://… or https://….", show_default=False)
]
NatsUrl = Annotated[str, typer.Option(help="Spread work by this NATS server.", show_default=False)]
PrometheusUrl = Annotated[
    str,
    typer.Option(
        metavar="URL", help="The Prometheus that answers for canaries which name none: http://…", show_default=False
    ),
]
BlobsToken = Annotated[Path | None, typer.Option(metavar="FILE", help="The token for blobs over HTTPS.")]
BlobsCa = Annotated[Path | None, typer.Option(metavar="FILE", help="Trust this authority (PEM) for blobs over HTTPS.")]
NatsCredentials = Annotated[Path | None, typer.Option(metavar="FILE", help="A .creds file for NATS.")]
NatsToken = Annotated[Path | None, typer.Option(metavar="FILE", help="A token for NATS.")]
NatsCa = Annotated[Path | None, typer.Option(metavar="FILE", help="Trust this authority (PEM) for NATS.")]
DataDir = Annotated[Path, typer.Option(help="Where everything is kept.", envvar="TRIMTAB_DATA_DIR")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="Default: $KUBECONFIG, else .trimtab/kubeconfig, else ~/.kube/config.", show_default=False),
]
Context = Annotated[str, typer.Option(help="The context in the kubeconfig.", show_default=False)]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Default: that of the context.", show_default=False)]
Everywhere = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look in all namespaces.")]
Labels = Annotated[str, typer.Option("--selector", "-l", help="Labels, as app=web,tier!=back.", show_default=False)]
Fields = Annotated[str, typer.Option("--field-selector", help="Fields, as status.phase=Running.", show_default=False)]
Words = Annotated[list[str], typer.Argument(metavar="KIND [NAME...] | KIND/NAME...", show_default=False)]
Files = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", help="A file, a folder, or - for standard input.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Let the server check everything and change nothing.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Then show changes as they come.")]
IgnoreNotFound = Annotated[bool, typer.Option("--ignore-not-found", help="What is not there is no failure.")]


def access(kubeconfig: Path | None, context: str, namespace: str) -> Access:
    from trimtab.cli.access import Access

    return Access(kubeconfig, context, namespace)


def seconds(text: str, option: str) -> float:
    from trimtab.model.duration import Duration

    try:
        return float(text) if text.isdecimal() else Duration(text).seconds
    except ValueError:
        raise typer.BadParameter(f'"{text}" is no duration such as 30s or 2m', param_hint=option) from None


def web_address(text: str, option: str) -> str:
    """An http or https URL without credentials, which would be seen in the list of processes; "" stays."""
    from urllib.parse import urlsplit

    if not text:
        return ""
    try:
        url = urlsplit(text)
        good = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:  # a port or an address that is none
        good = False
    if not good or any(char.isspace() for char in text):
        raise typer.BadParameter(f'"{text}" is no URL such as http://127.0.0.1:9090', param_hint=option)
    if url.username is not None or url.password is not None:
        raise typer.BadParameter(
            "a URL here must hold no credentials: a CanaryDeployment names them by analysis.prometheus.secretRef",
            param_hint=option,
        )
    if url.query or url.fragment:
        raise typer.BadParameter("a URL here ends with its path: no ?query and no #fragment", param_hint=option)
    return text.rstrip("/")


def one_of(text: str, choices: Iterable[str], option: str) -> str:
    """The one of these words that is meant, in whatever case it is written."""
    known = {choice.casefold(): choice for choice in choices}
    if text.casefold() not in known:
        raise typer.BadParameter(f'"{text}" is not one of {", ".join(known.values())}', param_hint=option)
    return known[text.casefold()]


def log_as(form: str) -> None:
    """Log in the form of `--log-format`."""
    from trimtab.model import logs

    chosen = one_of(form, ("auto", "text", "json"), "--log-format")
    logs.as_json = None if chosen == "auto" else chosen == "json"
