"""Repository: where documents or charts are, and how to reach them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Period
from trimtab.model.hub import HubResource, Sharing
from trimtab.model.kind import Column
from trimtab.model.markers import Rule
from trimtab.model.resource import Spec
from trimtab.systems.gitops.kinds.fields import LEAST, Commit, Count, Generation, SecretName, Time


class RepositorySpec(Spec, rules=Rule(
    "self.type == 'git' ? self.endpoint.matches('^(https?|ssh|git)://') || self.endpoint.matches('^[^:/]+@[^:/]+:') "
    ": self.endpoint.matches('^(https?|oci)://')",
    "must be https://, http://, ssh://, git:// or user@host:path for git; https://, http:// or oci:// for helm",
    field=".endpoint",
)):  # fmt: skip
    """Where it is and how to get in."""

    type: Annotated[Literal["git", "helm"], Meta(description="What is in it.")] = "git"
    endpoint: Annotated[
        str,
        Rule("!self.matches('://[^/@]*:[^/]*@')", "must not carry a password: put it into the Secret of secretRef"),
        Meta(min_length=1, max_length=2048, description="https://git.example.com/team/fleet.git, without credentials."),
    ]
    secret_ref: (
        Annotated[
            SecretName,
            Meta(
                description="A Secret with username and password, or token; identity, passphrase and known_hosts for "
                "ssh; ca.crt for a certificate authority of one's own."
            ),
        ]
        | UnsetType
    ) = UNSET
    insecure: Annotated[bool, Meta(description="Trust whoever answers, and plain http. Only for trials.")] = False
    interval: Annotated[Period, LEAST, Meta(description="How often to see whether it can be reached.")] = Period("10m")
    sharing: Annotated[Sharing, Meta(description="Who beside the owner may use it.")] | UnsetType = UNSET


class RepositoryStatus(Spec):
    """Whether it can be reached, and what its default branch is at."""

    conditions: Conditions | UnsetType = UNSET
    observed_generation: Generation | UnsetType = UNSET
    revision: Annotated[Commit, Meta(description="The commit that its default branch is at.")] | UnsetType = UNSET
    branches: Annotated[Count, Meta(description="How many branches it has.")] | UnsetType = UNSET
    checked_at: Annotated[Time, Meta(description="When it was last asked.")] | UnsetType = UNSET


class Repository(
    HubResource,
    group="hub",
    version="v3",
    plural="repositories",
    short=("repo",),
    categories=("git",),
    columns=(
        Column("Type", ".spec.type"),
        Column("Endpoint", ".spec.endpoint"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Revision", ".status.revision", priority=1),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
):
    """A Git or Helm repository, by name."""

    spec: RepositorySpec
    status: RepositoryStatus | UnsetType = UNSET

    def trigger_internal(self) -> None:
        """Its changes start a sync to Git."""
