"""What traffic does to one route, and how to see the route as it was before.

`driven` gives the routes that stand in for one: conditions on requests first (A/B, cookies), each in a route of its own
whose name marks it as made here; last the route itself, with both destinations. `bare` takes all that away again, and
`key` is equal for a route and for what any traffic makes of it, so that its original is found again after an edit.

A route with other hosts beside ours keeps their shares: only ours is split.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.systems.delivery.kinds.analysis import SessionAffinity
from trimtab.systems.delivery.kinds.fields import CANARY, STABLE
from trimtab.systems.delivery.objects.cookies import SET_COOKIE, carries, ending, names, setting
from trimtab.systems.delivery.objects.matching import all_of
from trimtab.systems.delivery.objects.names import Hosts
from trimtab.systems.delivery.objects.shares import part, scaled

Route = Mapping[str, Any]
HTTP, TLS, TCP = "http", "tls", "tcp"
SECTIONS = (HTTP, TLS, TCP)
MARK = "delivery.trimtab.dev/"
MATCHED, STICKY, STICKY_STABLE, ENDING = "match", "cookie", "stable-cookie", "end-cookie"


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What the canary gets. With `match` (A/B), weight and mirror are of the matched requests, and all others are
    stable's: A/B is weight 100 with a match. With affinity and a cookie, who got the canary gets it again while its weight
    is not 0; at 0, or without a cookie, cookies that are still around are ended."""

    weight: int = 0
    mirror: int = 0
    match: tuple[Mapping[str, Any], ...] = ()
    affinity: SessionAffinity | UnsetType = UNSET
    cookie: str = ""


def is_ours(route: Any, hosts: Hosts) -> bool:
    """Whether some of it goes to stable or to the canary. What another CanaryDeployment made beside a route is its own: it
    makes that anew from the route when the route changes."""
    if _is_made(route) and not is_made_here(route, hosts):
        return False
    return any(_role(destination, hosts) for destination in _destinations(route))


def is_driven(route: Any, hosts: Hosts) -> bool:
    """Whether the canary is in it: then it is not as its author wrote it."""
    if not is_ours(route, hosts):
        return False
    roles = [_role(destination, hosts) for destination in _destinations(route)]
    return CANARY in roles or _mirrors_canary(route, hosts)


def is_made_here(route: Any, hosts: Hosts) -> bool:
    """Whether `driven` made it beside a route."""
    return _is_made(route) and str(route["name"]).startswith(f"{MARK}{hosts.name}/")


def purpose(route: Route, hosts: Hosts) -> str:
    """Why it was made here."""
    return str(route.get("name", "")).removeprefix(f"{MARK}{hosts.name}/").partition("/")[0]


def driven(route: Route, hosts: Hosts, traffic: Traffic) -> list[dict[str, Any]]:
    """The http routes that stand in for this bare one, first match first."""
    if traffic.match:
        rest = _weighted(route, hosts, 0)
        matched = _conditional(route, hosts, MATCHED, traffic.match) if traffic.weight or traffic.mirror else None
        if matched is not None:
            matched = _mirrored(_weighted(matched, hosts, traffic.weight), hosts, traffic.mirror)
        return [*_endings(route, hosts, traffic), *([matched] if matched else []), rest]
    affinity = traffic.affinity
    if isinstance(affinity, UnsetType) or not traffic.weight or not traffic.cookie:
        main = _mirrored(_weighted(route, hosts, traffic.weight), hosts, traffic.mirror)
        return [*_endings(route, hosts, traffic), main]
    cookies = dict(zip((CANARY, STABLE), names(affinity), strict=False))
    made = []
    sticky = _conditional(route, hosts, STICKY, [carries(cookies[CANARY], traffic.cookie)])
    if sticky is not None:
        made.append(_weighted(sticky, hosts, 100))
    if STABLE in cookies and traffic.weight < 100:
        sticky = _conditional(route, hosts, STICKY_STABLE, [carries(cookies[STABLE], traffic.cookie)])
        if sticky is not None:
            made.append(_weighted(sticky, hosts, 0))
    set_by = {role: setting(affinity, name, traffic.cookie) for role, name in cookies.items()}
    main = _mirrored(_weighted(route, hosts, traffic.weight, set_by), hosts, traffic.mirror)
    return [*made, main]


