"""All commands, with their options and help. Bodies are imported when a command runs, so that `up` starts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.canary import app as canary
from trimtab.cli.discovery import app as discovery
from trimtab.cli.envtest import app as envtest
from trimtab.cli.git import app as git
from trimtab.cli.hub import app as hub
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
    one_of,
    seconds,
    web_address,
)
from trimtab.cli.rest import app as rest
from trimtab.cli.terraform import app as terraform

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(canary, name="canary")
app.add_typer(discovery, name="discovery")
app.add_typer(envtest, name="envtest")
app.add_typer(git, name="git")
app.add_typer(hub, name="hub")
app.add_typer(images, name="images")
app.add_typer(rest, name="rest")
app.add_typer(terraform, name="terraform")


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
    hub_storage: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="TRIMTAB_HUB_STORAGE",
            help="Where the hub's data are: a file, postgresql://… or https://…; default: DIR/hub.db.",
            show_default=False,
        ),
    ] = "",
    hub_storage_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The token for https://….", show_default=False)
    ] = None,
    hub_storage_ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who signs its certificate, in PEM.", show_default=False)
    ] = None,
    proto: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[GROUP/VERSION=]FILE", help="A proto3 file with a further kind of the hub; may be repeated."
        ),
    ] = None,
    group_suffix: Annotated[
        list[str] | None,
        typer.Option(metavar="DOMAIN", help="Serve the hub's kinds under this suffix, too; may be repeated."),
    ] = None,
    audit_policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What the audit log tells: an audit.k8s.io/v1 Policy.", show_default=False),
    ] = None,
    audit_log: Annotated[
        str,
        typer.Option(metavar="FILE", help="Where audit events go, as JSON lines; - is the output.", show_default=False),
    ] = "",
    audit_log_maxsize: Annotated[
        int, typer.Option(metavar="MB", help="An audit log of this size is put aside, and a new one begins.")
    ] = 100,
    audit_log_maxbackup: Annotated[
        int, typer.Option(metavar="N", help="So many of those put aside are kept; 0 is all.")
    ] = 10,
    service_account_issuer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Who issues tokens of service accounts. May be repeated: the first issues, all are accepted.",
        ),
    ] = None,
    service_account_jwks_uri: Annotated[
        str,
        typer.Option(metavar="URL", help="Where others find the keys for these tokens.", show_default=False),
    ] = "",
    prometheus: PrometheusUrl = "",
    log_format: LogFormat = "auto",
) -> None:
    """Run the server and the controllers on this machine until Ctrl-C.

    Example:  trimtab up --data-dir /var/lib/trimtab --operator my_operator.py
    """
    from trimtab.cli.up import HubPlace, audit_settings, issuer_settings, run

    log_as(log_format)
    if not 0 <= port <= 65535:
        raise typer.BadParameter(f"{port} is not in the range 0 to 65535", param_hint="--port")
    for name in tls_host or ():
        if not all(char.isalnum() or char in ".-:*" for char in name) or not name:
            raise typer.BadParameter(f'"{name}" is neither a host name nor an address', param_hint="--tls-host")
    operators = tuple(Path(path) for path in operator or ())
    asked = web_address(prometheus, "--prometheus")
    names = tuple(tls_host or ())
    hub = HubPlace(
        storage=hub_storage,
        suffixes=tuple(group_suffix or ()),
        token_file=hub_storage_token_file,
        ca_file=hub_storage_ca_file,
        protos=tuple(proto or ()),
    )
    raise typer.Exit(
        run(
            data_dir,
            host,
            port,
            names,
            systems,
            operators,
            log_format,
            asked,
            local_workloads,
            hub,
            audit_settings(audit_policy, audit_log, audit_log_maxsize, audit_log_maxbackup),
            issuer_settings(tuple(service_account_issuer or ()), service_account_jwks_uri),
        )
    )


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
    group_suffix: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
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
        suffixes=tuple(group_suffix or ()),
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
    hub: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="The hub's storage, as postgresql://HOST/DATABASE without a password: its kinds are served by a hub "
            "behind the cluster's API. Without it they are custom resources.",
            show_default=False,
        ),
    ] = "",
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
        hub=hub,
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


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive, a .tar.gz.")],
    data_dir: DataDir = Path(".trimtab"),
    with_keys: Annotated[
        bool,
        typer.Option("--with-keys", help="Take keys, certificates and tokens along: who has the file has the server."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show what FILE holds.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read all of FILE and check that it is whole.")] = False,
) -> None:
    """Write all that a data directory holds into one file, while its server goes on. Secrets are in it: keep it safe.

    Example:  trimtab backup --data-dir /var/lib/trimtab monday.tar.gz
    """
    from trimtab.cli import backup as command

    if list_ and verify:
        raise typer.BadParameter("say --list or --verify, not both", param_hint="--list")
    if list_ or verify:
        raise typer.Exit(command.listed(file) if list_ else command.verified(file))
    options = command.Options(data_dir=data_dir, keys=with_keys, force=force)
    raise typer.Exit(command.backup(file, options))


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An archive of `trimtab backup`.")],
    data_dir: DataDir = Path(".trimtab"),
    server: Annotated[
        bool, typer.Option("--server", help="Bring objects back to the running server of the kubeconfig instead.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --server: do it, after showing the plan.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --server: where the server's object differs, the archive wins.")
    ] = False,
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="With --server: a Python file with further kinds of the hub; may be repeated."
        ),
    ] = None,
    proto: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[GROUP/VERSION=]FILE",
            help="With --server: a proto3 file with a further kind of the hub; may be repeated.",
        ),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Make a new data directory from a backup; or, with --server, bring its objects back to a running server: those of the
    store, and the hub's with their versions and files.

    Example:  trimtab restore monday.tar.gz --data-dir /var/lib/trimtab-new
    """
    if not server:
        from trimtab.cli import restore as command

        if yes or overwrite:
            raise typer.BadParameter("is for --server; a data directory is never overwritten", param_hint="--overwrite")
        raise typer.Exit(command.offline(file, data_dir))
    from trimtab.cli import restore_server
    from trimtab.cli.blobs import Place

    options = restore_server.Options(
        yes=yes,
        overwrite=overwrite,
        blobs=Place(blobs, blobs_token_file, blobs_ca_file),
        operators=tuple(map(Path, operator or ())),
        protos=tuple(proto or ()),
    )
    raise typer.Exit(restore_server.online(file, access(kubeconfig, context, ""), options))


@app.command()
def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell that completes.")],
) -> None:
    """Print a script by which a shell completes commands, options, kinds and names of objects.

    Example:  trimtab completion bash > ~/.local/share/bash-completion/completions/trimtab
    """
    from trimtab.cli import completion as command

    print(command.script(app, one_of(shell, command.SHELLS, "SHELL")), end="")
