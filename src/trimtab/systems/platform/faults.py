"""What keeps a resource from being what it should be: a reason for programs and a sentence for people. It becomes a
condition; nothing secret is ever in it."""

from __future__ import annotations

import re

from trimtab.client.config import ConfigError
from trimtab.client.transport import Silent, Unreachable
from trimtab.model.errors import StatusError

MESSAGE_MAX = 1024
_TAG = re.compile("could not determine a constructor for the tag .*", re.DOTALL)


class Fault(Exception):  # noqa: N818 - it reads as what is wrong
    """`again`: it may pass without anybody changing anything."""

    def __init__(self, reason: str, message: str, *, again: bool = True) -> None:
        super().__init__(cut(message))
        self.reason, self.again = reason, again

    @property
    def message(self) -> str:
        return str(self)


def cut(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX else message[: MESSAGE_MAX - 1] + "…"


def without_tag(message: str) -> str:
    """What is wrong with YAML: a value that begins with an exclamation mark, and may be a password, is taken for a tag."""
    return _TAG.sub("a tag is not known", message)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def of_call(error: Exception) -> Fault:
    """Why a call to another cluster failed."""
    if isinstance(error, StatusError):
        if error.code == 401:
            return Fault("Unauthorized", f"the cluster does not accept the kubeconfig's credentials: {error.message}")
        if error.code == 403:
            return Fault("Forbidden", f"the kubeconfig's user may not do this: {error.message}")
        return Fault("ClusterRefused", error.message)
    if isinstance(error, ConfigError):
        return Fault("Untrusted", str(error))
    if isinstance(error, Unreachable | Silent):
        return Fault("Unreachable", str(error))
    if isinstance(error, TimeoutError):
        return Fault("TooSlow", "the cluster answers too slowly: what was begun goes on at the next attempt")
    return Fault("Unreachable", str(error) or type(error).__name__)
