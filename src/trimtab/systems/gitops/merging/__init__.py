"""Three-way merge of documents, field by field, against what both sides were after the last sync."""

from trimtab.model.document import same
from trimtab.systems.gitops.merging.documents import Base, Merged, Policy, impose, merge
from trimtab.systems.gitops.merging.fields import DEFAULT_KEYS, FieldConflict
from trimtab.systems.gitops.merging.files import Fate, FileSides, fate
from trimtab.systems.gitops.merging.normal import normal

__all__ = [
    "DEFAULT_KEYS",
    "Base",
    "Fate",
    "FieldConflict",
    "FileSides",
    "Merged",
    "Policy",
    "fate",
    "impose",
    "merge",
    "normal",
    "same",
]
