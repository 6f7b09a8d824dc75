"""All commands, with their options and help. Bodies are imported when a command runs, so that `up` starts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.canary import app as canary
from trimtab.cli.discovery import app as discovery
from trimtab.cli.images import app as images
from trimtab.cli.options import (
    BlobsCa,
    BlobsToken,
    BlobsUrl,
    Context,
    DataDir,
    DryRun,
    Everywhere,
    Fields,
    Files,
    IgnoreNotFound,
    Kubeconfig,
    Labels,
    LogFormat,
    ManageCrds,
    Namespace,
    NatsCa,
    NatsCredentials,
    NatsToken,
    NatsUrl,
    Operators,
    PrometheusUrl,
    Systems,
    Watch,
    Words,
    access,
    log_as,
    seconds,
    web_address,
)
from trimtab.cli.rest import app as rest

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(canary, name="canary")
app.add_typer(discovery, name="discovery")
app.add_typer(images, name="images")
app.add_typer(rest, name="rest")


@app.callback(
    epilog="Exit codes: 0 done; 1 failed; 2 wrong usage; 3 not found; 4 refused (conflict, not allowed); "
    "124 out of time; 130 interrupted."
)
def trimtab() -> None:
    """A control plane that you pip install: the Kubernetes API on an embedded store."""


@app.command()
def up(
    data_dir: DataDir = Path(".trimtab"),
    port: Annotated[int, typer.Option(help="The port to listen on; 0 picks a free one.")] = 7443,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    tls_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name or address for the certificate; may be repeated."),
    ] = None,
    systems: Systems = "all",
    operator: Operators = None,
    local_workloads: Annotated[
        bool,
        typer.Option("--local-workloads", help="Run Deployments as processes of this machine, behind an Envoy."),
    ] = False,
    prometheus: PrometheusUrl = "",
    log_format: LogFormat = "auto",
) -> None:
    """Run the server and the controllers on this machine until Ctrl-C.

    Example:  trimtab up --data-dir /var/lib/trimtab --operator my_operator.py
    """
    from trimtab.cli.up import run

    log_as(log_format)
    if not 0 <= port <= 65535:
        raise typer.BadParameter(f"{port} is not in the range 0 to 65535", param_hint="--port")
    for name in tls_host or ():
        if not all(char.isalnum() or char in ".-:*" for char in name) or not name:
            raise typer.BadParameter(f'"{name}" is neither a host name nor an address', param_hint="--tls-host")
    operators = tuple(Path(path) for path in operator or ())
    asked = web_address(prometheus, "--prometheus")
    names = tuple(tls_host or ())
    raise typer.Exit(run(data_dir, host, port, names, systems, operators, log_format, asked, local_workloads))


@app.command()
def controllers(
    systems: Systems = "all",
    operator: Operators = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Default: as everywhere, and in a pod that of the pod.", show_default=False),
    ] = None,
    context: Context = "",
    data_dir: DataDir = Path(".trimtab"),
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    nats: NatsUrl = "",
    nats_credentials_file: NatsCredentials = None,
    nats_token_file: NatsToken = None,
    nats_ca_file: NatsCa = None,
    leader_election: Annotated[bool, typer.Option(help="Act only while holding the system's lease.")] = True,
    impersonate: Annotated[bool, typer.Option(help="Act as each system's own account.")] = True,
    health_host: Annotated[str, typer.Option(help="The address of health and metrics.")] = "127.0.0.1",
    health_port: Annotated[int | None, typer.Option(help="Its port; 0 picks one. None unless given.")] = None,
    webhook_host: Annotated[str, typer.Option(help="The address of webhooks.")] = "127.0.0.1",
    webhook_port: Annotated[int | None, typer.Option(help="Its port; 0 picks one. None unless given.")] = None,
    manage_crds: ManageCrds = False,
    prometheus: PrometheusUrl = "",
    socket: Annotated[Path | None, typer.Option(hidden=True)] = None,
    local_workloads: Annotated[bool, typer.Option("--local-workloads", hidden=True)] = False,
    log_format: LogFormat = "auto",
) -> None:
    """Run only the controllers, against any Kubernetes, until Ctrl-C. `trimtab install` prints what they need there.

    Example:  trimtab controllers --operator my_operator.py --kubeconfig ~/.kube/config
    """
    from trimtab.cli import controllers as command

    log_as(log_format)
    options = command.Options(
        systems=systems,
        operators=tuple(Path(path) for path in operator or ()),
        kubeconfig=kubeconfig,
        context=context,
        data_dir=data_dir,
        blobs=blobs,
        blobs_token_file=blobs_token_file,
        blobs_ca_file=blobs_ca_file,
        nats=nats,
        nats_credentials_file=nats_credentials_file,
        nats_token_file=nats_token_file,
        nats_ca_file=nats_ca_file,
        elect=leader_election,
        impersonate=impersonate,
        health_host=health_host,
        health_port=health_port,
        webhook_host=webhook_host,
        webhook_port=webhook_port,
        manage=manage_crds,
        prometheus=web_address(prometheus, "--prometheus"),
        socket=socket,
        local=local_workloads,
    )
    raise typer.Exit(command.controllers(options))


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A Python file with controllers, and perhaps kinds.")],
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    crds: Annotated[bool, typer.Option(help="Define the kinds of the file on the server first.")] = True,
    data_dir: DataDir = Path(".trimtab"),
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    nats: NatsUrl = "",
    nats_credentials_file: NatsCredentials = None,
    nats_token_file: NatsToken = None,
    nats_ca_file: NatsCa = None,
    health_port: Annotated[
        int | None, typer.Option(help="Of health and metrics; 0 picks one. None unless given.")
    ] = None,
    log_format: LogFormat = "auto",
) -> None:
    """Run an operator of your own, with your own rights and without election, until Ctrl-C.

    Example:  trimtab run my_operator.py
    """
    from trimtab.cli import controllers as command

    log_as(log_format)
    options = command.Options(
        systems="none",
        operators=(file,),
        kubeconfig=kubeconfig,
        context=context,
        data_dir=data_dir,
        blobs=blobs or str(data_dir / "blobs"),
        blobs_token_file=blobs_token_file,
        blobs_ca_file=blobs_ca_file,
        nats=nats,
        nats_credentials_file=nats_credentials_file,
        nats_token_file=nats_token_file,
        nats_ca_file=nats_ca_file,
        elect=False,
        impersonate=False,
        define=crds,
        health_port=health_port,
    )
    raise typer.Exit(command.controllers(options))


@app.command()
def install(
    systems: Systems = "all",
    operator: Operators = None,
    image: Annotated[str, typer.Option(help="The image of the controllers.", show_default=False)] = "",
    replicas: Annotated[int, typer.Option(help="Of each system; one leads, the others stand by.")] = 2,
    blobs: BlobsUrl = "",
    nats: NatsUrl = "",
    manage_crds: ManageCrds = False,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION", help="Another option of `trimtab controllers`, as --option=--name=value."),
    ] = None,
) -> None:
    """Print all that a cluster needs: kinds, accounts and rights, controllers, webhooks.

    The path of an operator's file is the one inside the image. No secret is printed: the controllers take variables from
    the Secret SYSTEM-env and files from the Secret SYSTEM-files, at /etc/trimtab.

    Example:  trimtab install --operator my_operator.py --image registry.example.com/ops:1 | kubectl apply --server-side -f -
    """
    from trimtab.cli import install as command

    chosen = {"image": image} if image else {}
    operators = tuple(Path(path) for path in operator or ())
    options = command.Options(
        systems=systems,
        operators=operators,
        replicas=replicas,
        blobs=blobs,
        nats=nats,
        manage=manage_crds,
        more=tuple(option or ()),
        **chosen,
    )
    raise typer.Exit(command.install(options))


@app.command()
def get(
    words: Words,
    output: Annotated[
        str, typer.Option("--output", "-o", help="table, wide, yaml, json, name or jsonpath=TEMPLATE.")
    ] = "table",
    watch: Watch = False,
    everywhere: Everywhere = False,
    labels: Labels = "",
    fields: Fields = "",
    ignore_not_found: IgnoreNotFound = False,
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Rows only.")] = False,
    managed_fields: Annotated[bool, typer.Option("--show-managed-fields", help="In yaml and json.")] = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show objects: of a kind, by name, of several kinds (a,b), or of a category (all).

    Example:  trimtab get configmaps -A -l app=web
    """
    from trimtab.cli import get as command

    options = command.Options(
        output=output,
        everywhere=everywhere,
        labels=labels,
        fields=fields,
        watch=watch,
        ignore_not_found=ignore_not_found,
        no_headers=no_headers,
        managed_fields=managed_fields,
    )
    raise typer.Exit(command.get(access(kubeconfig, context, namespace), words, options))


