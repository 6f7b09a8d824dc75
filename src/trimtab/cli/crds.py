"""`trimtab crds`: the definitions of our kinds, for any cluster: `trimtab crds | kubectl apply -f -`."""

from __future__ import annotations

import sys
from typing import Any

from trimtab.cli.codes import NOT_FOUND, OK, complain
from trimtab.cli.kinds import converting, scheme
from trimtab.model.crd import crds as definitions
from trimtab.model.kind import Kind
from trimtab.model.yaml import dump


def crds(group: str, borrowed: bool = False) -> int:
    """Print those of all groups, or of one, by its full name or its first word. With `borrowed` the kinds of others that
    our systems drive instead: for a server where those others are not."""
    known = _borrowed() if borrowed else _own()
    found = [d for d in known if not group or group in _names(d["spec"]["group"])]
    if not found:
        complain(f'no kinds in group "{group}"' if group else "no kinds are installed")
        return NOT_FOUND
    sys.stdout.write("---\n".join(dump(definition) for definition in found))
    return OK


def _own() -> list[dict[str, Any]]:
    known = scheme()

    def conversion(hub: Kind) -> dict[str, Any]:
        from trimtab.runtime.prepare import conversion_at

        return conversion_at(converting(known)[hub.group, hub.kind])

    return definitions(known, conversion)


def _borrowed() -> list[dict[str, Any]]:
    from trimtab.cli.systems import load, scheme_of
    from trimtab.runtime.prepare import borrowed_definitions

    systems = load("all")
    return borrowed_definitions(systems, scheme_of(systems))


def _names(group: str) -> tuple[str, str]:
    return group, group.partition(".")[0]
