"""`trimtab git listen`: takes what Git servers tell of pushes, until Ctrl-C."""

from __future__ import annotations

from trimtab.cli.access import Access
from trimtab.cli.codes import run
from trimtab.cli.receiving import Options, serve

__all__ = ["Options", "listen"]


def listen(access: Access, options: Options) -> int:
    from trimtab.systems.gitops.listening import Listener

    return run(
        serve(
            access,
            options,
            lambda client, credentials, host, port, tls: Listener(client, credentials, host=host, port=port, tls=tls),
            path="/NAMESPACE/GITSYNC/WEBHOOK",
            secret="messages and tokens",  # noqa: S106 - a word for people
        )
    )
