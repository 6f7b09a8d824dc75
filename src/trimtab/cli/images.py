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
    Kubeconfig,
    Namespace,
    access,
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
    """Discover a registry's images now, and show how far it is and what came of it; exit code 1 when it failed.

    Where some images failed, the others are there: they are named, and the exit code is 0.

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
    """Show what is known to be wrong with an image, the worst first, and what could not be checked.

    Example:  trimtab images report team/app:1.0 --severity high
    """
    from trimtab.cli import images_report
    from trimtab.cli.blobs import Place
    from trimtab.systems.images.vulnerabilities.severity import LABELS

    least = one_of(severity.capitalize(), LABELS, "--severity") if severity else ""
    form = one_of(output, ("table", "json"), "--output")
    options = images_report.Options(least=least, everything=all_, json=form == "json")
    place = Place(blobs, blobs_token_file, blobs_ca_file)
    reached = access(kubeconfig, context, namespace)
    raise typer.Exit(images_report.report(reached, _wanted(image, platform, registry), options, place))


def _wanted(text: str, platform: str, registry: str) -> Wanted:
    from trimtab.cli.images_find import Wanted

    return Wanted(text, platform, registry)
