"""Which URLs of repositories are allowed, and their parts. Pure.

Git understands much more than a user should be able to name: `ext::` runs a command, a leading dash is an option, a
path is this machine's disk.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

import msgspec

from trimtab.runtime.git.access import Remote
from trimtab.runtime.git.errors import BadAddress

LONGEST = 2048
_SCP = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.+-]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>(?!//).+)"
)
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_PLAIN = {"http": "the credentials and all files", "git": "all files"}


class Address(msgspec.Struct, frozen=True, kw_only=True):
    scheme: str
    """https, http, ssh, git or file."""
    host: str = ""
    user: str = ""
    port: int | None = None
    url: str
    """For the git program, always in URL form."""


def parse(remote: Remote) -> Address:
    """BadAddress when it is not one that we would contact."""
    url = remote.url
    if not url:
        raise BadAddress("spec.endpoint: must not be empty; such as https://git.example.com/team/configuration.git")
    if len(url) > LONGEST or not url.isprintable() or " " in url:
        raise BadAddress(f"spec.endpoint: must be at most {LONGEST} characters without spaces and control characters")
    address = _url(url) if "://" in url else _scp(url)
    if address.scheme == "file" and not remote.allow_file:
        raise BadAddress("spec.endpoint: a folder of this machine is no remote; use https, ssh, http or git")
    if address.scheme in _PLAIN and not (remote.access.insecure or _loopback(address.host)):
        raise BadAddress(
            f"spec.endpoint: {address.scheme}:// shows {_PLAIN[address.scheme]} to everybody on the way; "
            "use https or ssh, or set insecure"
        )
    return address


def _url(url: str) -> Address:
    if "::" in url.split("://", 1)[0]:
        raise BadAddress("spec.endpoint: 'helper::' forms are not allowed; use https, ssh, http or git")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadAddress(f"spec.endpoint: cannot be read ({error})") from None
    scheme = parts.scheme.lower()
    if scheme == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise BadAddress("spec.endpoint: a file URL is file:///path")
        return Address(scheme=scheme, url=url)
    if scheme not in ("https", "http", "ssh", "git"):
        raise BadAddress(f"spec.endpoint: scheme {scheme!r} is not allowed; use https, ssh, http or git")
    if parts.password is not None:
        raise BadAddress("spec.endpoint: must not carry a password; put it into the credentials")
    if parts.query or parts.fragment:
        raise BadAddress("spec.endpoint: must be without '?' and '#'")
    host, user = parts.hostname or "", parts.username or ""
    if not _is_host(host):
        raise BadAddress("spec.endpoint: has no host that could be one")
    if user and not _USER.fullmatch(user):
        raise BadAddress("spec.endpoint: the user before '@' is not one that could be")
    if user and scheme in ("https", "http"):
        raise BadAddress("spec.endpoint: must not carry a user; put it into the credentials (username)")
    if not parts.path.strip("/"):
        raise BadAddress("spec.endpoint: names a server and no repository")
    if parts.path.startswith("/-"):
        raise BadAddress("spec.endpoint: a path must not begin with '-'")
    return Address(scheme=scheme, host=host, user=user, port=port, url=url)


def _scp(url: str) -> Address:
    """`user@host:path`, which is SSH; the path is from the account's home."""
    match = _SCP.fullmatch(url)
    if match is None or match["path"].startswith(("-", ":")):
        raise BadAddress("spec.endpoint: is neither a URL nor of the form user@host:path")
    host = match["host"].strip("[]")
    return Address(scheme="ssh", host=host, user=match["user"] or "", url=url)


def _is_host(host: str) -> bool:
    if _HOST.fullmatch(host):
        return True
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
