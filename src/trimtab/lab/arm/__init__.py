"""Azure Resource Manager, emulated on loopback from OpenAPI documents: stateful, and as inconvenient as the real one.

documents, schemas   what the documents offer
behaviour            every switch
world, resources     what exists, what is under way
checking, writing    what a provider refuses, and what a write makes of a body
views                what a read shows
reads, writes,       the verbs
actions, operations
faults, throttling   what goes wrong on purpose
events               word of changes
log, orders, server  the door

It knows nothing of the reconciler that is tried against it, and shares no code with it.
"""

from trimtab.lab.arm.behaviour import (
    INSTANT,
    OBSERVED_DELETE,
    OBSERVED_PUT,
    Behaviour,
    Late,
    Limit,
    Lro,
    Normalise,
    shape,
)
from trimtab.lab.arm.events import HandshakeFailed
from trimtab.lab.arm.faults import Dropped, ErrorInside, Html, Refused, Truncated
from trimtab.lab.arm.log import Asked
from trimtab.lab.arm.server import ArmEmulator

__all__ = [
    "INSTANT",
    "OBSERVED_DELETE",
    "OBSERVED_PUT",
    "ArmEmulator",
    "Asked",
    "Behaviour",
    "Dropped",
    "ErrorInside",
    "HandshakeFailed",
    "Html",
    "Late",
    "Limit",
    "Lro",
    "Normalise",
    "Refused",
    "Truncated",
    "shape",
]
