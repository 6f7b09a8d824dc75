"""Commands about objects of a server, for those without kubectl."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtab.cli.options import (
    Context,
    DryRun,
    Everywhere,
    Fields,
    Files,
    IgnoreNotFound,
    Kubeconfig,
    Labels,
    Namespace,
    Watch,
    Words,
    access,
    seconds,
)


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


def tree(words: Words, namespace: Namespace = "", kubeconfig: Kubeconfig = None, context: Context = "") -> None:
    """Show an object and all that it owns, each with its health.

    Example:  trimtab tree deployment web
    """
    from trimtab.cli import tree as command

    raise typer.Exit(command.tree(access(kubeconfig, context, namespace), words))


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
