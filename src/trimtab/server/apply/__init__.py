"""Who manages which fields: what writes record, and server-side apply, which depends on it.

A design of our own for the semantics of `sigs.k8s.io/structured-merge-diff` and apimachinery's `managedfields`.
"""

from trimtab.server.apply.applied import Steps, apply, applying
from trimtab.server.apply.times import with_old_times
from trimtab.server.apply.update import View, update_managed_fields

__all__ = ["Steps", "View", "apply", "applying", "update_managed_fields", "with_old_times"]
