"""What names inside built-in objects may be, beyond the DNS names of `trimtab.model`. Each check returns what is wrong, in
the words of `k8s.io/apimachinery/pkg/util/validation`."""

from __future__ import annotations

import re

from trimtab.model.metadata import dns_1035_label_problems

_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_CONFIG_KEY_SAYS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_CONFIG_KEY}')"
)


def dns_1035_label_name(name: str, prefix: bool) -> list[str]:
    """The name of a Service. A prefix may end in a dash; the real server masks two characters, so do we."""
    return dns_1035_label_problems(name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name)


def config_key(key: str) -> list[str]:
    """A key of a ConfigMap or a Secret, which may become the name of a file."""
    problems = ["must be no more than 253 characters"] if len(key.encode()) > 253 else []
    if not _is_config_key(key):
        problems.append(_CONFIG_KEY_SAYS)
    if key == ".":
        problems.append("must not be '.'")
    elif key == "..":
        problems.append("must not be '..'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def env_name(name: str) -> list[str]:
    """With RelaxedEnvironmentVariableValidation, which is on in 1.32."""
    if not name:
        return ["environment variable name must be non-empty"]
    if any(sign == "=" or not " " <= sign <= "~" for sign in name):
        return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
    return []


def port_name(name: str) -> list[str]:
    problems = []
    if len(name) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number(port: int) -> list[str]:
    return [] if 1 <= port <= 65535 else ["must be between 1 and 65535, inclusive"]
