"""The base score of a CVSS v4.0 vector (first.org/cvss, specification v4.0, section 8.2).

A vector falls into one of a few groups ("macro vectors"), for which experts set a score. From that score a part of the way
to the next lower groups is taken off: as far as the vector lies below the highest one of its group. Only the base metrics
count (CVSS-B), so threat is at its worst and the table needs 60 of the 270 groups.
"""

from __future__ import annotations

import math

PREFIX = "CVSS:4.0/"


def base_score(vector: str) -> float:
    """From 0.0 to 10.0. ValueError for a vector that is not whole; threat and environment are not looked at."""
    if not vector.startswith(PREFIX):
        raise ValueError("no CVSS v4 vector")
    given = dict(part.partition(":")[::2] for part in vector[9:].rstrip("/").split("/"))
    try:
        level = {metric: values.index(given[metric]) for metric, values in _LEVELS.items()}
    except (KeyError, ValueError):
        raise ValueError("a CVSS v4 vector with a base metric that is missing or not known") from None
    if all(level[metric] == 2 for metric in ("VC", "VI", "VA", "SC", "SI", "SA")):
        return 0.0
    reach, effort, harm, beyond = _groups(level)
    score = _SCORES[reach, effort][beyond][harm]
    lower = {
        "reach": _SCORES[reach + 1, effort][beyond][harm] if reach < 2 else None,
        "effort": _SCORES[reach, 1][beyond][harm] if effort == 0 else None,
        "harm": _harm_below(_SCORES[reach, effort][beyond], harm),
        "beyond": _SCORES[reach, effort][1][harm] if beyond == 0 else None,
    }
    share = {
        "reach": _depth(level, _HIGHEST_REACH[reach]) / (1, 4, 5)[reach],
        "effort": _depth(level, _HIGHEST_EFFORT[effort]) / (1, 2)[effort],
        "harm": _depth(level, _HIGHEST_HARM[harm]) / {0: 7, 2: 8, 4: 10}[harm],
        "beyond": _depth(level, _HIGHEST_BEYOND[beyond]) / (5, 4)[beyond],
    }
    steps = [(score - below) * share[name] for name, below in lower.items() if below is not None]
    steps.append(0.0)  # threat: there is always a lower group, and no way towards it
    return math.floor(max(0.0, score - sum(steps) / len(steps)) * 10 + 0.5 + 1e-5) / 10


def _groups(level: dict[str, int]) -> tuple[int, int, int, int]:
    """Places in the table: EQ1, EQ2, EQ3 with EQ6, EQ4."""
    easy = [level[metric] == 0 for metric in ("AV", "PR", "UI")]
    reach = 0 if all(easy) else 1 if any(easy) and level["AV"] < 3 else 2
    effort = 0 if level["AC"] == level["AT"] == 0 else 1
    if level["VC"] == level["VI"] == 0:
        harm = 0
    else:
        harm = 2 if 0 in (level["VC"], level["VI"], level["VA"]) else 4
    return reach, effort, harm, 0 if 0 in (level["SC"], level["SI"], level["SA"]) else 1


def _harm_below(row: tuple[float, ...], harm: int) -> float | None:
    return {0: max(row[1], row[2]), 2: row[3], 4: None}[harm]


def _depth(level: dict[str, int], highest: tuple[dict[str, int], ...]) -> int:
    """How far it lies below the first of the highest vectors that is nowhere lower."""
    for top in highest:
        steps = [level[metric] - value for metric, value in top.items()]
        if min(steps) >= 0:
            return sum(steps)
    raise ValueError("a CVSS v4 vector outside of its group")


_LEVELS = {"AV": "NALP", "AC": "LH", "AT": "NP", "PR": "NLH", "UI": "NPA"} | dict.fromkeys(
    ("VC", "VI", "VA", "SC", "SI", "SA"), "HLN"
)
_HIGHEST_REACH = (
    ({"AV": 0, "PR": 0, "UI": 0},),
    ({"AV": 1, "PR": 0, "UI": 0}, {"AV": 0, "PR": 1, "UI": 0}, {"AV": 0, "PR": 0, "UI": 1}),
    ({"AV": 3, "PR": 0, "UI": 0}, {"AV": 1, "PR": 1, "UI": 1}),
)
_HIGHEST_EFFORT = (({"AC": 0, "AT": 0},), ({"AC": 1, "AT": 0}, {"AC": 0, "AT": 1}))
_HIGHEST_HARM = {
    0: ({"VC": 0, "VI": 0, "VA": 0},),
    2: ({"VC": 1, "VI": 0, "VA": 0}, {"VC": 0, "VI": 1, "VA": 0}),
    4: ({"VC": 1, "VI": 1, "VA": 1},),
}
_HIGHEST_BEYOND = (({"SC": 0, "SI": 0, "SA": 0},), ({"SC": 1, "SI": 1, "SA": 1},))
# By EQ1 and EQ2: rows for EQ4 of 1 and 2, columns for EQ3 and EQ6 of 00, 01, 10, 11 and 21; EQ5 is 0.
_SCORES: dict[tuple[int, int], tuple[tuple[float, ...], tuple[float, ...]]] = {
    (0, 0): ((10.0, 9.6, 9.3, 9.2, 7.9), (9.3, 9.0, 8.8, 8.0, 6.9)),
    (0, 1): ((9.5, 9.1, 9.2, 8.2, 7.1), (9.2, 8.1, 8.4, 7.0, 6.3)),
    (1, 0): ((9.4, 8.9, 8.6, 7.6, 6.5), (8.7, 7.5, 7.2, 5.7, 5.3)),
    (1, 1): ((9.0, 7.7, 7.4, 5.9, 5.8), (7.7, 6.6, 6.1, 5.2, 2.3)),
    (2, 0): ((8.6, 7.4, 7.2, 5.7, 4.7), (7.0, 5.4, 5.3, 3.6, 2.4)),
    (2, 1): ((7.3, 5.5, 6.1, 5.1, 2.4), (5.4, 4.3, 4.6, 1.8, 1.0)),
}