@app.command()
def apply(
    filename: Files = None,
    field_manager: Annotated[str, typer.Option(help="Who owns the fields that are applied.")] = "trimtab",
    force_conflicts: Annotated[bool, typer.Option("--force-conflicts", help="Take fields over from others.")] = False,
    dry_run: DryRun = False,
    server_side: Annotated[bool, typer.Option("--server-side", hidden=True)] = True,  # as kubectl users write it
    recursive: Annotated[bool, typer.Option("--recursive", "-R", help="Folders inside folders, too.")] = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Make the server's objects as files say, by server-side apply.

    Example:  trimtab apply -f manifests/ -f more.yaml
    """
    from trimtab.cli import apply as command

    options = command.Options(manager=field_manager, force=force_conflicts, dry_run=dry_run, recursive=recursive)
    raise typer.Exit(command.apply(access(kubeconfig, context, namespace), filename or [], options))


@app.command()
def delete(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="KIND NAME... | KIND/NAME...", show_default=False)
    ] = None,
    filename: Files = None,
    labels: Labels = "",
    fields: Fields = "",
    all_: Annotated[bool, typer.Option("--all", help="All of the kind, in the namespace.")] = False,
    everywhere: Everywhere = False,
    cascade: Annotated[
        str, typer.Option(help="What becomes of dependents: background, foreground or orphan.")
    ] = "background",
    ignore_not_found: IgnoreNotFound = False,
    wait: Annotated[bool, typer.Option(help="Return only when the objects are gone.")] = True,
    timeout: Annotated[str, typer.Option(help="How long to wait, as 30s or 2m.")] = "60s",
    dry_run: DryRun = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Delete objects by name, by selector or by file.

    Example:  trimtab delete configmap web
    """
    from trimtab.cli import delete as command

    options = command.Options(
        sources=tuple(filename or ()),
        labels=labels,
        fields=fields,
        all=all_,
        everywhere=everywhere,
        cascade=cascade,
        ignore_not_found=ignore_not_found,
        wait=wait,
        timeout=seconds(timeout, "--timeout"),
        dry_run=dry_run,
    )
    raise typer.Exit(command.delete(access(kubeconfig, context, namespace), words or [], options))


@app.command()
def describe(
    words: Words,
    labels: Labels = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show all there is to know of objects: fields, health, conditions, events.

    Example:  trimtab describe deployment web
    """
    from trimtab.cli import describe as command

    raise typer.Exit(command.describe(access(kubeconfig, context, namespace), words, labels))


@app.command()
def wait(
    words: Words,
    until: Annotated[
        str,
        typer.Option("--for", help="ready, delete, create, condition=TYPE[=STATUS] or jsonpath={PATH}[=VALUE]."),
    ] = "ready",
    timeout: Annotated[str, typer.Option(help="How long to wait, as 30s or 2m.")] = "30s",
    labels: Labels = "",
    fields: Fields = "",
    all_: Annotated[bool, typer.Option("--all", help="All of the kind, in the namespace.")] = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Wait until objects are as asked for; exit code 124 when the time is over first.

    Example:  trimtab wait deployment/web --for=condition=Available --timeout 2m
    """
    from trimtab.cli import wait as command

    options = command.Options(
        until=until, timeout=seconds(timeout, "--timeout"), labels=labels, fields=fields, all=all_
    )
    raise typer.Exit(command.wait(access(kubeconfig, context, namespace), words, options))


@app.command()
def tree(words: Words, namespace: Namespace = "", kubeconfig: Kubeconfig = None, context: Context = "") -> None:
    """Show an object and all that it owns, each with its health.

    Example:  trimtab tree deployment web
    """
    from trimtab.cli import tree as command

    raise typer.Exit(command.tree(access(kubeconfig, context, namespace), words))


@app.command()
def events(
    about: Annotated[
        str, typer.Option("--for", help="Only of this object, as deployment/web.", show_default=False)
    ] = "",
    types: Annotated[str, typer.Option(help="Only of these types, as Warning.", show_default=False)] = "",
    watch: Watch = False,
    everywhere: Everywhere = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show what happened lately, the latest last.

    Example:  trimtab events -A --types Warning -w
    """
    from trimtab.cli import events as command

    options = command.Options(about=about, everywhere=everywhere, watch=watch, types=types)
    raise typer.Exit(command.events(access(kubeconfig, context, namespace), options))


@app.command()
def crds(
    group: Annotated[str, typer.Option(help="Only of this group, as discovery.", show_default=False)] = "",
    borrowed: Annotated[
        bool, typer.Option("--borrowed", help="Kinds of others that our systems drive, as Istio's, instead.")
    ] = False,
) -> None:
    """Print the CustomResourceDefinitions of our kinds.

    Example:  trimtab crds | kubectl apply --server-side -f -
    """
    from trimtab.cli import crds as command

    raise typer.Exit(command.crds(group, borrowed))


@app.command()
def version(
    client: Annotated[bool, typer.Option("--client", help="Do not ask the server.")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Print the versions of this program and of the server.

    Example:  trimtab version --client
    """
    from trimtab.cli import version as command

    raise typer.Exit(command.version(access(kubeconfig, context, ""), client))
