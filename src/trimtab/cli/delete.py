"""`trimtab delete`: by name, by selector or by file; and waits until what was deleted is gone."""

from __future__ import annotations

import asyncio

import msgspec
import orjson

from trimtab.cli.access import Access, Session, session
from trimtab.cli.apply import resource_of
from trimtab.cli.codes import FAILED, OK, TIMED_OUT, USAGE, Problem, complain, plain, run, together, told
from trimtab.cli.manifests import Bad, read
from trimtab.cli.targets import namespace_of, targets
from trimtab.client.discovery import ApiResource
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing, Named, Query
from trimtab.client.transport import Call, document_of
from trimtab.model.errors import StatusError

CASCADES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    sources: tuple[str, ...] = ()
    labels: str = ""
    fields: str = ""
    all: bool = False
    everywhere: bool = False
    cascade: str = "background"
    ignore_not_found: bool = False
    wait: bool = True
    timeout: float = 60.0
    dry_run: bool = False


class Victim(msgspec.Struct, frozen=True):
    resource: ApiResource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f'{self.resource.label} "{self.name}"'


def delete(access: Access, words: list[str], options: Options) -> int:
    return run(_delete(access, words, options))


async def _delete(access: Access, words: list[str], options: Options) -> int:
    if options.cascade not in CASCADES:
        raise Problem(f'--cascade "{options.cascade}" is not one of {", ".join(CASCADES)}', USAGE)
    if bool(words) == bool(options.sources):
        raise Problem("name objects, or files with -f", USAGE)
    codes: list[int] = []
    async with session(access) as server:
        if options.sources:
            victims = await _in_files(server, options, codes)
        else:
            victims = await _chosen(server, words, options)
        going: list[tuple[Victim, str]] = []
        for victim in victims:
            try:
                uid = await _remove(server, victim, options)
            except StatusError as error:
                if error.code == 404 and options.ignore_not_found:
                    continue
                code, message = told(error)
                complain(message)
                codes.append(code)
                continue
            print(plain(f"{victim} deleted") + (" (dry run)" if options.dry_run else ""), flush=True)
            if uid:
                going.append((victim, uid))
        if options.wait and not options.dry_run:
            codes += await asyncio.gather(*(_gone(server, victim, uid, options.timeout) for victim, uid in going))
        if not victims and not codes:
            print("nothing to delete")
    return together(codes)


async def _in_files(server: Session, options: Options, codes: list[int]) -> list[Victim]:
    victims: list[Victim] = []
    for manifest in reversed(read(options.sources)):  # what was made last goes first
        if isinstance(manifest, Bad):
            complain(f"{manifest.where}: {manifest.problem}")
            codes.append(FAILED)
            continue
        try:
            resource = await resource_of(server, manifest)
        except Problem as error:
            if not options.ignore_not_found:
                complain(f"{manifest.where}: {error}")
                codes.append(error.code)
            continue
        namespace = manifest.namespace or server.namespace
        victims.append(Victim(resource, namespace if resource.namespaced else "", manifest.metadata.get("name", "")))
    return victims


async def _chosen(server: Session, words: list[str], options: Options) -> list[Victim]:
    victims: list[Victim] = []
    for target in await targets(server, words):
        by_selector = bool(options.labels or options.fields or options.all)
        if bool(target.names) == by_selector:
            raise Problem("name objects, or choose them with -l, --field-selector or --all", USAGE)
        if options.everywhere and not by_selector:
            raise Problem("a name goes not with all namespaces", USAGE)
        namespace = namespace_of(server, target.resource, options.everywhere)
        if target.names:
            victims += [Victim(target.resource, namespace, name) for name in target.names]
            continue
        query = Query(namespace=namespace, labels=options.labels, fields=options.fields, metadata_only=True)
        listing = await server.client.list(_named(target.resource), query)
        victims += [Victim(target.resource, item.namespace, item.name) for item in listing.items]
    return victims


async def _remove(server: Session, victim: Victim, options: Options) -> str:
    """Delete; returns the uid when the object is still going, "" when it is gone."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": CASCADES[options.cascade]}
    if options.dry_run:
        body["dryRun"] = ["All"]  # type: ignore[assignment]
    path = victim.resource.place.path(victim.namespace, victim.name)
    answer = document_of((await server.transport.call(Call(method="DELETE", path=path, body=orjson.dumps(body)))).body)
    if answer.get("kind") == "Status":
        return ""
    uid: str = answer["metadata"].get("uid", "")
    return uid


async def _gone(server: Session, victim: Victim, uid: str, timeout: float) -> int:
    """Wait until the object is gone, or is another one of the same name."""
    query = Query(namespace=victim.namespace, fields=f"metadata.name={victim.name}", metadata_only=True)
    following = follow(server.client, _named(victim.resource), query, patience=0)
    try:
        async with asyncio.timeout(timeout):
            async for told_ in following:
                if isinstance(told_, Listing):
                    if not any(item.metadata.uid == uid for item in told_.items):
                        return OK
                elif told_.object is not None and (told_.type is EventType.DELETED or told_.object.metadata.uid != uid):
                    return OK
    except TimeoutError:
        complain(f"{victim} is still there after {timeout:g} s: finalizers may hold it")
        return TIMED_OUT
    except StatusError as error:
        if error.code == 404:  # the kind itself is gone
            return OK
        raise
    finally:
        await following.aclose()
    return OK


def _named(resource: ApiResource) -> Named:
    return Named(resource.api_version, resource.kind)
