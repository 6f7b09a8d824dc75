"""What the containers of one pod share, and how they tell of themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock
from trimtab.systems.local.pods.launch import Launcher
from trimtab.systems.local.pods.records import Folder

Document = Mapping[str, Any]
Tell = Callable[[str, str], None]
"""Records a warning about the pod: a reason and a note."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the containers of one pod share. `changed` is called when a status may be another."""

    pod: Document
    address: str
    folder: Folder
    client: Client
    clock: Clock
    launcher: Launcher
    changed: Callable[[], None]
    tell: Tell
    served: Callable[[], Awaitable[bool]]
    """Whether the data plane still sends requests to the pod."""
    grace: float = 30.0
