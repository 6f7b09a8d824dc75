"""GitSync: which folder of which branch is kept the same as this project, in which directions, and when."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Period
from trimtab.model.hub import HubResource
from trimtab.model.kind import Column
from trimtab.model.markers import Artifact, Keyed, OneOf, Ref, Rule, Unordered
from trimtab.model.resource import Spec
from trimtab.runtime.progress import ProgressStatus
from trimtab.runtime.runs import History
from trimtab.runtime.schedule import CronLine
from trimtab.systems.gitops.kinds.fields import (
    LEAST,
    Commit,
    Count,
    Generation,
    Name,
    Path,
    SecretKey,
    SecretName,
    Text,
    Time,
)

Policy = Literal["git", "system", "hold"]
Provider = Literal["github", "gitlab", "bitbucket", "azure"]
Selected = Annotated[str, Meta(min_length=1, max_length=600)]
"""`*`, `Kind`, `group/Kind` or `group/Kind/name`, with `*` and `?` in any of its words."""

RULES = (
    Rule(
        "!has(self.exclude) || !has(self.include) || !self.include.exists(name, name in self.exclude)",
        "a kind cannot be both included and excluded",
        field=".exclude",
    ),
    Rule(
        "!has(self.sourceAsDestination) || self.sourceAsDestination != has(self.destination)",
        "give a destination, or let sourceAsDestination be true; not both, nor neither",
        field=".destination",
    ),
    Rule(
        "!has(self.gitToSystem) || self.gitToSystem || (has(self.systemToGit) && self.systemToGit)",
        "both directions are off: let gitToSystem or systemToGit be true; suspend is for a pause",
        field=".gitToSystem",
    ),
)


class Destination(Spec):
    """Where changes of the system are written to, when that is not where documents are read from."""

    repository: Annotated[Name, Ref("Repository"), Meta(description="Where it is.")]
    revision: Annotated[str, Meta(min_length=1, max_length=255, description="The branch.")]
    path: Annotated[Path, Meta(description="The folder; empty for the whole repository.")] = ""


class DeletionGuard(Spec):
    """A run that would delete more than both of these deletes nothing, and waits for `trimtab git confirm`. So does one
    that finds no document at all."""

    max_count: Annotated[int, Meta(ge=0, description="So many objects may go at once.")] = 5
    max_percent: Annotated[
        int, Meta(ge=0, le=100, description="Such a share of what the sync owns may go at once.")
    ] = 30


class Webhook(Spec):
    """What a Git server calls when something was pushed."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=63,
            pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            description="The last word of the address that is called.",
        ),
    ]
    provider: Annotated[Provider, Meta(description="Whose way to sign and to tell it is.")]
    secret_ref: Annotated[SecretKey, Meta(description="What the server signs with, or sends.")]
    paths: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=1024)], ...],
        Unordered(),
        Meta(max_length=64, description="Only pushes that touch such a path: clusters/**, *.yaml. None are all."),
    ] = ()


class Triggers(Spec):
    """What starts a run. A change of the GitSync itself always does."""

    interval: Annotated[
        Period, LEAST, Meta(description="At the latest so long after the last run, 1s at least; drift is undone then.")
    ] = Period("5m")
    cron: Annotated[tuple[CronLine, ...], Meta(max_length=16, description="At these times: 0 4 * * *.")] = ()
    time_zone: Annotated[str, Meta(max_length=64, description="The time zone that cron means.")] = "UTC"
    webhooks: Annotated[
        tuple[Webhook, ...], Keyed("name"), Meta(max_length=16, description="When something was pushed.")
    ] = ()
    internal: Annotated[bool, Meta(description="Changes in the system start a run, when they go to Git.")] = True


class Verify(Spec, one_of=OneOf("ssh", "pgp")):
    """Only commits that one of these signed are applied. Each value of the Secret is a public key, or a list of them."""

    ssh: Annotated[SecretName, Meta(description="Allowed signers, as ssh-keygen reads them.")] | UnsetType = UNSET
    pgp: Annotated[SecretName, Meta(description="Public keys, armored.")] | UnsetType = UNSET


class Sign(Spec):
    """What our commits are signed with: an SSH key in `identity` of this Secret, `passphrase` beside it."""

    secret_ref: SecretName


class Committer(Spec):
    """Who our commits are by; and the author, when nobody is known to have made a change."""

    name: Annotated[str, Meta(min_length=1, max_length=255, description="As Git shows it.")] = "trimtab"
    email: Annotated[
        str, Meta(min_length=1, max_length=255, pattern="^[^<>\\s]+@[^<>\\s]+$", description="As Git shows it.")
    ] = "trimtab@localhost"


