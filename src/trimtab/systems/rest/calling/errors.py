"""What an answer that is no success means. Pure.

Every service writes its errors in a form of its own: `problem_of` finds code and message in the usual ones. `classify`
decides by the overlay's rules, then by the code, then by what the message says, then by the status. The order matters:
many a 400 means "not yet", and a 404 to a creation means that its parent is not there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.model.backoff import Chance, pause
from trimtab.model.redacted import TEXT, Redacted
from trimtab.systems.rest.calling.contract import CallError, ErrorClass, Request
from trimtab.systems.rest.calling.meanings import BY_CODE, BY_MESSAGE

LONGEST = 300  # characters of a message
DEEPEST = 6  # errors inside of errors that are looked into
READS = frozenset({"GET", "HEAD"})


class Problem(msgspec.Struct, frozen=True):
    """What a service says went wrong. `codes` are all of its codes, the outermost first."""

    message: str = ""
    codes: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        return self.codes[0] if self.codes else ""


def problem_of(body: Any, text: str = "") -> Problem:
    """Of a decoded body: ARM and OData (`error.code`, `message`, `details`, `innererror`), RFC 7807 (`title`, `detail`,
    `type`), LXD and PowerDNS (`error`: a text), Docker and others (`message`). `text` is for a body that is no JSON."""
    codes: list[str] = []
    messages: list[str] = []
    _collect(body, codes, messages, DEEPEST)
    message = ": ".join(dict.fromkeys(messages)) if messages else text
    return Problem(_line(message), tuple(dict.fromkeys(codes)))


def error_inside(body: Any) -> bool:
    """Whether what came with a success says that it was none: an error and nothing else, or LXD's envelope of one."""
    if not isinstance(body, Mapping):
        return False
    if body.get("type") == "error" and "error" in body:
        return True
    return bool(body) and all(key in _ERROR_KEYS and value for key, value in body.items())


def classify(status: int, problem: Problem, *, verb: str, rules: Sequence[Mapping[str, str]] = ()) -> ErrorClass:
    """`verb` is the request's. ValueError when a rule of the overlay cannot be read."""
    declared = ruled(status, problem, rules)
    if declared is not None:
        return declared
    for code in reversed(problem.codes):  # the innermost is the cause
        for meaning in BY_CODE.get(code.lower(), ()):
            if meaning.fits(status, verb):
                return meaning.kind
    for pattern, meaning in BY_MESSAGE:
        if meaning.fits(status, verb) and pattern.search(problem.message):
            return meaning.kind
    return _by_status(status, verb)


def ruled(status: int, problem: Problem, rules: Sequence[Mapping[str, str]]) -> ErrorClass | None:
    """What the overlay says, by the first rule that fits."""
    return next((ErrorClass(rule["class"]) for rule in rules if _applies(rule, status, problem)), None)


def error_of(
    request: Request,
    status: int,
    body: Any,
    *,
    text: str = "",
    retry_after: float | None = None,
    headers: Mapping[str, str] | None = None,
    secrets: Iterable[Redacted] = (),
) -> CallError:
    """The error that an answer is."""
    problem = problem_of(body, text)
    kind = classify(status, problem, verb=request.verb, rules=request.rules)
    said = ": ".join(part for part in (f"{status} {problem.code}".strip(), problem.message) if part)
    return CallError(
        kind,
        described(request, said, secrets),
        status=status,
        code=problem.code,
        retry_after=retry_after,
        uncertain=request.method not in READS and (status >= 500 or status == 408),
        request=request,
        headers=headers,
    )


def described(request: Request, said: str, secrets: Iterable[Redacted] = ()) -> str:
    """One line about a call, without what nobody may see."""
    path = _ORIGIN.sub("", request.url.partition("?")[0]) or "/"
    if len(path) > _LONGEST_PATH:
        path = "…" + path[-_LONGEST_PATH:]
    return _line(scrubbed(f"{request.method} {path}: {said}", (*secrets, *request.secrets)))


def scrubbed(text: str, secrets: Iterable[Redacted]) -> str:
    """Without any of the secrets, nor what looks like a token."""
    for secret in secrets:
        try:
            plain = secret.reveal()
        except ValueError:
            continue  # no text: it cannot be in one
        for form in {plain, plain.strip(), plain.strip().rpartition(" ")[2]}:
            if len(form) >= _SHORTEST_SECRET:
                text = text.replace(form, TEXT)
    return _TOKEN.sub(lambda found: f"{found.group(1)}{TEXT}", text)


