"""Git sync as a system: its kinds, its controllers, and what they may do.

Least privilege, as far as it goes: what documents are about is known only at run time, so the account may read, apply and delete
namespaced kinds of any group, and impersonate ServiceAccounts. A GitSync without a service account is held to its own
namespace, and to kinds that give no rights, by the sync itself (`acting.forbidden`); one with a service account acts as that, and
RBAC decides. Where that is too much, take the first rule away from the installed role and give every GitSync a service account.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.model.kubernetes import Namespace, Secret
from trimtab.runtime import Context, Controller, Rule, System
from trimtab.systems.gitops.gitsync_controller import GitSyncController
from trimtab.systems.gitops.kinds import GitSync, Repository, SyncConflict, hub_kinds
from trimtab.systems.gitops.repository_controller import RepositoryController


def _controllers(context: Context) -> Iterable[Controller[Any]]:
    return (RepositoryController(context), GitSyncController(context))


SYSTEM = System(
    name="gitops",
    hub=hub_kinds,
    reconciles=(RepositoryController, GitSyncController),
    controllers=_controllers,
    rules=(
        Rule(
            kinds=("*.*", "*.*/artifacts"),
            verbs=("get", "list", "watch", "create", "patch", "update", "delete", "lineage"),
        ),
        Rule(kinds=("serviceaccounts",), verbs=("impersonate",)),
        Rule(kinds=(SyncConflict,), verbs=("create", "patch", "delete")),
        Rule(kinds=("gitsyncs.hub.trimtab.dev/finalizers",), verbs=("update",)),
        Rule(kinds=(Secret,), verbs=("get", "list", "watch")),
        Rule(kinds=(Namespace,), verbs=("get",)),
        Rule(kinds=(GitSync, Repository), verbs=("patch",)),
    ),
    needs_blobs=True,
    requires=("pygit2",),
)
