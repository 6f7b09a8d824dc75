"""What a GitSync asks for. Stop when it cannot be done as it is asked."""

from __future__ import annotations

from msgspec import UnsetType

from trimtab.client.protocol import Client
from trimtab.runtime.git.refs import HEAD, branch_name, is_commit
from trimtab.systems.gitops.kinds import Destination, GitSync, GitSyncSpec, Repository
from trimtab.systems.gitops.kinds.fields import CONFIRM
from trimtab.systems.gitops.parsing import SelectionError, selection
from trimtab.systems.gitops.planning import Options
from trimtab.systems.gitops.reading import normal_root
from trimtab.systems.gitops.repositories import Ambiguous, repository_of
from trimtab.systems.gitops.run.verdicts import Stop
from trimtab.systems.gitops.telling import Verdict


def options_of(sync: GitSync) -> Options:
    spec = sync.spec
    try:
        chosen = selection(spec.include, spec.exclude, fields=("spec.include", "spec.exclude"))
        _check_directions(spec)
        _check_places(spec)
        destination_of(sync)
    except (SelectionError, ValueError) as error:
        raise Stop(Verdict(False, "InvalidSpec", str(error), stalled=True)) from None
    annotations = sync.metadata.annotations or {}
    return Options(
        git_to_system=spec.git_to_system,
        system_to_git=spec.system_to_git,
        policy=spec.conflict_policy,
        prune=spec.prune,
        selection=chosen,
        max_deletes=spec.deletion_guard.max_count,
        max_delete_percent=spec.deletion_guard.max_percent,
        confirmed=annotations.get(CONFIRM, ""),
    )


def _check_directions(spec: GitSyncSpec) -> None:
    """ValueError for a sync that is stored from before such a one was refused."""
    if not (spec.git_to_system or spec.system_to_git):
        raise ValueError(
            "spec.gitToSystem: both directions are off: let gitToSystem or systemToGit be true; spec.suspend is for a pause"
        )


def _check_places(spec: GitSyncSpec) -> None:
    """ValueError names the field of a branch or a folder that Git could not have."""
    destination = spec.destination
    normal_root(spec.path)
    written = spec.system_to_git and isinstance(destination, UnsetType)
    if spec.revision != HEAD or written:
        _check_branch(spec.revision, "spec.revision", written=written)
    if not isinstance(destination, UnsetType):
        normal_root(destination.path, "spec.destination.path")
        _check_branch(destination.revision, "spec.destination.revision", written=True)


def _check_branch(name: str, field: str, *, written: bool) -> None:
    try:
        branch_name(name)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    if written and (name.startswith("refs/") or is_commit(name)):
        raise ValueError(f"{field}: is written to, so it must be the name of a branch, as in main; it is {name!r}")


def destination_of(sync: GitSync) -> str:
    """Where changes of the system go, in one line; "" for where the documents come from. ValueError when both would be read."""
    spec, to = sync.spec, sync.spec.destination
    if isinstance(to, UnsetType):
        return ""
    source, root = normal_root(spec.path), normal_root(to.path, "spec.destination.path")
    if (to.repository, to.revision, root) == (spec.repository, spec.revision, source):
        return ""
    if to.repository == spec.repository:
        _check_apart(spec, to)
    return f"{to.repository} {to.revision} {root}"


def _check_apart(spec: GitSyncSpec, to: Destination) -> None:
    """ValueError when what is written to the one repository would be read again. HEAD may be any of its branches."""
    source, root = normal_root(spec.path), normal_root(to.path)
    same_branch = spec.revision.removeprefix("refs/heads/") in (to.revision, HEAD)
    if same_branch and (not source or root == source or root.startswith(f"{source}/")):
        may = "" if spec.revision == to.revision else f" ({spec.revision} may be {to.revision})"
        raise ValueError(f"spec.destination.path: is in the folder that is synced{may}; take another folder or branch")


async def destination_repository(client: Client, sync: GitSync, to: Destination) -> Repository:
    """The Repository that changes of the system go to. Stop when it is the source by another name, and would be read again."""
    found = await git_repository(client, sync, to.repository, "spec.destination.repository")
    source = await git_repository(client, sync, sync.spec.repository)
    if _address(found) == _address(source):
        try:
            _check_apart(sync.spec, to)
        except ValueError as error:
            message = f"{error}: {to.repository} and {sync.spec.repository} are one repository"
            raise Stop(Verdict(False, "InvalidSpec", message, stalled=True)) from None
    return found


def _address(repository: Repository) -> str:
    return repository.spec.endpoint.rstrip("/").removesuffix(".git")


async def git_repository(client: Client, sync: GitSync, name: str, field: str = "spec.repository") -> Repository:
    """The Repository of this name that the sync may use."""
    try:
        repository = await repository_of(client, name, sync.namespace)
    except Ambiguous as error:
        raise Stop(Verdict(False, "RepositoryAmbiguous", f"{field}: {error}")) from None
    if repository is None:
        message = f'{field}: there is no Repository "{name}" in {sync.namespace}, nor one shared with it'
        raise Stop(Verdict(False, "RepositoryMissing", message))
    if repository.spec.type != "git":
        message = f'{field}: "{name}" is of type {repository.spec.type}; it must be git'
        raise Stop(Verdict(False, "InvalidSpec", message, stalled=True))
    return repository
