"""HTTPMatchRequest: which requests a route is for, as Envoy's RouteMatch."""

from __future__ import annotations

import msgspec

from trimtab.systems.local.gateway.istio.reading import TOKEN, Document, Fields, string_match


class Entry(msgspec.Struct, frozen=True):
    """Where requests come in: at a port of a Service, or at the ingress, which has none."""

    port: int = 0

    @property
    def is_ingress(self) -> bool:
        return not self.port


EVERYTHING: Document = {"prefix": "/"}


def matches(route: Fields, entry: Entry) -> list[Document]:
    """What an HTTPRoute matches at an entry: any of these. Empty when nothing can."""
    if "match" not in route:
        route.ignore("match")
        return [EVERYTHING]
    found = [match(each, entry) for each in route.parts("match")]
    return [each for each in found if each is not None] if found else [EVERYTHING]


def match(fields: Fields, entry: Entry) -> Document | None:
    """One HTTPMatchRequest; None when it holds for no request at this entry."""
    fields.ignore("name", "statPrefix")
    ignore_case = fields.flag("ignoreUriCase") or False
    made = _path(fields.part("uri"), ignore_case)
    headers = []
    for field, header in (("method", ":method"), ("scheme", ":scheme"), ("authority", ":authority")):
        if field in fields:
            headers.append(_header(header, string_match(fields.part(field))))
        fields.ignore(field)
    headers += _headers(fields.part("headers"))
    headers += [_inverted(each) for each in _headers(fields.part("withoutHeaders"))]
    if headers:
        made["headers"] = headers
    parameters = []
    params = fields.part("queryParams")
    for name in params.names():
        matcher = string_match(params.part(name))
        if not name or len(name) > 1024:
            params.refuse("is no name of a query parameter", name[:80])
            continue
        parameters.append({"name": name, **({"string_match": matcher} if matcher else {"present_match": True})})
    if parameters:
        made["query_parameters"] = parameters
    here = _is_here(fields, entry)
    for name in ("sourceLabels", "sourceNamespace"):
        if name in fields:
            fields.refuse("cannot be known here: processes of one machine do not say which workload they are", name)
        fields.ignore(name)
    fields.rest()
    return made if here else None


def _path(uri: Fields, ignore_case: bool) -> Document:
    matcher = string_match(uri)
    if matcher is None:
        return dict(EVERYTHING)
    made: Document
    if "safe_regex" in matcher:
        pattern = matcher["safe_regex"]["regex"]
        return {"safe_regex": {"regex": f"(?i){pattern}" if ignore_case else pattern}}
    made = {"path": matcher["exact"]} if "exact" in matcher else {"prefix": matcher["prefix"]}
    if "?" in next(iter(made.values())) or "#" in next(iter(made.values())):
        uri.refuse("is a path only: write queryParams for what comes after a question mark")
    if ignore_case:
        made["case_sensitive"] = False
    return made


def _headers(fields: Fields) -> list[Document]:
    found = []
    for name in fields.names():
        if not (TOKEN.fullmatch(name) or name in (":path", ":method", ":scheme", ":authority")):
            fields.refuse("is no name of a header", name[:80])
            continue
        found.append(_header(name, string_match(fields.part(name))))
    return found


def _header(name: str, matcher: Document | None) -> Document:
    return {"name": name, **({"string_match": matcher} if matcher else {"present_match": True})}


def _inverted(header: Document) -> Document:
    """A header that is not there has not that value, either."""
    if "string_match" in header:
        return {**header, "invert_match": True, "treat_missing_header_as_empty": True}
    return {**header, "invert_match": True}


def _is_here(fields: Fields, entry: Entry) -> bool:
    """The ingress stands for every gateway, and for every port of one."""
    port, gateways = fields.number("port", 1, 65535), fields.texts("gateways")
    if entry.is_ingress:
        return not gateways or gateways != ["mesh"]
    return (port is None or port == entry.port) and (not gateways or "mesh" in gateways)
