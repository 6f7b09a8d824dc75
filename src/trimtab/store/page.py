"""Cutting a list into pages: selectors, limit, and what is left. Shared by all stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trimtab.store.contract import Entry, Key, Page, Query, Revision


def page(entries: Iterator[Entry], query: Query, revision: Revision, rest: Callable[[Key], int]) -> Page:
    """The first page of `entries`, which are sorted and begin after `query.after`. `rest` counts those after a key.

    A page that stops at its limit says that there is more when any entry follows, whether or not a selector would take
    it: looking for the next match may mean to read everything.
    """
    labels, fields, limit = query.labels, query.fields, query.limit
    selective = labels is not None or fields is not None
    counted = query.counted and not selective
    if not selective and not limit:
        return Page(revision=revision, entries=list(entries))
    kept: list[Entry] = []
    for entry in entries:
        if len(kept) == limit:
            last = kept[-1].key
            return Page(revision=revision, entries=kept, after=last, remaining=rest(last) if counted else None)
        if labels is not None and not labels.matches(entry.labels):
            continue
        if fields is not None and not fields.matches(entry.fields):
            continue
        kept.append(entry)
    return Page(revision=revision, entries=kept)
