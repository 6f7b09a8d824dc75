"""How bad a vulnerability is: Critical, High, Medium, Low or Unknown, and who says so.

A distribution knows how it builds a package, so its own word for it comes first (Ubuntu's priority, Debian's urgency);
then CVSS, the newest version that the advisory gives; then the label that its database set; then the word that RPM
distributions put before a title. A score is computed from the vector, never taken from the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from trimtab.systems.images.vulnerabilities import cvss3, cvss4

LABELS = ("Critical", "High", "Medium", "Low", "Unknown")
"""The worst first."""


class Severity(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`source` names the field that the label comes from; `score` and `vector` are there for CVSS only."""

    label: str = "Unknown"
    source: str = ""
    score: float | None = None
    vector: str = ""


UNKNOWN = Severity()


def rank(label: str) -> int:
    """For sorting: the worst first."""
    return LABELS.index(label) if label in LABELS else len(LABELS)


def of_score(score: float) -> str:
    """The label of a CVSS score, the same for versions 3 and 4. Nothing at all (0.0) counts as Low."""
    return "Critical" if score >= 9 else "High" if score >= 7 else "Medium" if score >= 4 else "Low"


def of_vectors(severities: Iterable[tuple[str, str]]) -> Severity | None:
    """Of OSV's `severity` list, pairs of type and score. None when it says nothing that can be read."""
    best: Severity | None = None
    for kind, text in severities:
        if kind == "Ubuntu":
            return of_word(text, "Ubuntu priority") or best
        vector = text.strip()[:_LONGEST]
        try:
            if kind == "CVSS_V4":
                score = cvss4.base_score(vector)
            elif kind == "CVSS_V3":
                score = cvss3.base_score(vector)
            else:
                continue
        except ValueError:
            continue  # another entry or the label may still say it; else the report says Unknown
        if best is None or kind > best.source:
            best = Severity(of_score(score), kind, score, vector)
    return best


def of_word(word: Any, source: str) -> Severity | None:
    """Of a label in anyone's words. None for one that says nothing, such as `not yet assigned`."""
    if not isinstance(word, str):
        return None
    label = _WORDS.get(word.strip().rstrip("*").lower())
    return Severity(label, source) if label else None


def of_title(title: str) -> Severity | None:
    """`Important: openssl security update`, as Red Hat and those built from it write."""
    word, colon, _ = title.partition(":")
    return of_word(word, "title of the advisory") if colon else None


_LONGEST = 300
_WORDS = {
    "critical": "Critical",
    "high": "High",
    "important": "High",
    "medium": "Medium",
    "moderate": "Medium",
    "low": "Low",
    "minor": "Low",
    "negligible": "Low",
    "unimportant": "Low",
}
