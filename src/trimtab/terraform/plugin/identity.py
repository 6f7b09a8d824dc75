"""Where the server's certificate and key lie, and whether they may be used.

This stands before the first line that Terraform waits for, so it reads one folder and one file and parses nothing: a file is
named by the second in which its certificate ends, and its certificate is sent as the base64 that PEM already is. Files are
never changed once they have their name. A renewal adds one, so a provider that starts meanwhile cannot read half of two.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DAY = 24 * 3600
RENEW = 30 * DAY
"""A certificate with less than this to live is replaced by a new one."""

MAKER = "maker"
"""The file that holds the path of a Python which can make certificates."""

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


class Identity:
    """`path` is one PEM file with the certificate and its key, `certificate` its base64 without newlines or padding."""

    __slots__ = ("certificate", "ends", "path")

    def __init__(self, path: str, ends: int, certificate: str) -> None:
        self.path = path
        self.ends = ends
        self.certificate = certificate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and (other.path, other.certificate) == (self.path, self.certificate)

    def __hash__(self) -> int:
        return hash(self.path)


class Unsafe(Exception):  # noqa: N818
    """The key, or the folder that it lies in, can be read or changed by others."""


def folder(environ: Mapping[str, str]) -> str:
    """`TRIMTAB_TERRAFORM_HOME` moves all that an install keeps for itself; this folder in it is for the key alone."""
    home = environ.get("TRIMTAB_TERRAFORM_HOME", "")
    if not home:
        data = environ.get("XDG_DATA_HOME", "")
        if not os.path.isabs(data):  # the specification says to ignore it then
            data = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "share")
        home = os.path.join(data, "trimtab", "terraform")
    return os.path.join(home, "identity")


def find(where: str, now: float | None = None) -> Identity | None:
    """The certificate that lives longest, or None. Raises Unsafe rather than use a key that is not its owner's alone."""
    try:
        names = os.listdir(where)
    except FileNotFoundError:
        return None
    moment = time.time() if now is None else now
    ends = sorted((int(name[:-4]) for name in names if name.endswith(".pem") and name[:-4].isdecimal()), reverse=True)
    for end in ends:
        if end > moment:
            _demand_private(os.stat(where), where)
            path = os.path.join(where, f"{end}.pem")
            try:
                return Identity(path, end, _certificate(path))
            except FileNotFoundError:
                continue  # it was taken away after we looked
    return None


def _certificate(path: str) -> str:
    with open(path, encoding="ascii") as file:
        _demand_private(os.fstat(file.fileno()), path)
        text = file.read()
    begin, end = text.find(_BEGIN), text.find(_END)
    if begin < 0 or end < begin:
        raise Unsafe(f"{path} holds no certificate; take it away, and another will be made")
    return "".join(text[begin + len(_BEGIN) : end].split()).rstrip("=")


def _demand_private(status: os.stat_result, path: str) -> None:
    if os.name != "posix":
        return  # modes say nothing there; the folder is in the user's own profile
    if status.st_uid != os.geteuid():
        raise Unsafe(f"{path} belongs to another user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise Unsafe(f"{path} is open to others (mode {stat.S_IMODE(status.st_mode):04o}); run chmod go= on it")