def retry_delay(kind: ErrorClass, attempt: int, retry_after: float | None, chance: Chance) -> float:
    """Seconds until it is tried again. `attempt` counts from 0. What the service asks for is the least, and is kept."""
    if kind is ErrorClass.UNKNOWN or kind is ErrorClass.TERMINAL:
        delay = _VERY_SLOW * chance.uniform(0.75, 1.25)
    else:
        first, longest = _PAUSES[kind]
        delay = pause(attempt, first, longest, chance)
    if retry_after is None:
        return delay
    asked = min(max(retry_after, 0.0), _LONGEST_WISH) * chance.uniform(1.0, 1.25)  # not all at the same moment
    return asked if kind in (ErrorClass.THROTTLED, ErrorClass.DEPENDENCY, ErrorClass.TRANSIENT) else max(asked, delay)


_VERY_SLOW = 45 * 60.0
_LONGEST_WISH = 3600.0
_PAUSES = {
    ErrorClass.TRANSIENT: (1.0, 30.0),
    ErrorClass.CONFLICT: (0.5, 30.0),
    ErrorClass.PRECONDITION: (0.2, 30.0),
    ErrorClass.EXISTS: (1.0, 180.0),
    ErrorClass.GONE: (1.0, 180.0),
    ErrorClass.DEPENDENCY: (2.0, 180.0),
    ErrorClass.THROTTLED: (10.0, 300.0),
    ErrorClass.AUTH: (15.0, 900.0),
    ErrorClass.IMMUTABLE: (60.0, 3600.0),
}

_LONGEST_PATH = 80
_ORIGIN = re.compile(r"^https?://[^/]*")
_SHORTEST_SECRET = 4
_ERROR_KEYS = frozenset({"error", "errors"})
_TOKEN = re.compile(
    r"((?:bearer|basic|token|api-?key)[ :=]+\"?)(?=[A-Za-z0-9._~+/=-]*\d)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE
)


def _by_status(status: int, verb: str) -> ErrorClass:
    if status in (401, 403, 407):
        return ErrorClass.AUTH
    if status in (404, 410):
        return ErrorClass.DEPENDENCY if verb == "create" else ErrorClass.GONE
    if status == 409:
        return ErrorClass.CONFLICT
    if status in (412, 428):
        return ErrorClass.PRECONDITION
    if status in (405, 413, 414, 415, 501):
        return ErrorClass.TERMINAL
    if status in (408, 425) or status >= 500:
        return ErrorClass.TRANSIENT
    if status in (423, 424):  # locked; a failed dependency
        return ErrorClass.DEPENDENCY
    if verb == "delete" and status in (400, 422):  # nobody can change the spec of what is to go: most wait for others
        return ErrorClass.DEPENDENCY
    if status == 429:
        return ErrorClass.THROTTLED
    return ErrorClass.UNKNOWN


def _applies(rule: Mapping[str, str], status: int, problem: Problem) -> bool:
    if rule.get("status") and int(rule["status"]) != status:
        return False
    if rule.get("code") and rule["code"].lower() not in (code.lower() for code in problem.codes):
        return False
    return not rule.get("message") or _regex(rule["message"]).search(problem.message) is not None


@functools.lru_cache(maxsize=1024)
def _regex(text: str) -> Any:
    import re2

    try:
        return re2.compile(text)
    except re2.error:
        raise ValueError(f"the overlay has a rule for errors with {text!r}, which is no regular expression") from None


def _collect(value: Any, codes: list[str], messages: list[str], depth: int) -> None:
    if isinstance(value, str):
        messages.append(value)
        return
    if depth == 0:
        return
    if isinstance(value, Sequence):
        for item in value[:8]:
            _collect(item, codes, messages, depth - 1)
        return
    if not isinstance(value, Mapping):
        return
    value = {str(key).lower(): item for key, item in value.items()}
    inner = value.get("error") or value.get("odata.error")
    if isinstance(inner, Mapping):
        _collect(inner, codes, messages, depth - 1)
        return
    for key in ("code", "errorcode"):
        if isinstance(code := value.get(key), str | int) and code and not isinstance(code, bool):
            codes.append(str(code)[:128])
            break
    for key in ("message", "detail", "title", "error_description", "err", "cause"):
        found = value.get(key)
        if isinstance(found, Mapping):  # OData 3: {"lang": …, "value": …}
            found = found.get("value")
        if isinstance(found, str) and found:
            messages.append(found)
            break
    if isinstance(inner, str) and inner:
        messages.append(inner)
    if not codes and isinstance(kind := value.get("type"), str) and kind not in ("", "about:blank", "error"):
        codes.append(kind.rstrip("/").rpartition("/")[2][:128])
    for key in ("details", "innererror", "errors"):
        nested = value.get(key)
        if isinstance(nested, Mapping) or (isinstance(nested, Sequence) and not isinstance(nested, str)):
            _collect(nested, codes, messages if key != "innererror" or not messages else [], depth - 1)


def _line(text: str) -> str:
    line = " ".join(text[: LONGEST * 8].split())
    line = "".join(letter for letter in line if letter.isprintable())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
