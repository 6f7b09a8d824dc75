"""The whole revision, judged before anything is done. What was judged before, by the same schema, is not judged again."""

from __future__ import annotations

from functools import partial

from trimtab.systems.gitops import artifacts
from trimtab.systems.gitops.acting import outside
from trimtab.systems.gitops.hiding import is_hidden
from trimtab.systems.gitops.inventory import Inventory
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.parsing import Problem, Selection, selection, unsynced
from trimtab.systems.gitops.reading import Snapshot, linked
from trimtab.systems.gitops.run.tools import Memory, Tools
from trimtab.systems.gitops.run.verdicts import Stop
from trimtab.systems.gitops.telling import Verdict, first, problems_of


def check(snapshot: Snapshot, sync: GitSync, tools: Tools, memory: Memory) -> None:
    """Stop, with all problems, when there is one."""
    problems = list(snapshot.problems)
    chosen = selection(sync.spec.include, sync.spec.exclude)
    documents = snapshot.parsed.documents
    if chosen != Selection():
        documents = tuple(d for d in documents if chosen.selects(d.identity))
    this = (snapshot, int(sync.metadata.generation or 0))
    if memory.sound is None or memory.sound[0] is not snapshot or memory.sound[1] != this[1]:
        unsound = [*artifacts.problems(documents, snapshot, tools.knowledge), *unsynced(documents)]
        memory.sound = None if unsound else this
        problems += unsound
    judged, known = set(), []
    for document in documents:
        if document.digest in memory.judged:
            known.append(document)
            judged.add(document.digest)
            continue
        names = (str(document.document["apiVersion"]), str(document.document["kind"]))
        hidden = partial(is_hidden, paths=tools.knowledge.secret(*names))
        found = tools.served.problems(document.document, hidden)
        problems += [Problem(document.path, document.line, message) for message in found]
        if found and tools.served.resource(*names) is None:
            continue  # nobody knows what it would be: that alone is told
        known.append(document)
        if not found:
            judged.add(document.digest)
    problems += outside(sync, tuple(known))
    memory.judged = frozenset(judged)
    _stop(problems, snapshot)


def check_claims(snapshot: Snapshot, inventory: Inventory) -> None:
    """Stop when a document that was applied would be deleted, for another one names its file, or its folder is a link now."""
    _stop([*artifacts.overtaken(snapshot.parsed, inventory), *linked(snapshot, inventory)], snapshot)


def _stop(problems: list[Problem], snapshot: Snapshot) -> None:
    if problems:
        told = problems_of(sorted(problems))
        count = "1 problem" if len(told) == 1 else f"{len(told)} problems"
        message = f"{count} in {snapshot.commit[:12] or 'the folder'}, so nothing of it is applied: {first(told)}"
        raise Stop(Verdict(False, "InvalidDocuments", message, patient=True, documents=told))
