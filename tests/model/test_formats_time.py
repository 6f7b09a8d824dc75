"""No format takes longer than a text is long, whatever its sender thought of."""

import contextlib
import time

import pytest

from trimtab.model.cel.times import loose_duration
from trimtab.model.duration import nanoseconds
from trimtab.model.schema.formats import _CHECKS, check_of

LENGTH = 200_000
TEXTS = {
    "digits": "1" * LENGTH,
    "digits and a dot": "1" * (LENGTH // 2) + "." + "1" * (LENGTH // 2),
    "digits and blanks": "1" + " " * LENGTH,
    "pairs": "1 " * (LENGTH // 2),
    "units": "1h" * (LENGTH // 2) + "!",
    "letters": "a" * LENGTH + "!",
    "ats": "a@" * (LENGTH // 2),
    "dots": "a." * (LENGTH // 2),
    "colons": "1:" * (LENGTH // 2),
    "hyphens": "-" * LENGTH,
    "slashes": "http://" + "a/%41" * (LENGTH // 5),
    "quotes": '"' * LENGTH,
    "brackets": "<" * LENGTH + ">",
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", sorted(_CHECKS))
def test_a_long_text_is_judged_at_once(name: str, text: str) -> None:
    check = check_of(name)
    assert check is not None
    started = time.process_time()
    check(TEXTS[text])
    assert time.process_time() - started < 1.0  # what looks at each pair of characters takes minutes


@pytest.mark.parametrize("text", TEXTS)
def test_durations_elsewhere_are_judged_at_once(text: str) -> None:
    started = time.process_time()
    for read in (loose_duration, nanoseconds):
        with contextlib.suppress(ValueError):
            read(TEXTS[text])
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("text", "good"),
    [("1h5m", True), ("1.5h", True), ("1.h", True), (".5s", True), ("5 days", True), ("12", False), ("x5", False),
     ("3 weeks, 2", True), ("0", True), ("5x", False), ("1 2 3d", True)],
)  # fmt: skip
def test_durations_are_what_they_were(text: str, good: bool) -> None:
    check = check_of("duration")
    assert check is not None
    assert check(text) is good
