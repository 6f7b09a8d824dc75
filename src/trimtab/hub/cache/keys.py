"""Keys: the type, the organization, the name and the options as canonical JSON. Equal questions have equal keys.

Lineage is no part of them: what is kept has it, and the proxy above takes it out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from trimtab.hub.cache.generations import ALL, Scope
from trimtab.hub.contract import GetOptions, ListOptions, Options

_encode = msgspec.json.Encoder().encode


def key_of(type: str, name: str, options: Options) -> bytes:  # noqa: A002
    """`name` is "" for lists."""
    if options.include_lineage:
        options = msgspec.structs.replace(options, include_lineage=False)
    return _encode((type, options.organization, name, msgspec.Raw(options.key())))


def get_key(type: str, organization: str, project: str, name: str) -> bytes:  # noqa: A002
    return key_of(type, name, GetOptions(organization=organization, project=project))


def scope_of(type: str, options: GetOptions | ListOptions) -> Scope:  # noqa: A002
    if isinstance(options, ListOptions) and options.all_projects:
        return Scope(type, options.organization, ALL)
    return Scope(type, options.organization, options.project)


def owner(key: bytes, replicas: Sequence[str]) -> str:
    """Rendezvous: each replica draws a number for the key, and the highest owns it. One that comes or goes moves only
    the keys that it wins or had. "" when there is nobody."""
    return max(replicas, key=lambda replica: (_draw(key, replica), replica), default="")


def _draw(key: bytes, replica: str) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=8, key=replica.encode()[:64]).digest())
