"""`trimtab images …`: discover a registry's images, see what is in them and what is wrong with them, and what it needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from trimtab.cli.options import (
    BlobsCa,
    BlobsToken,
    BlobsUrl,
    Context,
    DataDir,
    Kubeconfig,
    LogFormat,
    Namespace,
    NatsCa,
    NatsCredentials,
    NatsToken,
    NatsUrl,
    access,
    log_as,
    one_of,
    seconds,
)

if TYPE_CHECKING:
    from trimtab.cli.images_find import Wanted

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Images: discover what a registry holds, see what is in an image and what is wrong with it.

    Example:  trimtab images discover lab && trimtab images report team/app:1.0
    """,
)

RegistryName = Annotated[str, typer.Argument(metavar="REGISTRY", help="The name of a Registry.", show_default=False)]
ImageName = Annotated[
    str, typer.Argument(metavar="IMAGE", help="The name of an Image, or repository:tag.", show_default=False)
]
Platform = Annotated[str, typer.Option(help="Of several platforms this one, as linux/arm64.", show_default=False)]
OfRegistry = Annotated[
    str, typer.Option("--registry", help="Of several registries that have the tag, this one.", show_default=False)
]
Source = Annotated[Path | None, typer.Argument(metavar="DIR|ZIP", help="OSV documents in JSON.", show_default=False)]


