"""What a kind is called after the segments of its URL: `virtualMachineScaleSets` makes VirtualMachineScaleSet. Pure.

A name that two kinds want goes to the one whose path is shorter; the others put what they are below in front. So a new path
deep in a document does not change the name of a kind that is in use.
"""

from __future__ import annotations

import re

LONGEST = 63

_ENDS_IN_S = frozenset(("alias", "bias", "gas", "canvas", "atlas", "lens"))
_SAME = frozenset(("dns", "https", "news", "series", "species", "redis", "kubernetes", "metadata"))
_WORD = re.compile(r"[A-Za-z0-9]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


def kind_name(segment: str, parameter: str = "") -> str:
    """The parameter that follows a segment may tell where its words begin: resourcegroups/{resourceGroupName}."""
    name = camel(singular(segment))
    for spelt in (camel(parameter), camel(parameter).removesuffix("Name")):
        if spelt.lower() == name.lower():
            name = spelt
    return name if name[:1].isalpha() else f"Resource{name}"


def plural_name(kind: str) -> str:
    """Lower case, as kubectl wants it."""
    return plural(kind).lower()


def unique(wanted: list[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Names for kinds that each want one and have others to put in front of it, nearest first; in this order they choose.
    No two have the same name or the same plural."""
    taken: set[str] = set()
    chosen = []
    for name, prefixes in wanted:
        candidates = [name]
        for prefix in prefixes:
            candidates.append(prefix if prefix.endswith(candidates[-1]) else prefix + candidates[-1])
        fitting = [each for each in candidates if len(plural_name(each)) <= LONGEST]
        free = next((each for each in fitting if plural_name(each) not in taken), None) or _numbered(name, taken)
        taken.add(plural_name(free))
        chosen.append(free)
    return chosen


def singular(word: str) -> str:
    """Of an English noun, the last of several words that are written together."""
    low = word.lower()
    if len(word) < 3 or not low.endswith("s") or low.endswith(("ss", "us", "is")):
        return word
    if _last_of(word) in _SAME | _ENDS_IN_S:
        return word
    if low.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if low.endswith(("sses", "shes", "xes", "tches", "nches", "rches", "iases", "zzes")):
        return word[:-2]
    if low.endswith("uses") and not low.endswith(("ouses", "auses")) and len(word) > 5:
        return word[:-2]
    return word[:-1]


def plural(word: str) -> str:
    """The word itself when it is one already."""
    low = word.lower()
    if _last_of(word) in _SAME or singular(word) != word:
        return word
    if low.endswith("y") and low[-2:-1] not in tuple("aeiou"):
        return word[:-1] + "ies"
    if low.endswith(("s", "x", "z", "sh", "ch")):
        return word + "es"
    return word + "s"


def camel(segment: str) -> str:
    """`storage-pools` → StoragePools."""
    return "".join(word[0].upper() + word[1:] for word in _WORD.findall(segment))


def words(name: str) -> list[str]:
    """`silenceID`, `silence_id` → ["silence", "id"]."""
    return [word.lower() for word in _PART.findall(name)]


def _numbered(name: str, taken: set[str]) -> str:
    number = 2
    while plural_name(f"{name[: LONGEST - 6]}{number}") in taken:
        number += 1
    return f"{name[: LONGEST - 6]}{number}"


def _last_of(word: str) -> str:
    return (words(word) or [word])[-1]
