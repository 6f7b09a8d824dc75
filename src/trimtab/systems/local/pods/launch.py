"""How a container's process is started: its command with all that it needs, for either runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from trimtab.systems.local.pods.expansion import expand
from trimtab.systems.local.pods.names import MARK, RUNTIME
from trimtab.systems.local.pods.problem import CannotStart
from trimtab.systems.local.pods.process import executed

if TYPE_CHECKING:
    from trimtab.systems.local.pods.setting import Setting

Document = Mapping[str, Any]


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One start. `name` is that of the container, for podman, and `up` the file that is there once it runs."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    name: str = ""
    up: Path | None = None


class Launcher(Protocol):
    """A runtime. `launch` raises CannotStart."""

    async def launch(
        self,
        setting: Setting,
        container: Document,
        environment: Mapping[str, str],
        places: Mapping[str, Path],
        mark: str = "",
    ) -> Launch: ...

    async def execute(self, launch: Launch, command: Sequence[str], timeout: float) -> str:
        """Run a command beside the process; "" when it succeeded, else what is wrong. TimeoutError, OSError."""
        ...

    async def clear(self, name: str) -> None:
        """Whatever is left of a container that has ended."""
        ...


class AsProcess:
    """The command as it stands, with no shell."""

    async def launch(
        self,
        setting: Setting,
        container: Document,
        environment: Mapping[str, str],
        places: Mapping[str, Path],
        mark: str = "",
    ) -> Launch:
        if not container.get("command"):
            raise CannotStart(
                "NoCommand",
                f"image {container.get('image') or ''} is not run here: give the container a command, or have the image "
                f"run by podman with the annotation {RUNTIME}: podman",
            )
        place = Path(container.get("workingDir") or setting.folder.work)
        return Launch(
            command=command_of(container, environment),
            environment={**environment, MARK: mark},
            folder=place,
        )

    async def execute(self, launch: Launch, command: Sequence[str], timeout: float) -> str:
        return await outcome(command, launch.environment, launch.folder, timeout)

    async def clear(self, name: str) -> None:
        """Nothing: a process leaves nothing."""


def command_of(container: Document, environment: Mapping[str, str]) -> tuple[str, ...]:
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    return tuple(expand(word, environment) for word in words)


async def outcome(command: Sequence[str], environment: Mapping[str, str], folder: Path, timeout: float) -> str:
    """ "" when the command succeeded, else what it came to."""
    if not command:
        return "there is no command"
    without = {name: value for name, value in environment.items() if name != MARK}
    code, said = await executed(command, environment=without, folder=folder, timeout=timeout)
    if code == 0:
        return ""
    text = said.decode("utf-8", "replace").strip()[:200]
    return f"exit code {code}: {text}" if text else f"exit code {code}"
