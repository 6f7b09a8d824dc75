"""From what a user writes after `--bus` to the bus that is meant."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from urllib.parse import urlsplit

from trimtab.hub.bus.contract import Bus

FORMS = "postgresql://HOST/DATABASE, nats://HOST or tls://HOST"


class BusConfigError(Exception):
    """`--bus` or one of its companions cannot be used as it is. The message has no credentials."""


def bus(
    url: str,
    *,
    name: str = "",
    stream_replicas: int = 1,
    credentials_file: Path | None = None,
    token_file: Path | None = None,
    ca_file: Path | None = None,
) -> Bus:
    """Not yet reached. `name` keeps hubs apart that share a server: the channel, or the stream. The files are for NATS."""
    try:
        scheme = urlsplit(url.split(",")[0]).scheme
        match scheme:
            case "postgresql" | "postgres":
                _installed("asyncpg", "postgres")
                from trimtab.hub.bus.postgres import CHANNEL, PostgresBus

                return PostgresBus(url, channel=name or CHANNEL)
            case "nats" | "tls":
                _installed("nats", "nats")
                from trimtab.hub.bus.nats import STREAM, NatsBus

                return NatsBus(
                    url,
                    stream=name or STREAM,
                    replicas=stream_replicas,
                    credentials_file=credentials_file,
                    token_file=token_file,
                    ca_file=ca_file,
                )
    except ValueError as error:
        raise BusConfigError(f"--bus: {error}") from None
    raise BusConfigError(f"--bus does not know {scheme}://: give {FORMS}" if scheme else f"--bus must be {FORMS}")


def _installed(package: str, extra: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise BusConfigError(f"--bus needs an extra: pip install 'trimtab[{extra}]'")
