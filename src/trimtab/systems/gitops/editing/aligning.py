"""Which item of a list became which."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import msgspec

from trimtab.systems.gitops.merging import DEFAULT_KEYS

Part = tuple[str, int, int, int, int]
"""What became of items: "replace" is one for one; else those from, to were there before, and those from, to are now."""


LONGEST = 1000
"""Items among which the common parts are looked for: that takes the square of them, or more."""


def alignment(before: list[Any], after: list[Any]) -> list[Part]:
    """Parts that differ or may: by name where items have names, else the longest common parts."""
    for key in DEFAULT_KEYS:
        names = [[item.get(key) if isinstance(item, dict) else None for item in items] for items in (before, after)]
        if all(isinstance(n, str) for side in names for n in side) and all(len(set(n)) == len(n) for n in names):
            found = []
            for tag, low, high, to_low, to_high in _codes(names[0], names[1]):
                if tag == "equal":
                    found += [("replace", low + n, low + n + 1, to_low + n, to_low + n + 1) for n in range(high - low)]
                else:
                    found.append(("other", low, high, to_low, to_high))
            return found
    tokens = [[msgspec.json.encode(item, order="deterministic") for item in items] for items in (before, after)]
    return [code for code in _codes(tokens[0], tokens[1]) if code[0] != "equal"]


def _codes(before: list[Any], after: list[Any]) -> list[Part]:
    """What SequenceMatcher tells. Ends that are the same are no matter of search; what is long between them is one part."""
    most = min(len(before), len(after))
    start = next((n for n in range(most) if before[n] != after[n]), most)
    end = next((n for n in range(most - start) if before[-1 - n] != after[-1 - n]), most - start)
    one, other = before[start : len(before) - end], after[start : len(after) - end]
    found: list[Part] = [("equal", 0, start, 0, start)] if start else []
    if max(len(one), len(other)) > LONGEST:
        found.append(("replace", start, start + len(one), start, start + len(other)))
    else:
        codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
        found += [(tag, low + start, high + start, at + start, to + start) for tag, low, high, at, to in codes]
    if end:
        found.append(("equal", len(before) - end, len(before), len(after) - end, len(after)))
    return found
