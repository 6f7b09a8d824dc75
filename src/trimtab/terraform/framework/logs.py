"""The provider's log: lines of JSON on standard error, which Terraform merges into its own (TF_LOG)."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

LEVELS = ("trace", "debug", "info", "warn", "error")

_lock = threading.Lock()


def log(level: str, message: str, **fields: Any) -> None:
    if level not in LEVELS:
        raise ValueError(f"a level is one of {', '.join(LEVELS)}, not {level}")
    from datetime import UTC, datetime

    line = {
        **fields,
        "@level": level,
        "@message": message,
        "@module": "provider",
        "@timestamp": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    with _lock:
        print(json.dumps(line, default=str), file=sys.stderr, flush=True)