def driven_plain(route: Route, hosts: Hosts, traffic: Traffic) -> dict[str, Any]:
    """A tls or tcp route: it has weights alone. Whom a match means cannot be told there."""
    return _weighted(route, hosts, 0 if traffic.match else traffic.weight)


def bare(route: Route, hosts: Hosts) -> dict[str, Any]:
    """The route without the canary. What it had stable has."""
    kept, gone = [], 0
    for destination in _destinations(route):
        if _role(destination, hosts) == CANARY:
            gone += destination.get("weight") or 0
        else:
            kept.append(_without_cookie(destination) if _role(destination, hosts) else dict(destination))
    ours = next((destination for destination in kept if _role(destination, hosts)), None)
    if ours is None and gone:
        return dict(route)  # only the canary was in it; nothing says where else it should go
    if len(kept) == 1:
        kept[0].pop("weight", None)
    elif ours is not None and gone:
        ours["weight"] = (ours.get("weight") or 0) + gone
    return _without_mirror({**route, "route": kept} if "route" in route else dict(route), hosts)


def key(route: Route, hosts: Hosts) -> dict[str, Any]:
    """The same for a route and for all that `driven` makes of it: our share as a whole, and everything else."""
    plain = _without_mirror(_with_mirrors(route), hosts)
    if not plain.get("mirrors", True):
        del plain["mirrors"]
    destinations = _destinations(route)
    shares = _shares(destinations)
    total = sum(share for share, d in zip(shares, destinations, strict=True) if _role(d, hosts))
    others = []
    for share, destination in zip(shares, destinations, strict=True):
        role = _role(destination, hosts)
        if role == CANARY:
            continue
        said = _without_cookie(destination) if role else dict(destination)
        said.pop("weight", None)
        others.append([said, None if role else share])
    return {**plain, "route": [total, others]}


def canary_weight(route: Route, hosts: Hosts) -> int | None:
    """The canary's percent of our share; None when we have none."""
    shares: dict[str, int] = {STABLE: 0, CANARY: 0}
    destinations = _destinations(route)
    only = len(destinations) == 1
    for destination in destinations:
        if role := _role(destination, hosts):
            shares[role] += 100 if only else _weight(destination)
    whole = sum(shares.values())
    return (shares[CANARY] * 200 + whole) // (2 * whole) if whole else None


def _is_made(route: Any) -> bool:
    name = route.get("name") if isinstance(route, Mapping) else None
    return isinstance(name, str) and name.startswith(MARK)


def _weighted(route: Route, hosts: Hosts, weight: int, cookies: Mapping[str, str] | None = None) -> dict[str, Any]:
    destinations = _destinations(route)
    shares = _shares(destinations)
    ours = [at for at, destination in enumerate(destinations) if _role(destination, hosts) == STABLE]
    total = sum(shares[at] for at in ours)
    moved = part(total, weight)
    for at, share in zip(ours, scaled([shares[at] for at in ours], total - moved), strict=True):
        shares[at] = share
    written = []
    for at, destination in enumerate(destinations):
        made = {**destination, "weight": shares[at]}
        written.append(_setting_cookie(made, cookies, STABLE) if at in ours else made)
        if ours and at == ours[0]:
            made = {**destination, "destination": _canary_of(destination["destination"], hosts), "weight": moved}
            written.append(_setting_cookie(made, cookies, CANARY))
    return {**route, "route": written}


def _conditional(route: Route, hosts: Hosts, purpose: str, matches: Any) -> dict[str, Any] | None:
    """A copy for requests that these conditions mean, too; None when there can be none."""
    said, _ = all_of(route.get("match") or (), matches)
    if not said:
        return None
    name = "/".join(text for text in (f"{MARK}{hosts.name}", purpose, route.get("name")) if text)
    return {**route, "name": name, "match": said}


def _endings(route: Route, hosts: Hosts, traffic: Traffic) -> list[dict[str, Any]]:
    """Cookies of a run that is over: whoever sends one goes where all go, and is told to forget it."""
    affinity = traffic.affinity
    if isinstance(affinity, UnsetType):
        return []
    made = []
    for name in names(affinity):
        told = _conditional(route, hosts, ENDING, [carries(name)])
        if told is not None:
            ended = ending(affinity, name)
            made.append(_weighted(told, hosts, 0 if traffic.match else traffic.weight, {STABLE: ended, CANARY: ended}))
    return made


