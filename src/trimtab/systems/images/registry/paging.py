"""How a list goes on: `Link: </v2/_catalog?last=b&n=100>; rel="next"` (RFC 8288). Pure.

Only the query of a link is used, on the path that was asked for: a link may be relative, absolute, or name the host that
a registry believes to be behind its proxy, and must never lead anywhere else.

A registry that gives exactly as many as were asked for and no link may have more that it does not tell of, so it is asked
once more for what follows the last; one that does not know `last` then gives what is known already, and the list ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlencode, urlsplit

SIZES: tuple[int | None, ...] = (1000, 100, None)
"""How many to ask for: less when a registry refuses, then as many as it likes. Distribution takes 1000 at most."""
MOST_PAGES = 20_000
MOST_ITEMS = 1_000_000
LONGEST_QUERY = 4096


def first_query(size: int | None) -> str:
    return f"n={size}" if size is not None else ""


def next_query(links: Iterable[str], items: list[str], size: int | None) -> str | None:
    """The query of the next page; None: this was the last. ValueError when the link is no use."""
    for link in links:
        for target, parameters in _LINK.findall(link):
            if _NEXT.search(parameters):
                query: str = urlsplit(target).query
                if not query or len(query) > LONGEST_QUERY or not query.isascii() or not query.isprintable():
                    raise ValueError("its link to the next page cannot be followed")
                return query
    if size is not None and len(items) == size:
        return urlencode({"n": size, "last": items[-1]})
    return None


_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_NEXT = re.compile(r";\s*rel\s*=\s*(?:\"[^\"]*\bnext\b[^\"]*\"|next\b)", re.IGNORECASE)
