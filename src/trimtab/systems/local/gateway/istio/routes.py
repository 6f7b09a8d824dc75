"""HTTPRoute: one route of a VirtualService, as Envoy's routes at one entry."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from trimtab.systems.local.gateway.istio.headers import headers
from trimtab.systems.local.gateway.istio.matching import Entry, matches
from trimtab.systems.local.gateway.istio.policies import HOST, PATH, cors, fault, fraction, retries, rewrite
from trimtab.systems.local.gateway.istio.reading import UINT32, Document, Fields

Cluster = Callable[[Fields, Entry], str]
"""The cluster of a Destination; "" when it names none, which is then noted."""

CODES = {
    301: "MOVED_PERMANENTLY",
    302: "FOUND",
    303: "SEE_OTHER",
    307: "TEMPORARY_REDIRECT",
    308: "PERMANENT_REDIRECT",
}


def routes(spec: Fields, entry: Entry, cluster: Cluster) -> list[Document]:
    """All HTTP routes of a VirtualService, in its order."""
    return [made for route in spec.parts("http") for made in http_route(route, entry, cluster)]


def http_route(route: Fields, entry: Entry, cluster: Cluster) -> list[Document]:
    """One Envoy route for each match. The whole is read even where nothing matches: its problems count."""
    found = matches(route, entry)
    name = route.text("name")
    changed, authority = headers(route.part("headers"))
    filters = _filters(route)
    action = _action(route, entry, cluster, changed, authority)
    rewriting = route.part("rewrite") if "rewrite" in route else None
    route.ignore("rewrite", "statPrefix")
    if "delegate" in route:
        route.refuse("is not known here: write the routes themselves", "delegate")
        route.ignore("delegate")
    if rewriting is not None:
        rewrite(rewriting, {})  # for its problems, also when nothing matches
    route.rest()
    made = []
    for match in found:
        one = {"match": match, **changed, **action}
        if rewriting is not None and "route" in one:
            one["route"] = {**one["route"], **rewrite(rewriting, match)}
        if name:
            one["name"] = name
        if filters:
            one["typed_per_filter_config"] = filters
        made.append(one)
    return made


def _action(route: Fields, entry: Entry, cluster: Cluster, changed: Document, authority: str) -> Document:
    kinds = [name for name in ("route", "redirect", "directResponse") if name in route]
    if len(kinds) > 1:
        route.refuse(f"has {' and '.join(kinds)}: only one can hold")
    if not kinds and "delegate" not in route:
        route.refuse("has none of route, redirect and directResponse")
    if kinds[:1] == ["redirect"]:
        made = {"redirect": _redirect(route.part("redirect"))}
    elif kinds[:1] == ["directResponse"]:
        made = {"direct_response": _direct(route.part("directResponse"))}
    else:
        made = {"route": _forward(route, entry, cluster, authority)}
    for name in ("route", "redirect", "directResponse", "mirror", "mirrors", "mirrorPercentage", "mirrorPercent",
                 "mirror_percent", "timeout", "retries"):  # fmt: skip
        route.ignore(name)
    return made


def _forward(route: Fields, entry: Entry, cluster: Cluster, authority: str) -> Document:
    parts = route.parts("route")
    weights = []
    for part in parts:
        weight = part.number("weight", 0, UINT32)
        weights.append(
            (100 if len(parts) == 1 else 0) if weight is None or (len(parts) == 1 and not weight) else weight
        )
    if not parts and "route" in route:
        route.refuse("has no destination", "route")
    if parts and not sum(weights):
        route.refuse("has weights that are all 0: then no destination gets a request", "route")
    if sum(weights) > UINT32:
        route.refuse(f"has weights whose sum is more than {UINT32}", "route")
    clusters = []
    for part, weight in zip(parts, weights, strict=True):
        changed, host = headers(part.part("headers"))
        name = cluster(part.part("destination"), entry)
        part.rest()
        clusters.append({"name": name, "weight": weight, **changed, **({"host_rewrite_literal": host} if host else {})})
    policy = retries(route)
    mirrors = _mirrors(route, entry, cluster)
    return {
        "weighted_clusters": {"clusters": clusters},
        "timeout": route.seconds("timeout") or "0s",
        **({"retry_policy": policy} if policy else {}),
        **({"request_mirror_policies": mirrors} if mirrors else {}),
        **({"host_rewrite_literal": authority} if authority else {}),
    }


def _mirrors(route: Fields, entry: Entry, cluster: Cluster) -> list[Document]:
    found = []
    if "mirror" in route:
        share = route.part("mirrorPercentage").share("value") if "mirrorPercentage" in route else None
        for old in ("mirrorPercent", "mirror_percent"):
            share = route.share(old) if old in route and share is None else share
        found.append((cluster(route.part("mirror"), entry), share))
    for part in route.parts("mirrors"):
        share = part.part("percentage").share("value") if "percentage" in part else None
        found.append((cluster(part.part("destination"), entry), share))
        part.ignore("percentage")
        part.rest()
    return [
        {"cluster": name, "runtime_fraction": {"default_value": fraction(100.0 if share is None else share)}}
        for name, share in found
        if share != 0
    ]


def _redirect(fields: Fields) -> Document:
    made: Document = {}
    uri, authority, scheme = fields.text("uri"), fields.text("authority"), fields.text("scheme")
    if uri:
        if PATH.fullmatch(uri):
            made["path_redirect"] = uri
        else:
            fields.refuse("is no path", "uri")
    if authority:
        if HOST.fullmatch(authority):
            made["host_redirect"] = authority
        else:
            fields.refuse("is no host", "authority")
    if scheme:
        if scheme.isalpha() and scheme.isascii():
            made["scheme_redirect"] = scheme
        else:
            fields.refuse("is no scheme", "scheme")
    port = fields.number("port", 1, 65535)
    if port is not None:
        made["port_redirect"] = port
    if fields.text("derivePort") == "FROM_REQUEST_PORT":
        fields.refuse("is not known here: give the port", "derivePort")
    code = fields.number("redirectCode", 300, 399)
    if code is not None and code not in CODES:
        fields.refuse(f"is none of {', '.join(map(str, CODES))}", "redirectCode")
    elif code is not None:
        made["response_code"] = CODES[code]
    fields.rest()
    return made


def _direct(fields: Fields) -> Document:
    status = fields.number("status", 200, 599)
    if status is None:
        fields.refuse("needs a status", "status")
    body = fields.part("body")
    text, encoded = body.text("string"), body.text("bytes")
    if encoded:
        try:
            base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            body.refuse("is no base64", "bytes")
            encoded = ""
    if len(text.encode()) > 4096 or len(encoded) > 5000:
        body.refuse("is longer than 4096 bytes")
        text = encoded = ""
    body.rest()
    fields.rest()
    made: Document = {"status": status or 500}
    if text:
        made["body"] = {"inline_string": text}
    elif encoded:
        made["body"] = {"inline_bytes": encoded}
    return made


def _filters(route: Fields) -> Document:
    made: Document = {}
    if "fault" in route and (injected := fault(route.part("fault"))):
        made["envoy.filters.http.fault"] = injected
    if "corsPolicy" in route:
        made["envoy.filters.http.cors"] = cors(route.part("corsPolicy"))
    route.ignore("fault", "corsPolicy")
    return made