class GitSyncSpec(Spec, rules=RULES):
    """What is kept the same, and how."""

    repository: Annotated[Name, Ref("Repository"), Meta(description="Where the documents are.")]
    revision: Annotated[str, Meta(min_length=1, max_length=255, description="The branch.")] = "main"
    path: Annotated[Path, Meta(description="The folder; empty for the whole repository.")] = ""
    destination: Annotated[Destination, Meta(description="Where changes go to.")] | UnsetType = UNSET
    source_as_destination: (
        Annotated[bool, Meta(description="Changes go to where documents come from: so it is without a destination.")]
        | UnsetType
    ) = UNSET
    git_to_system: Annotated[bool, Meta(description="Apply what is in Git.")] = True
    system_to_git: Annotated[bool, Meta(description="Commit what changed in the system.")] = False
    include: Annotated[
        tuple[Selected, ...],
        Unordered(),
        Meta(
            min_length=1,
            max_length=100,
            description="Blueprint, apps/Deployment, */*/web-*. To Git, * are the kinds with an internal trigger and "
            "what came from there; others must be named.",
        ),
    ] = ("*",)
    exclude: Annotated[
        tuple[Selected, ...], Unordered(), Meta(max_length=100, description="Kinds that are left out of it.")
    ] = ()
    prune: Annotated[bool, Meta(description="Delete what this sync applied and is gone from Git.")] = True
    deletion_guard: Annotated[DeletionGuard, Meta(description="When to ask before deleting.")] = DeletionGuard()
    conflict_policy: Annotated[
        Policy, Meta(description="Whose value wins when both changed the same field; hold waits for a person.")
    ] = "hold"
    triggers: Annotated[Triggers, Meta(description="What starts a run.")] = Triggers()
    verify: Annotated[Verify, Meta(description="Whose commits are trusted.")] | UnsetType = UNSET
    sign: Annotated[Sign, Meta(description="What our commits are signed with.")] | UnsetType = UNSET
    committer: Annotated[Committer, Meta(description="Who our commits are by.")] = Committer()
    service_account: (
        Annotated[
            Name,
            Meta(
                description="Act as this ServiceAccount of the namespace. Without one, the sync may do what it likes "
                "in its own namespace, but for rights, admission and kinds."
            ),
        ]
        | UnsetType
    ) = UNSET
    suspend: Annotated[bool, Meta(description="Do nothing until this is taken away.")] = False
    timeout: Annotated[Period, LEAST, Meta(description="A run that takes longer has failed.")] = Period("10m")


class InventorySummary(Spec):
    """What this sync applied, all of it in a blob."""

    digest: Annotated[str, Artifact(), Meta(max_length=128, description="Of the blob that lists it.")]
    count: Annotated[Count, Meta(description="How many objects it owns.")]


class DocumentProblem(Spec):
    """What is wrong with one document."""

    path: Annotated[Path, Meta(description="The file.")]
    line: Annotated[Count, Meta(description="Where in it.")] | UnsetType = UNSET
    object: Annotated[str, Meta(max_length=600, description="Kind and name.")] | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=63, description="In one word for programs.")]
    message: Annotated[Text, Meta(description="For people.")]


class WebhookPath(Spec):
    """Where a Git server sends its pushes, below the address of `trimtab git listen`."""

    name: Annotated[str, Meta(max_length=63, description="As spec.triggers.webhooks has it.")]
    path: Annotated[str, Meta(max_length=1024, description="What follows the address.")]


class Held(Spec):
    """Deletions that wait for a person: `trimtab git confirm`."""

    plan: Annotated[str, Meta(max_length=64, description="What to confirm.")]
    revision: Annotated[Commit, Meta(description="The commit that would delete them.")]
    reason: Annotated[str, Meta(max_length=63, description="Why they are held, in one word for programs.")]
    deletes: Annotated[
        tuple[Annotated[str, Meta(max_length=600)], ...],
        Meta(max_length=50, description="What would go, the first 50."),
    ] = ()
    count: Annotated[Count, Meta(description="How many would go, in all.")]


class GitSyncStatus(Spec):
    """What was done, and what is in the way."""

    conditions: Conditions | UnsetType = UNSET
    observed_generation: Generation | UnsetType = UNSET
    last_attempted_revision: Annotated[Commit, Meta(description="The commit looked at last.")] | UnsetType = UNSET
    last_applied_revision: Annotated[Commit, Meta(description="The commit that all is applied of.")] | UnsetType = UNSET
    last_pushed_revision: Annotated[Commit, Meta(description="Our last commit.")] | UnsetType = UNSET
    last_run_time: Annotated[Time, Meta(description="When the last run that did something ended.")] | UnsetType = UNSET
    handled_request: (
        Annotated[str, Meta(max_length=253, description="The sync-now annotation that was answered.")] | UnsetType
    ) = UNSET
    inventory: Annotated[InventorySummary, Meta(description="What it owns.")] | UnsetType = UNSET
    conflicts: Annotated[Count, Meta(description="How many SyncConflicts wait.")] | UnsetType = UNSET
    documents: (
        Annotated[
            tuple[DocumentProblem, ...],
            Meta(max_length=100, description="Documents that are not right, the first 100."),
        ]
        | UnsetType
    ) = UNSET
    problems: Annotated[Count, Meta(description="How many documents are not right, in all.")] | UnsetType = UNSET
    webhooks: (
        Annotated[tuple[WebhookPath, ...], Keyed("name"), Meta(max_length=16, description="Where Git servers send to.")]
        | UnsetType
    ) = UNSET
    held: Annotated[Held, Meta(description="Deletions that wait for a person.")] | UnsetType = UNSET
    progress: Annotated[ProgressStatus, Meta(description="Of the run that goes on.")] | UnsetType = UNSET
    history: History | UnsetType = UNSET


class GitSync(
    HubResource,
    group="hub",
    version="v3",
    plural="gitsyncs",
    short=("gs",),
    columns=(
        Column("Repository", ".spec.repository"),
        Column("Branch", ".spec.revision"),
        Column("Path", ".spec.path", priority=1),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Revision", ".status.lastAppliedRevision"),
        Column("Objects", ".status.inventory.count", type="integer"),
        Column("Conflicts", ".status.conflicts", type="integer"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
):
    """Keeps a folder of a Git branch and a project the same."""

    spec: GitSyncSpec
    status: GitSyncStatus | UnsetType = UNSET
