"""Changes of documents in their files, which keep everything else in them as it is: comments, order, quotes, indentation."""

from trimtab.systems.gitops.editing.files import apply_edits, delete_document, edit_document, new_file
from trimtab.systems.gitops.editing.yaml_files import EditError

__all__ = ["EditError", "apply_edits", "delete_document", "edit_document", "new_file"]
