"""What a text is about, told by the pattern that its schema has: schemas have no words for quantities and durations."""

from __future__ import annotations

import re

DURATIONS = re.compile(r"\^\(0\|\(\[0-9\]\+\(\\\.\[0-9\]\+\)\?\((ns|us|µs|ms)\|.*\)\)\+\)\$")
QUANTITIES, NO_QUANTITIES = ("1", "1.5", "500m", "2k", "1Ki", "4Gi"), ("", "http", "50%", "1KiB", "Gi")
LONGEST_PATTERN = 400
"""Characters of a pattern that is looked at."""


def takes_durations(pattern: str) -> bool:
    return DURATIONS.fullmatch(pattern) is not None


def takes_quantities(pattern: str) -> bool:
    """Whether a pattern is one of quantities: generators write it in many ways, so it is asked what it takes."""
    if not 0 < len(pattern) <= LONGEST_PATTERN:
        return False
    try:
        takes = re.compile(pattern).search
    except (re.error, OverflowError, RecursionError):
        return False
    return all(map(takes, QUANTITIES)) and not any(map(takes, NO_QUANTITIES))
