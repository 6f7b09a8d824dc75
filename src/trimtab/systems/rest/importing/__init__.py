"""From what exists to objects that stand for it: documents to apply, which adopt it without a write.

importer   the walk through a service, parents before children
specs      from what a read gives to a spec
naming     names that Kubernetes takes, and that are not taken
patience   a service that asks for a pause gets it
"""

from trimtab.systems.rest.importing.importer import BadIdentifier, Imported, Importer, Kind, NotThere

__all__ = ["BadIdentifier", "Imported", "Importer", "Kind", "NotThere"]
