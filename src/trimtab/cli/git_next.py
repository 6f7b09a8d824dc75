"""What a person can do about a sync that is not ready, by the reason of its condition."""

from __future__ import annotations

from trimtab.cli.git_find import status_of
from trimtab.model.conditions import get_condition
from trimtab.systems.gitops.kinds import GitSync

BY_ITSELF = "it is tried again by itself"
STEPS: dict[tuple[str, ...], str] = {
    ("Suspended",): "`trimtab git resume {name} -n {place}` lets it go on",
    (
        "InvalidDocuments",
    ): "mend these documents and push; `trimtab git plan {name} -n {place} --folder DIR` tries it first",
    ("ApplyFailed",): f"mend in Git what the server refused; {BY_ITSELF}",
    (
        "Conflicts",
    ): "`kubectl get syncconflicts -n {place}` shows them; spec.resolution of each, git or system, decides",
    ("MassDelete", "EmptySource"): (
        "`trimtab git confirm {name} -n {place}` lets them pass; or push a commit that has the documents again"
    ),
    ("Problems",): "mend the mistakes in the source and push",
    ("Refused",): (
        "keep what belongs to another sync there only, and change in Git what is not written to it;"
        " or leave it out here: spec.exclude"
    ),
    ("InvalidSpec", "InvalidSchedule"): "`kubectl edit gitsync {name} -n {place}`: the message names the field",
    ("RepositoryMissing",): "make the Repository {repository}, or let its owner share it with {place}",
    ("RepositoryAmbiguous",): "make a Repository {repository} in {place}: it goes before what others share",
    ("CredentialsMissing",): "make or mend the Secret that the message names, with that key",
    ("Untrusted",): "sign the newest commit with a key that spec.verify knows, or add the key to its Secret",
    ("GitUnreachable", "GitTimedOut"): f"see whether the Git server answers; {BY_ITSELF}",
    ("GitAuthFailed",): "put credentials that may do it into the Secret of the Repository {repository}",
    ("GitHostKeyUnknown",): "put its key into known_hosts, or its authority into ca.crt, of the Repository's Secret",
    ("GitNoSuchRef",): "push the branch, or name another one: spec.revision",
    ("PathMissing",): "push the folder, or name another one: spec.path",
    ("GitRefused",): "let the account push to the branch, or write to another one: spec.destination",
    ("GitMoved", "GitUncertain", "PushRace"): BY_ITSELF,
    ("GitTooLarge", "GitMalformed", "GitBadAddress"): "name another repository: spec.endpoint of the Repository",
    ("GitGitMissing",): "install git where the controllers run",
    ("ServerRefused",): f"let the sync's account do what the message names; {BY_ITSELF}",
    ("ServerUnreachable",): f"see whether the API answers; {BY_ITSELF}",
    ("Failed",): f"report it, with the log of the controllers; {BY_ITSELF}",
    ("NamespaceDeleting",): "wait until the namespace is gone, and this sync with it",
    ("KindGone",): "bring the kind back, or take its documents out of Git",
    ("Timeout",): "it goes on by itself; if it needs longer: spec.timeout",
    (
        "InventoryLost",
    ): "bring back the place of the blobs: nothing is done before, so that nothing is deleted by mistake",
}
PATH = "name the right folder: spec.path; or push it. `trimtab git confirm {name} -n {place}` only if the deletion is meant"
WORDS = {reason: words for reasons, words in STEPS.items() for reason in reasons}


def next_step(sync: GitSync) -> str:
    """In one line; "" when there is nothing to do, or no telling."""
    found = get_condition(status_of(sync).conditions, "Ready")
    if found is None or found.status == "True":
        return ""
    words = WORDS.get(found.reason, "")
    if found.reason == "EmptySource" and found.message.startswith("spec.path:"):
        words = PATH
    return words.format(name=sync.name, place=sync.namespace, repository=sync.spec.repository)
