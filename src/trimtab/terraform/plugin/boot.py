"""How the provider starts: check who called, listen, say where in one line, and only then load what serves.

Terraform starts a provider three to five times for one apply and waits for the line each time, so until it is written nothing
is imported but `os`, `sys`, `time`, `stat` and `socket`; h2, ssl and the provider itself come while Terraform connects. A test
counts them.

Standard output belongs to go-plugin. It is kept aside here for the one line, and whatever else prints goes to standard error,
which Terraform has in its log. A start that fails says why in place of the line: Terraform shows it to its user.
"""

from __future__ import annotations

import os
import sys

from trimtab.terraform.plugin import identity as identities
from trimtab.terraform.plugin.address import Address, listen

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself is one of the dearer imports
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from trimtab.terraform.protocol.contract import ProviderServer

COOKIE = "TF_PLUGIN_MAGIC_COOKIE"
COOKIE_VALUE = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"
"""What Terraform sets for its providers. It is no secret: it tells a start by Terraform from one by hand."""

CORE_PROTOCOL = 1
BY_HAND = """\
This is a Terraform provider. Terraform starts it; it does nothing when it is run by hand.
To use it, name it in a configuration and run `terraform init`: see `trimtab terraform install`.
"""


class CannotStart(Exception):  # noqa: N818
    """Its text is what the user of Terraform gets to read."""


def serve(make: Callable[[], ProviderServer], protocol: int = 6) -> NoReturn:
    """Serves what `make` makes until Terraform is done with it. `make` is called after the line was written."""
    if os.environ.get(COOKIE) != COOKIE_VALUE:
        sys.stderr.write(BY_HAND)
        sys.exit(1)
    parent = os.getppid()
    line = _take_stdout()
    try:
        client, identity = _credentials(os.environ)
        address = listen(os.environ)
    except (CannotStart, identities.Unsafe, OSError) as error:
        _write(line, " ".join(f"the provider cannot start: {error}".split()))
        sys.exit(1)
    _write(line, handshake(address, identity.certificate, protocol, os.environ))
    _tidy_when_terminated(address)

    from trimtab.terraform.plugin.life import live

    live(make, protocol, address, identity, client, parent)


def handshake(address: Address, certificate: str, protocol: int, environ: Mapping[str, str]) -> str:
    """go-plugin's line: its own version, ours, where we are, how we speak, and our certificate.

    A Terraform that does not know our protocol says so itself when it reads the line, and names the versions it does know.
    """
    fields = [str(CORE_PROTOCOL), str(protocol), address.network, address.name, "grpc", certificate]
    if environ.get("PLUGIN_MULTIPLEX_GRPC"):
        fields.append("false")  # asked for by clients that could share one connection; Terraform does not
    return "|".join(fields)


def _credentials(environ: Mapping[str, str]) -> tuple[str, identities.Identity]:
    client = environ.get("PLUGIN_CLIENT_CERT", "")
    if not client:
        raise CannotStart("Terraform gave no client certificate; unset TF_DISABLE_PLUGIN_TLS")
    where = identities.folder(environ)
    found = identities.find(where)
    return client, found if found is not None else _make(where)


def _make(where: str) -> identities.Identity:
    """The slow way, once: an install has made it before."""
    from trimtab.terraform.plugin.renewal import NoMaker, renewed

    try:
        return renewed(where)
    except NoMaker as error:
        raise CannotStart(str(error)) from error


def _tidy_when_terminated(address: Address) -> None:
    """Until `life` takes over: loading it takes a while, and a signal may come then too."""
    import signal

    def end(number: int, _: object) -> None:
        address.clear()
        os._exit(128 + number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)


def _take_stdout() -> int:
    """A handle of our own on standard output, which from now on is standard error, for children and C libraries too."""
    sys.stdout.flush()
    line = os.dup(1)
    os.set_inheritable(line, False)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return line


def _write(line: int, text: str) -> None:
    """The handle stays open: a client may take its end for ours."""
    data = text.encode() + b"\n"
    while data:
        data = data[os.write(line, data) :]
