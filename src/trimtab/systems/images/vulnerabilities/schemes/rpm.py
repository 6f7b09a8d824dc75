"""RPM versions, as rpm's own comparison orders them: `[epoch:]version[-release]`.

Each part is a row of runs of digits and runs of letters; what stands between them only parts them. At one place `~` sorts
before the end, the end before `^`, that before letters, and letters before numbers.
"""

from __future__ import annotations

import re

Run = tuple[int, int | str]
Key = tuple[int, tuple[Run, ...], tuple[Run, ...]]


def key(version: str) -> Key:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError("no RPM version: [epoch:]version[-release] without spaces")
    epoch, upstream, release = match.groups()
    return int(epoch or 0), _runs(upstream), _runs(release) if release is not None else ()


def _runs(text: str) -> tuple[Run, ...]:
    runs: list[Run] = []
    for run in _RUN.findall(text):
        if run == "~":
            runs.append(_TILDE)
        elif run == "^":
            runs.append(_CARET)
        elif run[0] in "0123456789":
            runs.append((4, int(run)))
        else:
            runs.append((3, run))
    runs.append(_END)
    return tuple(runs)


_TILDE, _END, _CARET = (0, 0), (1, 0), (2, 0)
_VERSION = re.compile(r"(?:([0-9]{1,9}):)?([!-,.-9;-~]+)(?:-([!-,.-9;-~]*))?")  # printable, without - and :
_RUN = re.compile(r"~|\^|[0-9]+|[A-Za-z]+")
