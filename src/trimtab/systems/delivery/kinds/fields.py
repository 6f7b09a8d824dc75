"""What the kinds of delivery share: names, times, and the labels and annotations that users see."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Name = Annotated[str, Meta(min_length=1, max_length=253)]
Text = Annotated[str, Meta(max_length=1024)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(ge=0)]
Weight = Annotated[int, Meta(ge=0, le=100)]
Percent = Annotated[int, Meta(ge=1, le=100)]
Revision = Annotated[str, Meta(max_length=80)]
"""`v1:` and 64 hexadecimal digits: see `revisions.hashing`."""

ROLE = "delivery.trimtab.dev/role"
"""The label of pods, Deployments and Services: stable or canary. Reserved."""
REVISION = "delivery.trimtab.dev/revision"
"""The label of pods: the first digits of their revision. Reserved."""
OWNER = "delivery.trimtab.dev/canary"
"""The label of everything that a CanaryDeployment made: its name. Reserved."""

ADOPT = "delivery.trimtab.dev/adopt"
"""Annotation of an object that exists: the name of the CanaryDeployment that may take it."""
TRACK = "delivery.trimtab.dev/track"
"""Annotation of a ConfigMap or Secret: "false" leaves its content out of revisions."""
PROMOTE_NOW = "delivery.trimtab.dev/promote-now"
"""Annotation: the revision that goes straight out, without analysis. Means nothing for any other."""
APPROVE = "delivery.trimtab.dev/approve"
"""Annotation: the gate that may be passed, as `status.run.waitingFor` has it. Means nothing for any other."""
PAUSE = "delivery.trimtab.dev/pause"
"""Annotation: while it is there the run stands still; its value says why."""
ABORT = "delivery.trimtab.dev/abort"
"""Annotation: the id of the run that is to be rolled back."""
RETRY = "delivery.trimtab.dev/retry"
"""Annotation: a new value lets the revision that failed last run again."""

BY_REVISION = "revision"
"""The index of canaries' pods."""
STABLE, CANARY = "stable", "canary"
