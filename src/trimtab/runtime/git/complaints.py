"""What the git program's complaints mean. Pure: text in, one of our errors out.

The program speaks to people; its words are stable but no contract, so what is not recognised is told as it was said.
"""

from __future__ import annotations

import re

from trimtab.runtime.git.errors import (
    AuthFailed,
    HostKeyUnknown,
    NoSuchRef,
    RemoteError,
    TooLarge,
    Unreachable,
)

LONGEST = 300


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.MULTILINE)


_HOST_KEY = _any(r"host key verification failed", r"host identification has changed", r"no .* host key is known")
_CERTIFICATE = _any(
    r"certificate problem", r"server certificate verification failed", r"certificate verif\w+ failed",
    r"no alternative certificate subject name", r"ssl: .*does not match", r"subject name .* does not match",
)  # fmt: skip
_AUTH = _any(
    r"authentication failed", r"could not read (username|password)", r"permission denied \(", r"invalid credentials",
    r"returned error: 40[13]", r"too many authentication failures", r"incorrect passphrase", r"error in libcrypto",
    r"load key .*: ", r"access denied", r"service not enabled", r"invalid username or (password|token)",
)  # fmt: skip
_ABSENT = _any(
    r"repository .*not found", r"returned error: 404", r"does not appear to be a git repository",
    r"not exported", r"no such repository", r"not found: did you run git update-server-info",
)  # fmt: skip
_REF = _any(r"couldn't find remote ref", r"not our ref", r"unadvertised object", r"no such remote ref")
_REDIRECT = _any(r"returned error: 30\d", r"redirect")
_LARGE = _any(
    r"file size limit exceeded", r"file too large", r"out of memory", r"memory exhausted", r"fatal: pack exceeds maximum",
    r"mmap failed: cannot allocate", r"unable to (allocate|create thread)",
)  # fmt: skip
_CONNECT = _any(
    r"could not resolve host", r"name or service not known", r"temporary failure in name", r"connection refused",
    r"failed to connect", r"couldn't connect", r"unable to connect", r"no route to host", r"network is unreachable",
    r"connect to host", r"connection timed out", r"unable to look up",
)  # fmt: skip


def meaning(host: str, code: int, errors: str) -> RemoteError:
    """Of a run that failed."""
    said = short(errors)
    if _LARGE.search(errors):
        return TooLarge("the repository is larger than the limit; raise it, or use a smaller repository")
    if _HOST_KEY.search(errors):
        return HostKeyUnknown(
            f"the host key that {host} shows is not in known_hosts; when the server's owner says that it changed, "
            "give the new line"
        )
    if _CERTIFICATE.search(errors):
        return HostKeyUnknown(f"the certificate of {host} is not vouched for; give the CA that signed it as ca: {said}")
    if _AUTH.search(errors):
        return AuthFailed(f"{host} does not let us in; give credentials that may read (and push to) this repository")
    if _REF.search(errors):
        return NoSuchRef(f"{host} has no such branch, tag or commit: {said}")
    if _ABSENT.search(errors):
        return AuthFailed(f"{host} shows no such repository; look at the path, and whether the credentials may read it")
    if _REDIRECT.search(errors):
        return Unreachable(f"{host} sends us elsewhere, which is not followed; use the address it names: {said}")
    return Unreachable(f"{host} did not answer as a Git server does: {said or f'git ended with code {code}'}")


def certain(error: RemoteError, errors: str) -> bool:
    """Whether a push that failed so has surely changed nothing: it never got as far as to send it."""
    return isinstance(error, AuthFailed | HostKeyUnknown) or bool(_CONNECT.search(errors))


def short(errors: str) -> str:
    """The one line that says most, and the next where it ends in a colon."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    at, line = 0, ""
    for beginning in ("fatal:", "error:", "remote: error:", "ssh:", ""):
        at, line = next(((n, each) for n, each in enumerate(lines) if each.startswith(beginning)), (0, ""))
        if line:
            break
    if line.endswith(":") and at + 1 < len(lines):
        line = f"{line} {lines[at + 1]}"
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
