"""`trimtab crds`: the definitions of our kinds, for any cluster: `trimtab crds | kubectl apply -f -`."""

from __future__ import annotations

import sys

from trimtab.cli.codes import NOT_FOUND, OK, complain
from trimtab.cli.kinds import scheme
from trimtab.model.crd import crds as definitions
from trimtab.model.yaml import dump


def crds(group: str) -> int:
    """Print those of all groups, or of one, by its full name or its first word."""
    found = [d for d in definitions(scheme()) if not group or group in _names(d["spec"]["group"])]
    if not found:
        complain(f'no kinds in group "{group}"' if group else "no kinds are installed")
        return NOT_FOUND
    sys.stdout.write("---\n".join(dump(definition) for definition in found))
    return OK


def _names(group: str) -> tuple[str, str]:
    return group, group.partition(".")[0]
