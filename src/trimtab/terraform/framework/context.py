"""What an operation may use besides its data: the client, diagnostics, the log, the user's patience.

One is made for each call. It is also where state is saved before an operation ends: a create that fails later then
leaves a resource that Terraform knows and marks as tainted, rather than an orphan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from trimtab.terraform.framework.diagnostics import Diagnostics, Failed
from trimtab.terraform.framework.paths import Path
from trimtab.terraform.framework.timeouts import seconds
from trimtab.terraform.framework.trees import State

Log = Callable[..., None]

DEFERRALS = {"resource config unknown": 1, "provider config unknown": 2, "absent prerequisite": 3}
"""Why something cannot be planned yet, with the protocol's numbers."""


class Context:
    """`client` is what `Provider.configure` returned; None where the provider was not configured (validation)."""

    def __init__(
        self,
        *,
        client: Any = None,
        cancelled: threading.Event | None = None,
        log: Log | None = None,
        timeouts: dict[str, Any] | None = None,
        deferral_allowed: bool = False,
    ) -> None:
        self.client = client
        self.diagnostics = Diagnostics()
        self.cancelled = cancelled or threading.Event()
        """Set when Terraform was interrupted: leave soon, with the state as it is."""
        self.saved: State | None = None
        self.deferral_allowed = deferral_allowed
        self.deferred: int | None = None
        self._log = log
        self._timeouts = timeouts or {}

    def error(self, summary: str, detail: str = "", path: str | Path | None = None) -> None:
        self.diagnostics.error(summary, detail, path)

    def warning(self, summary: str, detail: str = "", path: str | Path | None = None) -> None:
        self.diagnostics.warning(summary, detail, path)

    def log(self, level: str, message: str, **fields: Any) -> None:
        """A line of Terraform's log (TF_LOG): level is trace, debug, info, warn or error."""
        if self._log is not None:
            self._log(level, message, **fields)

    def timeouts(self, operation: str, default: float) -> float:
        """Seconds that the user gave to "create", "read", "update" or "delete" in the `timeouts` attribute."""
        text = self._timeouts.get(operation)
        return seconds(text) if isinstance(text, str) else default

    def save(self, state: State) -> None:
        """The state that was reached so far, kept when the operation fails from here on."""
        self.saved = state

    def defer(self, reason: str) -> None:
        """This cannot be planned or read yet: Terraform shall come back to it, where it knows how to."""
        if not self.deferral_allowed:
            raise Failed("Not known yet", f"This cannot be done yet ({reason}), and this Terraform cannot put it off.")
        self.deferred = DEFERRALS[reason]
