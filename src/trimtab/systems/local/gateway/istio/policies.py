"""Retries, faults, CORS and rewrites of a route."""

from __future__ import annotations

import math
import re

from trimtab.systems.local.gateway.istio.reading import Document, Fields, checked_regex, string_match

TYPE = "type.googleapis.com/envoy.extensions.filters.http."
ATTEMPTS = 2
RETRY_ON = "connect-failure,refused-stream,unavailable,cancelled,reset-before-request"
"""What Istio retries when nobody says otherwise, and a connection that broke before the request was on it: in all of
these the workload has not begun, so a retry repeats nothing."""
_STATUS = re.compile(r"[1-5][0-9]{2}")
_CONDITIONS = frozenset(
    (
        *("5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "refused-stream"),
        *("retriable-4xx", "retriable-status-codes", "retriable-headers", "envoy-ratelimited"),
        *("cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"),
    )
)


def retries(route: Fields) -> Document | None:
    """Envoy's RetryPolicy: Istio's default when the route says nothing, None for no retry."""
    if "retries" not in route:
        route.ignore("retries")
        return retry(ATTEMPTS, RETRY_ON, [], "")
    fields = route.part("retries")
    attempts = fields.number("attempts", 0, 1000)
    timeout = fields.seconds("perTryTimeout")
    conditions, statuses = [], []
    for word in (fields.text("retryOn") or RETRY_ON).replace(" ", "").split(","):
        if _STATUS.fullmatch(word):
            statuses.append(int(word))
        elif word in _CONDITIONS:
            conditions.append(word)
        elif word:
            fields.refuse(f"{word[:40]!r} is no condition that Envoy knows, nor a status", "retryOn")
    fields.flag("retryIgnorePreviousHosts")
    if fields.flag("retryRemoteLocalities"):
        fields.warn("means nothing here: there is one locality", "retryRemoteLocalities")
    backoff = fields.seconds("backoff")
    fields.rest()
    if attempts == 0:
        return None
    if statuses and "retriable-status-codes" not in conditions:
        conditions.append("retriable-status-codes")
    made = retry(ATTEMPTS if attempts is None else attempts, ",".join(conditions), statuses, timeout)
    if backoff and _positive(backoff):
        made["retry_back_off"] = {"base_interval": backoff}
    return made


def retry(attempts: int, conditions: str, statuses: list[int], timeout: str) -> Document:
    return {
        "retry_on": conditions,
        "num_retries": attempts,
        "host_selection_retry_max_attempts": 5,
        "retry_host_predicate": [
            {
                "name": "envoy.retry_host_predicates.previous_hosts",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
                },
            }
        ],
        **({"retriable_status_codes": statuses} if statuses else {}),
        **({"per_try_timeout": timeout} if timeout and _positive(timeout) else {}),
    }


def _positive(seconds: str) -> bool:
    return float(seconds.removesuffix("s")) > 0


def fault(fields: Fields) -> Document | None:
    """Envoy's HTTPFault."""
    made: Document = {}
    if "delay" in fields:
        delay = fields.part("delay")
        length = delay.seconds("fixedDelay")
        if "exponentialDelay" in delay:
            delay.refuse("is not known to Envoy", "exponentialDelay")
            delay.ignore("exponentialDelay")
        elif not length or not _positive(length):
            delay.refuse("has no fixedDelay")
        share = _percentage(delay)
        if length and _positive(length):
            made["delay"] = {"fixed_delay": length, "percentage": share}
        delay.rest()
    if "abort" in fields:
        abort = fields.part("abort")
        status, grpc = abort.number("httpStatus", 200, 599), abort.text("grpcStatus")
        if grpc and grpc not in _GRPC:
            abort.refuse(f"{grpc[:40]!r} is no status of gRPC", "grpcStatus")
        if (status is None) == (grpc not in _GRPC):
            abort.refuse("needs one of httpStatus and grpcStatus")
        share = _percentage(abort)
        if status is not None:
            made["abort"] = {"http_status": status, "percentage": share}
        elif grpc in _GRPC:
            made["abort"] = {"grpc_status": _GRPC.index(grpc), "percentage": share}
        abort.rest()
    fields.rest()
    return {"@type": f"{TYPE}fault.v3.HTTPFault", **made} if made else None