def _mirrored(route: dict[str, Any], hosts: Hosts, percent: int) -> dict[str, Any]:
    """Copies go to the canary. A route that copies elsewhere already goes on doing so: Istio then wants a list."""
    ours = next((d for d in _destinations(route) if _role(d, hosts) == STABLE), None)
    if not percent or ours is None:
        return route
    target = _canary_of(ours["destination"], hosts)
    if "mirror" not in route and "mirrors" not in route:
        return {**route, "mirror": target, "mirrorPercentage": {"value": percent}}
    listed = _with_mirrors(route)
    return {**listed, "mirrors": [*listed["mirrors"], {"destination": target, "percentage": {"value": percent}}]}


def _with_mirrors(route: Route) -> dict[str, Any]:
    """One `mirror` as a list of one. A percentage of none says nothing."""
    percentage = route.get("mirrorPercentage")
    for old in ("mirrorPercent", "mirror_percent"):
        if percentage is None and route.get(old) is not None:
            percentage = {"value": route[old]}
    gone = ("mirror", "mirrorPercentage", "mirrorPercent", "mirror_percent")
    rest = {name: value for name, value in route.items() if name not in gone}
    if "mirror" not in route:
        return rest
    mirror = {"destination": route["mirror"], **({"percentage": percentage} if percentage is not None else {})}
    return {**rest, "mirrors": [mirror, *(route.get("mirrors") or ())]}


def _without_mirror(route: dict[str, Any], hosts: Hosts) -> dict[str, Any]:
    if isinstance(route.get("mirror"), Mapping) and hosts.role(route["mirror"].get("host")) == CANARY:
        route = {name: value for name, value in route.items() if name not in ("mirror", "mirrorPercentage")}
    if isinstance(route.get("mirrors"), list):
        kept = [mirror for mirror in route["mirrors"] if _role(mirror, hosts) != CANARY]
        if kept != route["mirrors"]:
            route = {**route, "mirrors": kept}
            if not kept:
                del route["mirrors"]
    return route


def _mirrors_canary(route: Any, hosts: Hosts) -> bool:
    return isinstance(route, Mapping) and _without_mirror(dict(route), hosts) != route


def _setting_cookie(destination: dict[str, Any], cookies: Mapping[str, str] | None, role: str) -> dict[str, Any]:
    """By `add`, beside the cookies of the service itself: `set` would replace them."""
    if not cookies or role not in cookies:
        return destination
    headers = destination.get("headers") or {}
    response = headers.get("response") or {}
    added = {**(response.get("add") or {}), SET_COOKIE: cookies[role]}
    return {**destination, "headers": {**headers, "response": {**response, "add": added}}}


def _without_cookie(destination: Route) -> dict[str, Any]:
    """Empty maps go too, left over or not: they say nothing."""
    headers = destination.get("headers") or {}
    response = headers.get("response") or {}
    added = response.get("add") or {}
    left = {name: value for name, value in added.items() if name != SET_COOKIE}
    response = {**{n: v for n, v in response.items() if n != "add"}, **({"add": left} if left else {})}
    headers = {**{n: v for n, v in headers.items() if n != "response"}, **({"response": response} if response else {})}
    rest = {name: value for name, value in destination.items() if name != "headers"}
    return {**rest, **({"headers": headers} if headers else {})}


def _canary_of(destination: Route, hosts: Hosts) -> dict[str, Any]:
    """Subsets are of stable's DestinationRule; the canary's has none."""
    same = {name: value for name, value in destination.items() if name != "subset"}
    return {**same, "host": hosts.canary_of(str(destination["host"]))}


def _destinations(route: Any) -> list[dict[str, Any]]:
    found = route.get("route") if isinstance(route, Mapping) else None
    return [destination for destination in found if isinstance(destination, dict)] if isinstance(found, list) else []


def _role(destination: Any, hosts: Hosts) -> str:
    target = destination.get("destination") if isinstance(destination, Mapping) else None
    return hosts.role(target.get("host")) if isinstance(target, Mapping) else ""


def _shares(destinations: list[dict[str, Any]]) -> list[int]:
    return scaled([_weight(destination) for destination in destinations], 100)


def _weight(destination: Route) -> int:
    weight = destination.get("weight")
    return weight if isinstance(weight, int) and not isinstance(weight, bool) and weight > 0 else 0
