"""`trimtab hub serve`: the hub's kinds behind the API server of a cluster, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trimtab.cli.options import Context, LogFormat, Operators, Systems, log_as

PORT = 7444


def serve(
    storage: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="TRIMTAB_HUB_STORAGE",
            help="Where the data are: postgresql://HOST/DATABASE, https://HOST, or a file for a single replica.",
            show_default=False,
        ),
    ],
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Of the cluster. Default: as everywhere, and in a pod that of the pod.", show_default=False),
    ] = None,
    context: Context = "",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 picks a free one.")] = PORT,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert",
            "--tls-certificate",
            metavar="FILE",
            help="In PEM, for trimtab-hub.trimtab-system.svc. Without it one is made, kept in a Secret, and told to the "
            "cluster in the APIServices.",
            show_default=False,
        ),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key in PEM.", show_default=False)] = None,
    requestheader_client_ca_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Believe proxies with a certificate of this authority (PEM). Default: as the cluster publishes it in "
            "kube-system/extension-apiserver-authentication.",
            show_default=False,
        ),
    ] = None,
    requestheader_allowed_names: Annotated[
        str, typer.Option(metavar="A,B", help="Only those with these names.", show_default=False)
    ] = "",
    bus: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="How replicas tell each other of changes: nats://… or postgresql://…; default: the storage, where it is "
            "PostgreSQL. `none` for a single replica.",
            show_default=False,
        ),
    ] = "",
    peer_port: Annotated[
        int | None, typer.Option(help="Where other replicas ask this one for what it has cached.", show_default=False)
    ] = None,
    peer_host: Annotated[
        str, typer.Option(envvar="POD_IP", help="By which address they reach it; default: --host.", show_default=False)
    ] = "",
    storage_token_file: Annotated[Path | None, typer.Option(metavar="FILE", help="For a storage over HTTPS.")] = None,
    storage_ca_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Trust this authority for it.")] = None,
    systems: Systems = "all",
    operator: Operators = None,
    group_suffix: Annotated[
        list[str] | None,
        typer.Option(metavar="DOMAIN", help="Serve the kinds under this suffix, too; may be repeated."),
    ] = None,
    log_format: LogFormat = "auto",
) -> None:
    """Serve the hub's kinds behind the API server of a cluster, until Ctrl-C.

    The cluster's API server says who asks, and its roles say what they may. `trimtab install` prints what it needs to find
    us: APIServices, a Service, and rights.

    Example:  trimtab hub serve --storage postgresql://db/hub --kubeconfig ~/.kube/config
    """
    from trimtab.cli import hub_serving

    log_as(log_format)
    options = hub_serving.Options(
        storage=storage,
        storage_token=storage_token_file,
        storage_ca=storage_ca_file,
        kubeconfig=kubeconfig,
        context=context,
        host=host,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        proxy_ca=requestheader_client_ca_file,
        proxy_names=tuple(name for name in requestheader_allowed_names.split(",") if name),
        bus=bus,
        peer_port=peer_port,
        peer_host=peer_host,
        systems=systems,
        operators=tuple(Path(path) for path in operator or ()),
        suffixes=tuple(group_suffix or ()),
    )
    raise typer.Exit(hub_serving.run(options))