_GRPC = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)


def _percentage(fields: Fields) -> Document:
    """All, when nothing is said."""
    share = fields.part("percentage").share("value") if "percentage" in fields else fields.share("percent")
    fields.ignore("percentage", "percent")
    return fraction(100.0 if share is None else share)


def fraction(share: float) -> Document:
    """A part of a hundred, as exactly as Envoy can have it."""
    return {"numerator": math.floor(share * 10_000 + 0.5), "denominator": "MILLION"}


def cors(fields: Fields) -> Document:
    """Envoy's CorsPolicy."""
    origins = [string_match(each) for each in fields.parts("allowOrigins")]
    origins += [
        {"safe_regex": {"regex": ".*"}} if each == "*" else {"exact": each} for each in fields.texts("allowOrigin")
    ]
    made: Document = {
        "@type": f"{TYPE}cors.v3.CorsPolicy",
        "allow_origin_string_match": [each or {"safe_regex": {"regex": ".*"}} for each in origins],
    }
    for name, ours in (
        ("allowMethods", "allow_methods"),
        ("allowHeaders", "allow_headers"),
        ("exposeHeaders", "expose_headers"),
    ):
        if values := fields.texts(name):
            made[ours] = ",".join(values)
    if age := fields.seconds("maxAge"):
        made["max_age"] = age.removesuffix("s").partition(".")[0]
    credentials = fields.flag("allowCredentials")
    if credentials is not None:
        made["allow_credentials"] = credentials
    unmatched = fields.text("unmatchedPreflights")
    if unmatched not in ("", "UNSPECIFIED", "FORWARD", "IGNORE"):
        fields.refuse("is neither FORWARD nor IGNORE", "unmatchedPreflights")
    made["forward_not_matching_preflights"] = unmatched != "IGNORE"
    fields.rest()
    return made


def rewrite(fields: Fields, matched: Document) -> Document:
    """The fields of a RouteAction that give the request another path or authority."""
    made: Document = {}
    uri, authority = fields.text("uri"), fields.text("authority")
    regex = fields.part("uriRegexRewrite")
    if "uriRegexRewrite" in fields:
        if uri:
            fields.refuse("has uri and uriRegexRewrite: only one can hold")
        pattern, by = checked_regex(regex, "match", regex.text("match")), regex.text("rewrite")
        if re.search(r"\\(?![0-9\\])", by) or (re.search(r"\\[1-9]", by) and _groups(pattern) < _highest(by)):
            regex.refuse("names a group that the pattern has not", "rewrite")
        elif not uri:
            made["regex_rewrite"] = {"pattern": {"regex": pattern}, "substitution": by}
        regex.rest()
    elif uri:
        if not PATH.fullmatch(uri):
            fields.refuse("is no path", "uri")
        elif uri == "/" and "prefix" in matched and not matched["prefix"].endswith("/"):
            # Taking "/a" off "/a/b" must not leave "//b".
            begin = (
                ("(?i)" if matched.get("case_sensitive") is False else "") + "^" + re.escape(matched["prefix"]) + "/?"
            )
            made["regex_rewrite"] = {"pattern": {"regex": begin}, "substitution": "/"}
        else:
            made["prefix_rewrite"] = uri
    if authority:
        made["host_rewrite_literal"] = authority
        if not HOST.fullmatch(authority):
            fields.refuse("is no host", "authority")
            del made["host_rewrite_literal"]
    fields.rest()
    return made


def _groups(pattern: str) -> int:
    import re2

    return int(re2.compile(pattern).groups)


def _highest(substitution: str) -> int:
    return max(int(each) for each in re.findall(r"\\([0-9])", substitution))


PATH = re.compile(r"/[!-~]*")
HOST = re.compile(r"[0-9A-Za-z_.:\[\]-]{1,255}")
