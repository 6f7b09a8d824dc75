"""Kubernetes' `ip`, `cidr` and `url` libraries."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from typing import Any

from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.strings import quote, texts
from trimtab.model.cel.values import Function, Opaque

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):")
_ESCAPED = re.compile(r"%(?![0-9a-fA-F]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:%\[\]<>\"\x80-\U0010ffff]*\Z")
_PATH_SAFE = "/-_.~!$&'()*+,;=:@[]"


class Ip(Opaque):
    __slots__ = ("address",)
    type_name = "net.IP"

    def __init__(self, address: Address) -> None:
        self.address = address

    def equals(self, other: Any) -> bool:
        return bool(self.address == other.address)

    def shown(self) -> str:
        return str(self.address)

    def __len__(self) -> int:
        return self.address.max_prefixlen // 8


class Cidr(Opaque):
    __slots__ = ("address", "bits")
    type_name = "net.CIDR"

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def equals(self, other: Any) -> bool:
        return bool(self.address == other.address and self.bits == other.bits)

    def shown(self) -> str:
        return f"{self.address}/{self.bits}"

    def prefix(self, bits: int) -> int:
        return int(self.address) >> (self.address.max_prefixlen - bits)

    def __len__(self) -> int:
        return (self.bits + 7) // 8


class Url(Opaque):
    __slots__ = ("host", "path", "query", "scheme")
    type_name = "kubernetes.URL"

    def __init__(self, scheme: str, host: str, path: str, query: str) -> None:
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query

    def equals(self, other: Any) -> bool:
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    @property
    def port(self) -> str:
        tail = self.host[self.host.rfind("]") + 1 :]
        return tail.partition(":")[2]

    @property
    def hostname(self) -> str:
        bare = self.host[: len(self.host) - len(self.port) - 1] if self.port else self.host.removesuffix(":")
        return bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare


def parse_ip(text: Any) -> Ip:
    texts(text)
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        reason = "unable to parse IP"
        if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", text):
            leading = any(len(field) > 1 and field[0] == "0" for field in text.split("."))
            reason = "IPv4 field has octet with leading zero" if leading else "IPv4 field has value >255"
        raise EvaluationError(
            f"IP Address {quote(text)} parse error during conversion from string: ParseAddr({quote(text)}): {reason}"
        ) from None
    if "%" in text:
        raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
    if address.version == 6 and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Ip(address)


def parse_cidr(text: Any) -> Cidr:
    texts(text)
    body, slash, bits = text.rpartition("/")
    prefix = "network address parse error during conversion from string: "
    try:
        address = ipaddress.ip_address(body)
        if not slash or not re.fullmatch(r"0|[1-9]\d{0,2}", bits) or int(bits) > address.max_prefixlen or "%" in body:
            raise ValueError
    except ValueError:
        reason = "no '/'" if not slash else "unable to parse IP"
        raise EvaluationError(f"{prefix}{prefix}netip.ParsePrefix({quote(text)}): {reason}") from None
    if address.version == 6 and address.ipv4_mapped is not None:
        raise EvaluationError(f"{prefix}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Cidr(address, int(bits))


def parse_url(text: Any) -> Url:
    """An absolute URL or an absolute path."""
    texts(text)
    try:
        return _url(text)
    except ValueError as error:
        raise EvaluationError(f"URL parse error during conversion from string: parse {quote(text)}: {error}") from None


def _url(text: str) -> Url:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text:
        raise ValueError("empty url")
    match = _SCHEME.match(text)
    scheme, rest = (match[1].lower(), text[match.end() :]) if match else ("", text)
    if not match and text[0] == ":":
        raise ValueError("missing protocol scheme")
    rest = rest.partition("#")[0]
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, "", "", query)
        raise ValueError("invalid URI for request")
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _host(authority.rpartition("@")[2])
    if (bad := _ESCAPED.search(rest)) is not None:
        raise ValueError(f'invalid URL escape "{rest[bad.start() : bad.start() + 3]}"')
    return Url(scheme, host, rest, query)


def _host(host: str) -> str:
    if host.startswith("["):
        closing = host.rfind("]")
        if closing < 0:
            raise ValueError("missing ']' in host")
        tail = host[closing + 1 :]
    else:
        tail = host[host.rfind(":") :] if ":" in host else ""
    if tail and not re.fullmatch(r":[0-9]*", tail):
        raise ValueError(f'invalid port "{tail}" after host')
    if _HOST.match(host) is None:
        bad = next(char for char in host if _HOST.match(char) is None)
        raise ValueError(f'invalid character "{bad}" in host name')
    return host


def escaped_path(url: Any) -> str:
    path = _url_of(url).path
    if all(char in _PATH_SAFE or (char.isascii() and char.isalnum()) or char == "%" for char in path):
        return path
    return urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~$&+,:;=@")


def query_of(url: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in _url_of(url).query.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        if _ESCAPED.search(key) or _ESCAPED.search(value):
            continue
        found.setdefault(urllib.parse.unquote_plus(key), []).append(urllib.parse.unquote_plus(value))
    return found


def _accepted(parse: Function) -> Function:
    def accepted(text: Any) -> bool:
        texts(text)
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return accepted


def _ip_of(value: Any) -> Address:
    if type(value) is Ip:
        return value.address
    raise no_such_overload()


def _cidr_of(value: Any) -> Cidr:
    if type(value) is Cidr:
        return value
    raise no_such_overload()


def _url_of(value: Any) -> Url:
    if type(value) is Url:
        return value
    raise no_such_overload()


def contains_ip(network: Any, other: Any) -> bool:
    cidr = _cidr_of(network)
    try:
        address = _ip_of(parse_ip(other) if type(other) is str else other)
    except EvaluationError:  # the real server has no other words for a text that is no address
        raise no_such_overload() from None
    if address.version != cidr.address.version:
        return False
    return cidr.prefix(cidr.bits) == int(address) >> (address.max_prefixlen - cidr.bits)


def contains_cidr(network: Any, other: Any) -> bool:
    cidr = _cidr_of(network)
    inner = _cidr_of(parse_cidr(other) if type(other) is str else other)
    return inner.bits >= cidr.bits and contains_ip(cidr, Ip(inner.address))


def masked(network: Any) -> Cidr:
    cidr = _cidr_of(network)
    kept = cidr.prefix(cidr.bits) << (cidr.address.max_prefixlen - cidr.bits)
    return Cidr(type(cidr.address)(kept), cidr.bits)


def _link_local_multicast(value: Any) -> bool:
    address = _ip_of(value)
    if address.version == 4:
        return int(address) >> 8 == 0xE00000  # 224.0.0.0/24
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _global_unicast(value: Any) -> bool:
    address = _ip_of(value)
    refused = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not refused and str(address) != "255.255.255.255"


FUNCTIONS: dict[str, Function] = {
    "ip": parse_ip,
    "isIP": _accepted(parse_ip),
    "ip.isCanonical": lambda text: parse_ip(text).shown() == text,
    ".family": lambda ip: _ip_of(ip).version,
    ".isUnspecified": lambda ip: _ip_of(ip).is_unspecified,
    ".isLoopback": lambda ip: _ip_of(ip).is_loopback,
    ".isLinkLocalMulticast": _link_local_multicast,
    ".isLinkLocalUnicast": lambda ip: _ip_of(ip).is_link_local,
    ".isGlobalUnicast": _global_unicast,
    "cidr": parse_cidr,
    "isCIDR": _accepted(parse_cidr),
    ".ip": lambda cidr: Ip(_cidr_of(cidr).address),
    ".containsIP": contains_ip,
    ".containsCIDR": contains_cidr,
    ".prefixLength": lambda cidr: _cidr_of(cidr).bits,
    ".masked": masked,
    "url": parse_url,
    "isURL": _accepted(parse_url),
    ".getScheme": lambda url: _url_of(url).scheme,
    ".getHost": lambda url: _url_of(url).host,
    ".getHostname": lambda url: _url_of(url).hostname,
    ".getPort": lambda url: _url_of(url).port,
    ".getEscapedPath": escaped_path,
    ".getQuery": query_of,
}
