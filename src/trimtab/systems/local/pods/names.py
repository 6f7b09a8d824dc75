"""Names that the parts of the local system and its users share."""

from __future__ import annotations

GROUP = "local.trimtab.dev"

FINALIZER = f"{GROUP}/process"
"""Marks a Pod as one that we run, and keeps it until its processes have ended."""

RUNTIME = f"{GROUP}/runtime"
"""Annotation of a pod template: `podman` runs the image; without it the command is run as a process."""

DRAIN = f"{GROUP}/drain"
"""Annotation of a pod template: seconds between leaving the data plane and SIGTERM."""

HASH = "pod-template-hash"
"""Label that tells which template a pod was made from."""

NODE = "local"
"""The name of the only node there is, as pods show it."""

VOLUME = "TRIMTAB_VOLUME_"
"""What the variables begin with that say where a volume is."""

MARK = "TRIMTAB_CONTAINER"
"""The variable by which a process of ours is known when its record was not written to the end."""
