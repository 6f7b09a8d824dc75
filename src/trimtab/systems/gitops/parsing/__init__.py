"""From the files of a revision to documents, without I/O: `parse_file` per blob, then `gather` for the revision."""

from trimtab.systems.gitops.parsing.beside import PathError, artifact_path
from trimtab.systems.gitops.parsing.documents import Claim, Parsed, ParsedFile, Problem, SourceDocument
from trimtab.systems.gitops.parsing.gathering import confine, gather, parse, unsynced
from trimtab.systems.gitops.parsing.identity import Identity, group_of, identity_of
from trimtab.systems.gitops.parsing.ignoring import IGNORE_FILE, Ignore, TooLong, is_hidden, is_json, is_read
from trimtab.systems.gitops.parsing.reading import Limits, digest_of, parse_file, parse_quickly
from trimtab.systems.gitops.parsing.selecting import Selection, SelectionError, selection

__all__ = [
    "IGNORE_FILE",
    "Claim",
    "Identity",
    "Ignore",
    "Limits",
    "Parsed",
    "ParsedFile",
    "PathError",
    "Problem",
    "Selection",
    "SelectionError",
    "SourceDocument",
    "TooLong",
    "artifact_path",
    "confine",
    "digest_of",
    "gather",
    "group_of",
    "identity_of",
    "is_hidden",
    "is_json",
    "is_read",
    "parse",
    "parse_file",
    "parse_quickly",
    "selection",
    "unsynced",
]
