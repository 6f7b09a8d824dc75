"""What a webhook is sent, and how its words are cleaned before anybody is shown them. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import UnsetType

from trimtab.model.redacted import TEXT, Redacted
from trimtab.systems.delivery.kinds import Analysis, CanaryDeployment, RunStatus, Webhook
from trimtab.systems.delivery.kinds.analysis import Hook

LONGEST_EXCERPT = 256


def webhooks(point: Hook, canary: CanaryDeployment, run: RunStatus) -> tuple[Webhook, ...]:
    """Those of this point, as they were when the run began."""
    analysis = canary.spec.analysis
    if not isinstance(run.analysis, UnsetType):
        from trimtab.model.document import convert

        analysis = convert(run.analysis, Analysis)
    if isinstance(analysis, UnsetType):
        return ()
    return tuple(one for one in analysis.webhooks if one.type == point)


def payload(hook: Webhook, canary: CanaryDeployment, run: RunStatus) -> dict[str, Any]:
    """`checksum` is that of what is released: the same for the same pods and configuration."""
    phase = "" if isinstance(canary.status, UnsetType) else canary.status.phase
    return {
        "name": canary.name,
        "namespace": canary.namespace,
        "phase": "" if isinstance(phase, UnsetType) else phase,
        "revision": run.revision,
        "run": run.id,
        "step": run.step,
        "weight": run.weight,
        "type": hook.type,
        "metadata": {} if isinstance(hook.metadata, UnsetType) else dict(hook.metadata),
        "checksum": run.revision.rpartition(":")[2],
    }


def idempotency_key(point: Hook, run: RunStatus) -> str:
    """The same for the same question: for its repetitions, and after a crash. The next check asks a new one."""
    key = f"{run.id}/{point}/{run.step}"
    return key if isinstance(run.next_check_time, UnsetType) else f"{key}/{run.next_check_time}"


def excerpt(body: bytes, secret: Redacted | None) -> str:
    """The beginning of an answer as one line of text, without what we sent in confidence."""
    text = body.decode("utf-8", "replace")
    if secret:
        text = text.replace(secret.reveal(), TEXT)
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= LONGEST_EXCERPT else text[: LONGEST_EXCERPT - 1] + "…"
