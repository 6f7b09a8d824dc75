"""`trimtab wait`: return when objects are as asked for, or when the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import NOT_FOUND, OK, TIMED_OUT, USAGE, Problem, code_of, complain, plain, run, together
from trimtab.cli.output import named
from trimtab.cli.targets import namespace_of, targets
from trimtab.client.discovery import ApiResource
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing, Named, Query
from trimtab.model.errors import StatusError
from trimtab.model.health import State, health

Document = dict[str, Any]
Judge = Callable[[Document | None], str]
"""What still lacks, in words; "" when it is as asked for. None: there is no such object."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    until: str
    timeout: float = 30.0
    labels: str = ""
    fields: str = ""
    all: bool = False


def wait(access: Access, words: list[str], options: Options) -> int:
    return run(_wait(access, words, options))


async def _wait(access: Access, words: list[str], options: Options) -> int:
    judge = judge_of(options.until)
    async with session(access) as server:
        awaited: list[tuple[ApiResource, str]] = []
        for target in await targets(server, words):
            by_selector = bool(options.labels or options.fields or options.all)
            if bool(target.names) == by_selector:
                raise Problem("name objects, or choose them with -l, --field-selector or --all", USAGE)
            awaited += [(target.resource, name) for name in target.names]
            if by_selector:
                kind = Named(target.resource.api_version, target.resource.kind)
                namespace = namespace_of(server, target.resource)
                query = Query(namespace=namespace, labels=options.labels, fields=options.fields, metadata_only=True)
                awaited += [(target.resource, item.name) for item in (await server.client.list(kind, query)).items]
        if not awaited and options.until != "delete":
            complain("there is nothing to wait for")
            return NOT_FOUND
        lenient = options.until in ("delete", "create")
        ended = await asyncio.gather(
            *(_one(server, resource, name, judge, options.timeout, lenient) for resource, name in awaited)
        )
    return together(list(ended))


async def _one(server: Session, resource: ApiResource, name: str, judge: Judge, timeout: float, lenient: bool) -> int:
    """Follow one object until it is as asked for. One that is not there is a failure unless that may be meant."""
    query = Query(namespace=namespace_of(server, resource), fields=f"metadata.name={name}")
    following = follow(server.client, Named(resource.api_version, resource.kind), query, patience=0)
    lacking = "nothing is known of it yet"
    try:
        async with asyncio.timeout(timeout):
            async for told in following:
                document = _document(told)
                if document is None and not lenient and isinstance(told, Listing):
                    raise StatusError(404, "NotFound", f"{named(resource, name)} not found")
                lacking = judge(document)
                if not lacking:
                    print(plain(f"{named(resource, name)} condition met"), flush=True)
                    return OK
    except TimeoutError:
        complain(f"{named(resource, name)}: timed out after {timeout:g} s: {lacking}")
        return TIMED_OUT
    except StatusError as error:
        complain(error.message)
        return code_of(error)
    finally:
        await following.aclose()
    return OK


def _document(told: Any) -> Document | None:
    if isinstance(told, Listing):
        return told.items[0].raw if told.items else None
    return None if told.type is EventType.DELETED else told.object.raw


def judge_of(text: str) -> Judge:
    """Read what `--for` asks: ready, delete, create, condition=TYPE[=STATUS] or jsonpath={PATH}[=VALUE]."""
    word, _, rest = text.partition("=")
    if text == "delete":
        return lambda document: "" if document is None else "it is still there"
    if text == "create":
        return lambda document: "it is not there" if document is None else ""
    if text == "ready":
        return _ready
    if word == "condition" and rest:
        kind, _, status = rest.partition("=")
        return lambda document: _condition(document, kind, status or "True")
    if word == "jsonpath" and rest:
        return _by_path(rest)
    raise Problem(
        f'--for "{text}" is not one of ready, delete, create, condition=TYPE[=STATUS], jsonpath={{PATH}}[=VALUE]', USAGE
    )


def _ready(document: Document | None) -> str:
    if document is None:
        return "it is gone"
    found = health(document)
    return "" if found.state is State.CURRENT else f"{found.state.value}: {found.reason}"


def _condition(document: Document | None, kind: str, wanted: str) -> str:
    """A condition that speaks of an older generation says nothing of this one."""
    status = (document or {}).get("status") or {}
    generation = ((document or {}).get("metadata") or {}).get("generation")
    for condition in status.get("conditions") or ():
        if str(condition.get("type")).lower() != kind.lower():
            continue
        observed = condition.get("observedGeneration", status.get("observedGeneration"))
        if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
            return f"{kind} speaks of generation {observed}, not yet of {generation}"
        if str(condition.get("status")).lower() == wanted.lower():
            return ""
        why = condition.get("message") or condition.get("reason") or ""
        return f"{kind} is {condition.get('status')}" + (f": {why}" if why else "")
    return f"it has no condition {kind}"


def _by_path(text: str) -> Judge:
    from trimtab.model import jsonpath
    from trimtab.model.jsonpath_steps import printed

    end = text.find("}=") + 1 if text.startswith("{") else text.find("=")
    path, wanted = (text[:end], text[end + 1 :]) if end > 0 else (text, None)
    try:
        compiled = jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise Problem(f"--for jsonpath: {error}", USAGE) from None

    def judge(document: Document | None) -> str:
        found = compiled.find(document) if document is not None else []
        if not found:
            return f"{path} has no value"
        value = printed(found[0])
        return "" if wanted in (None, value) else f"{path} is {value}, not {wanted}"

    return judge
