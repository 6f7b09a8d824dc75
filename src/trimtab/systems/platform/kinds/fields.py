"""Fields that several kinds of the platform share.

References have no pattern and room to spare: below hydration the same field holds an ID, or `name:<name>` for what does not
exist yet.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.hub import File, Sharing
from trimtab.model.markers import Keyed, Rule
from trimtab.model.resource import Spec

LATEST = "latest"
NAME_MAX = 63

Text = Annotated[str, Meta(max_length=1024)]
Generation = Annotated[int, Meta(description="The metadata.generation that this speaks of.")]
Referred = Annotated[str, Meta(min_length=1, max_length=300)]
"""The name of another resource of the hub."""
NamespaceName = Annotated[
    str,
    Meta(min_length=1, max_length=NAME_MAX, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", description="A namespace."),
]
Version = Annotated[
    str,
    Meta(
        max_length=NAME_MAX,
        pattern="^([A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?)?$",
        description="What is published under a version never changes; without one it is a draft.",
    ),
    Rule("self != 'latest'", "latest is how readers ask for the newest version: give it a name of its own"),
]
Wanted = Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="A version, or `latest`.")]
"""Which version of another resource is meant."""

PATH_RULE = r"self.all(f, !f.name.startsWith('/') && !f.name.contains('\\') && !f.name.matches('(^|/)[.]{1,2}(/|$)'))"
PATH_SAYS = "a path is relative to the document, with forward slashes, and without . or .."
Files = Annotated[
    tuple[File, ...],
    Keyed("name"),
    Rule(PATH_RULE, PATH_SAYS),
    Meta(min_length=1, max_length=64, description="Files beside the document."),
]
SomeFiles = Annotated[
    tuple[File, ...],
    Keyed("name"),
    Rule(PATH_RULE, PATH_SAYS),
    Meta(max_length=64, description="Values files beside the document; later ones win."),
]
PlainPath = Annotated[str, Meta(min_length=1, max_length=1024)]
PLAIN_PATHS_RULE = r"self.all(p, !p.startsWith('/') && !p.contains('\\') && !p.matches('(^|/)[.][.](/|$)'))"
RepositoryPaths = Annotated[
    tuple[PlainPath, ...],
    Rule(PLAIN_PATHS_RULE, "a path is relative to the repository, with forward slashes, and without .."),
    Meta(min_length=1, max_length=64, description="Files, or folders of YAML files, in the repository."),
]

SHARING_RULES = (
    Rule(
        "!self.enabled || (has(self.projects) && self.projects.size() > 0)",
        "shared, but with nobody: name projects, or `*` for all of them, or let enabled be false",
    ),
    Rule(
        "!has(self.projects) || self.projects.size() < 2 || self.projects.all(p, p.name != '*')",
        "`*` is all projects: name it alone",
    ),
)
Shared = Annotated[Sharing, *SHARING_RULES, Meta(description="Which other projects may use this.")]
Open = dict[str, Any]
"""Data of a service whose form is not ours: kept as it is."""

Phase = Literal["Pending", "Waiting", "Applying", "Progressing", "Applied", "Ready", "Degraded", "Failed", "Removing"]


class Part(Spec):
    """How far one part of a resource has come: an addon on a cluster, or a workload on one of its clusters."""

    name: Annotated[Referred, Meta(description="Of the addon, or of the cluster.")]
    project: Annotated[str, Meta(description="Where it lives, when it is another project's.")] | UnsetType = UNSET
    version: Annotated[str, Meta(description="Which one it is, resolved.")] | UnsetType = UNSET
    phase: Annotated[Phase, Meta(description="How far it has come.")] = "Pending"
    reason: Annotated[str, Meta(description="Why, in one word for programs.")] | UnsetType = UNSET
    message: Annotated[str, Meta(max_length=4096, description="Why, for people.")] | UnsetType = UNSET
    objects: Annotated[int, Meta(ge=0, description="That it declares.")] | UnsetType = UNSET
    healthy: Annotated[int, Meta(ge=0, description="Of these, so many are well.")] | UnsetType = UNSET
    drifted: Annotated[int, Meta(ge=0, description="So many were changed by others since.")] | UnsetType = UNSET
    digest: Annotated[str, Meta(description="Of the manifests that were applied.")] | UnsetType = UNSET
