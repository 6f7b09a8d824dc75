"""Which item of a list became which."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import msgspec

from trimtab.systems.gitops.merging import DEFAULT_KEYS

Part = tuple[str, int, int, int, int]
"""What became of items: "replace" is one for one; else those from, to were there before, and those from, to are now."""


def alignment(before: list[Any], after: list[Any]) -> list[Part]:
    """Parts that differ or may: by name where items have names, else the longest common parts."""
    for key in DEFAULT_KEYS:
        names = [[item.get(key) if isinstance(item, dict) else None for item in items] for items in (before, after)]
        if all(isinstance(n, str) for side in names for n in side) and all(len(set(n)) == len(n) for n in names):
            found = []
            for tag, low, high, to_low, to_high in SequenceMatcher(
                None, names[0], names[1], autojunk=False
            ).get_opcodes():
                if tag == "equal":
                    found += [("replace", low + n, low + n + 1, to_low + n, to_low + n + 1) for n in range(high - low)]
                else:
                    found.append(("other", low, high, to_low, to_high))
            return found
    tokens = [[msgspec.json.encode(item, order="deterministic") for item in items] for items in (before, after)]
    codes = SequenceMatcher(None, tokens[0], tokens[1], autojunk=False).get_opcodes()
    return [code for code in codes if code[0] != "equal"]
