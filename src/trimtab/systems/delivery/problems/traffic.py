"""What is wrong with `spec.analysis` but for its metrics and webhooks: who gets the canary when, and for how long."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import UnsetType

from trimtab.model.errors import FieldError
from trimtab.systems.delivery.kinds import Analysis
from trimtab.systems.delivery.kinds.analysis import SessionAffinity
from trimtab.systems.delivery.problems.addresses import address_problems
from trimtab.systems.delivery.problems.findings import (
    forbidden,
    length,
    missing,
    object_name,
    repeated,
    wrong,
)
from trimtab.systems.delivery.problems.matching import match_problems

PATH = "spec.analysis"
HOUR, DAY = 3600.0, 86400.0


def analysis_problems(analysis: Analysis, *, http: bool) -> Iterator[FieldError]:
    """`http`: whether a port of the Service may speak it."""
    yield from length(f"{PATH}.interval", analysis.interval, 1.0, DAY)
    yield from length(f"{PATH}.settle", analysis.settle, 0.0, HOUR)
    yield from length(f"{PATH}.scaleDownDelay", analysis.scale_down_delay, 0.0, DAY)
    yield from _step_problems(analysis)
    yield from _match_problems(analysis)
    yield from repeated((f"{PATH}.manual[{i}]", gate) for i, gate in enumerate(analysis.manual))
    if not isinstance(analysis.session_affinity, UnsetType):
        yield from _cookie_problems(analysis.session_affinity)
    if not http:
        for name, used in (
            ("mirror", analysis.mirror),
            ("match", bool(analysis.match)),
            ("sessionAffinity", not isinstance(analysis.session_affinity, UnsetType)),
        ):
            if used:
                yield forbidden(
                    f"{PATH}.{name}", "is of HTTP, and the Service's ports say that they speak something else"
                )
    if not isinstance(analysis.prometheus, UnsetType):
        server = analysis.prometheus
        if not isinstance(server.address, UnsetType):
            yield from address_problems(f"{PATH}.prometheus.address", server.address)
        if not isinstance(server.secret_ref, UnsetType):
            yield from object_name(f"{PATH}.prometheus.secretRef.name", server.secret_ref.name)


def _step_problems(analysis: Analysis) -> Iterator[FieldError]:
    given = {
        "stepWeight": analysis.step_weight,
        "stepWeights": analysis.step_weights,
        "iterations": analysis.iterations,
    }
    names = [name for name, value in given.items() if not isinstance(value, UnsetType)]
    if not names:
        yield missing(PATH, "one of stepWeight, stepWeights and iterations; without analysis changes go straight out")
    for name in names[1:]:
        yield forbidden(f"{PATH}.{name}", f"must not be given together with {names[0]}")
    if not isinstance(analysis.step_weight, UnsetType) and analysis.step_weight > analysis.max_weight:
        yield wrong(
            f"{PATH}.maxWeight", analysis.max_weight, f"must not be less than stepWeight ({analysis.step_weight})"
        )
    if not isinstance(analysis.step_weights, UnsetType):
        weights = analysis.step_weights
        for i in range(1, len(weights)):
            if weights[i] <= weights[i - 1]:
                detail = f"must be greater than the one before it ({weights[i - 1]})"
                yield wrong(f"{PATH}.stepWeights[{i}]", weights[i], detail)


def _match_problems(analysis: Analysis) -> Iterator[FieldError]:
    if analysis.match and isinstance(analysis.iterations, UnsetType):
        yield missing(f"{PATH}.iterations", "match is A/B: say how many checks it must pass")
    for i, match in enumerate(analysis.match):
        path = f"{PATH}.match[{i}]"
        if not match:
            yield wrong(path, match, "must say something: all requests would go to the canary")
        yield from match_problems(path, match)


def _cookie_problems(affinity: SessionAffinity) -> Iterator[FieldError]:
    path = f"{PATH}.sessionAffinity"
    for field, name in (("cookieName", affinity.cookie_name), ("stableCookieName", affinity.stable_cookie_name)):
        if not isinstance(name, UnsetType) and not _TOKEN.fullmatch(name):
            yield wrong(f"{path}.{field}", name, "must be a cookie's name: letters, digits and !#$%&'*+-.^_`|~")
    if affinity.cookie_name == affinity.stable_cookie_name:
        yield wrong(f"{path}.stableCookieName", affinity.cookie_name, "must differ from cookieName")
    if not affinity.path.startswith("/") or not _ATTRIBUTE.fullmatch(affinity.path):
        yield wrong(f"{path}.path", affinity.path, "must begin with / and have no semicolon")
    if not isinstance(affinity.domain, UnsetType) and not _DOMAIN.fullmatch(affinity.domain):
        yield wrong(f"{path}.domain", affinity.domain, "must be a domain such as example.com")
    if affinity.same_site == "None" and not affinity.secure:
        yield wrong(f"{path}.secure", False, "must be true with sameSite None: browsers drop the cookie otherwise")


_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")  # RFC 9110 §5.6.2
_ATTRIBUTE = re.compile(r"[ -:<-~]+")  # printable ASCII without a semicolon: RFC 6265 §4.1.1
_DOMAIN = re.compile(r"\.?[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*")
