"""From a rule's entries to addresses: prefixes as they are, DNS names asked, Pods and Services from the cache.

What cannot be resolved is told for its entry, and `complete` is False: then no Target misses anything for being out of
scope.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.client.protocol import Client, Query
from trimtab.model.kubernetes import Pod, Service
from trimtab.model.selectors import LabelSelector
from trimtab.systems.discovery.scope.addresses import MAX_ADDRESSES, Addresses, Interval, parse
from trimtab.systems.discovery.scope.implementations import DnsName, Entry, Pods, Services

PATIENCE = 5.0
"""Seconds that one DNS name may take."""
AT_A_TIME = 4  # as many as the resolver's threads, so that none waits for its turn within its time
MAX_OF_A_NAME = 16
ENDED = ("Succeeded", "Failed")
"""Phases of a Pod that does not come back."""

Resolve = Callable[[str], Awaitable[Sequence[str]]]


class Place(msgspec.Struct, frozen=True):
    """An entry's addresses. `hosts` names those that have a name of their own."""

    entry: Entry
    addresses: Addresses
    hosts: Mapping[str, str] = {}
    problem: str = ""


class Scope(msgspec.Struct, frozen=True):
    """Everything that the entries mean, right now."""

    addresses: Addresses
    places: tuple[Place, ...]

    @property
    def complete(self) -> bool:
        return not any(place.problem for place in self.places)

    @property
    def follows(self) -> bool:
        """Whether some addresses come and go by themselves."""
        return any(not isinstance(place.entry.source, Addresses) for place in self.places)

    def followed(self, address: str) -> bool:
        """Whether an address comes from such a source alone."""
        written = (place for place in self.places if isinstance(place.entry.source, Addresses))
        return not any(address in place.addresses for place in written)


class TooMany(Exception):  # noqa: N818 - it reads as what is wrong
    """More addresses than a rule may have."""


async def system_resolver(name: str) -> Sequence[str]:
    """What this machine's resolver says, IPv4 first."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    addresses = dict.fromkeys(str(item[4][0]) for item in sorted(found, key=lambda item: item[0] != socket.AF_INET))
    return [address for address in addresses if "%" not in address]


async def resolved(entries: Sequence[Entry], client: Client, namespace: str, resolve: Resolve | None) -> Scope:
    """All entries; without `resolve` DNS names have no address. It raises TooMany, or that the API cannot be read."""
    turns = asyncio.Semaphore(AT_A_TIME)

    async def place(entry: Entry) -> Place:
        match entry.source:
            case Pods(selector=selector):
                return await _pods(entry, selector, client, namespace)
            case Services() as services:
                return await _services(entry, services, client, namespace, resolve)
            case DnsName(name=name):
                async with turns:
                    return Place(entry, Addresses()) if resolve is None else await _named(entry, name, resolve)
            case addresses:
                hosts = dict.fromkeys(addresses, entry.host_name) if entry.host_name else {}
                return Place(entry, addresses, hosts)

    places = tuple(await asyncio.gather(*map(place, entries)))
    intervals = [interval for place in places for interval in place.addresses.intervals]
    addresses = Addresses(intervals)
    if addresses.size > MAX_ADDRESSES:
        raise TooMany(f"the rule has {addresses.size} addresses, and {MAX_ADDRESSES} is the most: make several of it")
    return Scope(addresses, places)


async def _named(entry: Entry, name: str, resolve: Resolve) -> Place:
    try:
        found = await asyncio.wait_for(resolve(name), PATIENCE)
    except TimeoutError:
        return Place(entry, Addresses(), problem=f"the DNS name {name} was not answered within {PATIENCE:g} seconds")
    except (OSError, UnicodeError) as error:
        return Place(entry, Addresses(), problem=f"the DNS name {name} has no address: {_said(error)}")
    if not found:
        return Place(entry, Addresses(), problem=f"the DNS name {name} has no address")
    addresses = [address for address in found if _is_probed(address)][:MAX_OF_A_NAME]
    if not addresses:
        return Place(entry, Addresses(), problem=f"the DNS name {name} has no address that can be probed: {found[0]}")
    return Place(entry, _set(addresses), dict.fromkeys(addresses, entry.host_name or name))


async def _pods(entry: Entry, selector: LabelSelector, client: Client, namespace: str) -> Place:
    hosts: dict[str, str] = {}
    for pod in await _selected(Pod, selector, client, namespace):
        address = (pod.status or {}).get("podIP")
        if _is_up(pod) and isinstance(address, str) and _is_probed(address):
            hosts[address] = pod.name
    return Place(entry, _set(hosts), hosts)


def _is_up(pod: Pod) -> bool:
    """The address of a Pod that has ended may be another's by now, whatever its conditions say."""
    status = pod.status or {}
    if pod.metadata.deletion_timestamp or status.get("phase") in ENDED:
        return False
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())


async def _services(entry: Entry, services: Services, client: Client, namespace: str, resolve: Resolve | None) -> Place:
    hosts: dict[str, str] = {}
    problems = []
    for service in await _selected(Service, services.selector, client, namespace):
        address = (service.spec or {}).get("clusterIP")
        if isinstance(address, str) and _is_probed(address):
            hosts[address] = service.name
            continue
        if resolve is None:
            problems.append(f"the Service {service.name} has no address in the cluster")
            continue
        name = f"{service.name}.{namespace}.svc.{services.domain}"
        found = await _named(entry, name, resolve)
        hosts |= dict.fromkeys(found.hosts, service.name)
        if found.problem:
            problems.append(found.problem)
    return Place(entry, _set(hosts), hosts, "; ".join(problems[:4]))


async def _selected(kind: Any, selector: LabelSelector, client: Client, namespace: str) -> list[Any]:
    listed = await client.list(kind, Query(namespace=namespace))
    return [item for item in listed.items if selector.matches(item.metadata.labels or {})]


def _is_probed(address: str) -> bool:
    """Not so are names, and addresses that no single device has: link-local, multicast, unspecified."""
    try:
        return bool(parse(address))
    except ValueError:
        return False


def _set(addresses: Sequence[str] | Mapping[str, str]) -> Addresses:
    intervals: list[Interval] = [interval for address in addresses for interval in parse(address)]
    return Addresses(intervals)


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