@app.command()
def discover(
    registry: RegistryName,
    until: Annotated[
        str, typer.Option(help="What every image must have in the end: Images, SBOMs or Reports.")
    ] = "SBOMs",
    wait: Annotated[bool, typer.Option(help="Follow the discovery until it ends.")] = True,
    timeout: Annotated[str, typer.Option(help="How long to follow it, as 30s or 2h.")] = "1h",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Discover a registry's images now.

    It shows how far it is, then what came of it; the exit code is 1 when it failed. Where some images failed, the
    others are there: they are named, and the exit code is 0.

    Example:  trimtab images discover lab --until Reports
    """
    from trimtab.cli import images_discover
    from trimtab.systems.images.kinds.job import Until

    stage = one_of(until, get_args(Until), "--until")
    limit = seconds(timeout, "--timeout")
    reached = access(kubeconfig, context, namespace)
    raise typer.Exit(images_discover.discover(reached, registry, stage, wait=wait, timeout=limit))


@app.command()
def sbom(
    image: ImageName,
    form: Annotated[str, typer.Option("--format", help="spdx (2.3) or cyclonedx (1.6), both in JSON.")] = "spdx",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there.", show_default=False)
    ] = None,
    platform: Platform = "",
    registry: OfRegistry = "",
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Print what is in an image: its software bill of materials.

    Without --blobs, documents are read from the folder of the `trimtab up` that the kubeconfig is of.

    Example:  trimtab images sbom team/app:1.0 --platform linux/arm64 --format cyclonedx
    """
    from trimtab.cli import images_sbom
    from trimtab.cli.blobs import Place

    chosen = one_of(form, images_sbom.FORMATS, "--format")
    place = Place(blobs, blobs_token_file, blobs_ca_file)
    reached = access(kubeconfig, context, namespace)
    raise typer.Exit(images_sbom.sbom(reached, _wanted(image, platform, registry), chosen, output, place))


@app.command()
def report(
    image: ImageName,
    severity: Annotated[
        str,
        typer.Option(help="Only findings as bad as this, or worse: critical, high, medium, low.", show_default=False),
    ] = "",
    all_: Annotated[bool, typer.Option("--all", help="Suppressed findings too, and who said so.")] = False,
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.")] = "table",
    platform: Platform = "",
    registry: OfRegistry = "",
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show what is wrong with an image, the worst first.

    Then it says how many findings there are, and what could not be checked.

    Example:  trimtab images report team/app:1.0 --severity high
    """
    from trimtab.cli import images_report
    from trimtab.cli.blobs import Place
    from trimtab.systems.images.vulnerabilities.severity import LABELS

    least = one_of(severity, LABELS, "--severity") if severity else ""
    form = one_of(output, ("table", "json"), "--output")
    options = images_report.Options(least=least, everything=all_, json=form == "json")
    place = Place(blobs, blobs_token_file, blobs_ca_file)
    reached = access(kubeconfig, context, namespace)
    raise typer.Exit(images_report.report(reached, _wanted(image, platform, registry), options, place))


@app.command()
def release(
    registry: RegistryName, namespace: Namespace = "", kubeconfig: Kubeconfig = None, context: Context = ""
) -> None:
    """Let go images that a discovery held back.

    They are missing in the registry and were kept, because they were too many at once: the condition RemovalHeld.

    Example:  trimtab images release lab
    """
    from trimtab.cli import images_release

    raise typer.Exit(images_release.release(access(kubeconfig, context, namespace), registry))


@app.command()
def preview(
    registry: Annotated[
        str, typer.Argument(metavar="[REGISTRY]", help="The name of a Registry.", show_default=False)
    ] = "",
    filename: Annotated[
        Path | None,
        typer.Option("--filename", "-f", metavar="FILE", help="A Registry that is not applied.", show_default=False),
    ] = None,
    tags: Annotated[int, typer.Option(min=0, help="Selected tags of each repository that are named.")] = 3,
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.")] = "table",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show which tags a Registry's filters select.

    The registry is listed from this machine, and nothing is written.

    Example:  trimtab images preview -f registry.yaml --tags 10
    """
    from trimtab.cli import images_preview

    form = one_of(output, ("table", "json"), "--output")
    options = images_preview.Options(file=filename, tags=tags, json=form == "json")
    raise typer.Exit(images_preview.preview(access(kubeconfig, context, namespace), registry, options))


@app.command("import-db")
def import_db(
    source: Source = None,
    replace: Annotated[bool, typer.Option("--replace", help="Begin anew, instead of adding to what is there.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Only say what is there.")] = False,
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Import advisories on packages: OSV documents.

    They are what reports are made of; osv.dev has them for download. Documents that are there already are renewed by
    newer ones. A folder may have zip files in it.

    Example:  trimtab images import-db ./osv && trimtab images import-db --show
    """
    from trimtab.cli import images_import_db
    from trimtab.cli.blobs import Place

    place = Place(blobs, blobs_token_file, blobs_ca_file)
    reached = access(kubeconfig, context, "")
    if show:
        if source is not None or replace:
            raise typer.BadParameter("it imports nothing: leave DIR|ZIP and --replace out", param_hint="--show")
        raise typer.Exit(images_import_db.show(reached, place))
    if source is None:
        raise typer.BadParameter("name a folder or a zip file with OSV documents, or --show", param_hint="DIR|ZIP")
    raise typer.Exit(images_import_db.import_db(reached, source, replace=replace, place=place))


@app.command("import-vex")
def import_vex(
    source: Annotated[
        Path, typer.Argument(metavar="DIR|ZIP|FILE", help="A VEX repository, or one document.", show_default=False)
    ],
    name: Annotated[str, typer.Argument(help="The VEXSource to make, or to renew.", show_default=False)],
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Import what vendors say of findings: OpenVEX.

    A VEXSource makes the statements count for all images of its namespace.

    Example:  trimtab images import-vex vexhub.zip vexhub
    """
    from trimtab.cli import images_import_vex
    from trimtab.cli.blobs import Place

    place = Place(blobs, blobs_token_file, blobs_ca_file)
    raise typer.Exit(images_import_vex.import_vex(access(kubeconfig, context, namespace), source, name, place))


@app.command()
def worker(
    nats: NatsUrl = "",
    nats_credentials_file: NatsCredentials = None,
    nats_token_file: NatsToken = None,
    nats_ca_file: NatsCa = None,
    blobs: BlobsUrl = "",
    blobs_token_file: BlobsToken = None,
    blobs_ca_file: BlobsCa = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Images at once.")] = 8,
    name: Annotated[
        str, typer.Option(help="What it is called; default: the host, and something of its own.", show_default=False)
    ] = "",
    impersonate: Annotated[bool, typer.Option(help="Act as the account of the system images.")] = True,
    data_dir: DataDir = Path(".trimtab"),
    log_format: LogFormat = "auto",
) -> None:
    """Work on image discovery here, too, until Ctrl-C.

    As many as wanted may run, on any machine. They have the queue and the blobs of the controllers.

    Example:  trimtab images worker --nats nats://queue:4222 --blobs postgresql://db/blobs --kubeconfig ~/.kube/config
    """
    from trimtab.cli import images_worker

    log_as(log_format)
    options = images_worker.Options(
        data_dir=data_dir,
        blobs=blobs,
        blobs_token_file=blobs_token_file,
        blobs_ca_file=blobs_ca_file,
        nats=nats,
        nats_credentials_file=nats_credentials_file,
        nats_token_file=nats_token_file,
        nats_ca_file=nats_ca_file,
        kubeconfig=kubeconfig,
        context=context,
        impersonate=impersonate,
        concurrency=concurrency,
        name=name,
    )
    raise typer.Exit(images_worker.work(options))


@app.command()
def listen(
    where: Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Port 0 picks one.")] = "127.0.0.1:7480",
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="In PEM; without, it is plain HTTP.", show_default=False)
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key in PEM.", show_default=False)] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    log_format: LogFormat = "auto",
) -> None:
    """Take what registries tell of pushes, until Ctrl-C.

    What was pushed is discovered at once. A registry sends its notifications to /NAMESPACE/REGISTRY, with the token
    that the Registry's spec.notifications names.

    Example:  trimtab images listen --listen 0.0.0.0:7480 --tls-certificate tls.crt --tls-key tls.key
    """
    from trimtab.cli import images_listen

    log_as(log_format)
    options = images_listen.Options(listen=where, certificate=tls_certificate, key=tls_key)
    raise typer.Exit(images_listen.listen(access(kubeconfig, context, ""), options))


def _wanted(text: str, platform: str, registry: str) -> Wanted:
    from trimtab.cli.images_find import Wanted

    return Wanted(text, platform, registry)
