"""The base score of a CVSS v3.0 or v3.1 vector (first.org/cvss, specification v3.1, section 7.1)."""

from __future__ import annotations

PREFIXES = ("CVSS:3.0/", "CVSS:3.1/")


def base_score(vector: str) -> float:
    """From 0.0 to 10.0. ValueError for a vector that is not whole; threat and environment are not looked at."""
    if not vector.startswith(PREFIXES):
        raise ValueError("no CVSS v3 vector")
    given = dict(part.partition(":")[::2] for part in vector[9:].rstrip("/").split("/"))
    try:
        changed = {"U": False, "C": True}[given["S"]]
        weight = {metric: weights[given[metric]] for metric, weights in _WEIGHTS.items()}
        privileges = (_PRIVILEGES_CHANGED if changed else _PRIVILEGES)[given["PR"]]
    except KeyError as error:
        raise ValueError(f"a CVSS v3 vector with a metric that is missing or not known: {error}") from None
    loss = 1 - (1 - weight["C"]) * (1 - weight["I"]) * (1 - weight["A"])
    impact = 7.52 * (loss - 0.029) - 3.25 * (loss - 0.02) ** 15 if changed else 6.42 * loss
    if impact <= 0:
        return 0.0
    exploitability = 8.22 * weight["AV"] * weight["AC"] * privileges * weight["UI"]
    return _roundup(min((1.08 if changed else 1.0) * (impact + exploitability), 10))


def _roundup(value: float) -> float:
    """To the next tenth, in whole numbers, so that no noise of floats lifts a score (appendix A of v3.1)."""
    whole = round(value * 100_000)
    return whole / 100_000 if whole % 10_000 == 0 else (whole // 10_000 + 1) / 10


_WEIGHTS = {
    "AV": {"N": 0.85, "A": 0.62, "L": 0.55, "P": 0.2},
    "AC": {"L": 0.77, "H": 0.44},
    "UI": {"N": 0.85, "R": 0.62},
    "C": {"H": 0.56, "L": 0.22, "N": 0.0},
    "I": {"H": 0.56, "L": 0.22, "N": 0.0},
    "A": {"H": 0.56, "L": 0.22, "N": 0.0},
}
_PRIVILEGES = {"N": 0.85, "L": 0.62, "H": 0.27}
_PRIVILEGES_CHANGED = {"N": 0.85, "L": 0.68, "H": 0.5}
