"""Commands that run the server, controllers and operators, and that print what a cluster needs for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.options import (
    BlobsCa,
    BlobsToken,
    BlobsUrl,
    Context,
    DataDir,
    Kubeconfig,
    LogFormat,
    ManageCrds,
    NatsCa,
    NatsCredentials,
    NatsToken,
    NatsUrl,
    Operators,
    PrometheusUrl,
    Systems,
    log_as,
    web_address,
)


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
    group_suffix: Annotated[
        list[str] | None,
        typer.Option(metavar="DOMAIN", help="With --hub: serve its kinds under this suffix, too; may be repeated."),
    ] = None,
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
        suffixes=tuple(group_suffix or ()),
        manage=manage_crds,
        more=tuple(option or ()),
        **chosen,
    )
    raise typer.Exit(command.install(options))


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
