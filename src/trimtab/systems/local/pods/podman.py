"""Images by podman: a container is `podman run` in the foreground, a process like any other, which survives us as well.

It shares the network of the machine; the address that is the pod's own comes as POD_IP. Values of variables do not show
in the list of processes: podman is told names only, and takes the values from its own environment.

Whether podman works is asked of it once a minute at most, when a pod wants it. Limits are given as this process has them:
podman's own defaults are higher, and without CAP_SYS_RESOURCE the kernel refuses those. With the controllers of both
generations mounted (cgroups in hybrid mode) crun does not work, and runc is chosen.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.model.clock import Clock
from trimtab.systems.local.pods.launch import AsProcess, Launch, command_of, outcome
from trimtab.systems.local.pods.names import MARK, RUNTIME
from trimtab.systems.local.pods.problem import CannotStart
from trimtab.systems.local.pods.volumes import place_of

if TYPE_CHECKING:
    from trimtab.systems.local.pods.setting import Setting

Document = Mapping[str, Any]

ASKED = 60.0  # seconds that an answer holds
PATIENCE = 20.0
PULLS = {"Always": "always", "Never": "never"}
KEPT = ("PATH", "HOME", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "TMPDIR")


class Runtimes:
    """Launches each pod by the runtime that its annotation names."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._process = AsProcess()
        self._asked: tuple[float, str] | None = None

    async def launch(
        self,
        setting: Setting,
        container: Document,
        environment: Mapping[str, str],
        places: Mapping[str, Path],
        mark: str = "",
    ) -> Launch:
        wanted = (setting.pod["metadata"].get("annotations") or {}).get(RUNTIME, "process")
        if wanted == "process":
            return await self._process.launch(setting, container, environment, places, mark)
        if wanted != "podman":
            raise CannotStart("UnknownRuntime", f'there is no runtime "{wanted[:40]}"; there are process and podman')
        problem = await self._problem()
        if problem:
            raise CannotStart("PodmanUnavailable", f"podman does not work here: {problem}")
        name = f"trimtab-{setting.folder.uid}-{container['name']}"
        up = setting.folder.up(container["name"])
        return Launch(
            command=_command(name, container, environment, places, up),
            environment={**environment, **_own(), MARK: mark},
            folder=setting.folder.work,
            name=name,
            up=up,
        )

    async def execute(self, launch: Launch, command: Sequence[str], timeout: float) -> str:
        if not launch.name:
            return await self._process.execute(launch, command, timeout)
        return await outcome((_program(), "exec", launch.name, *command), _own(), launch.folder, timeout)

    async def clear(self, name: str) -> None:
        """A container goes on when the podman that started it is killed."""
        with contextlib.suppress(OSError, TimeoutError):
            await outcome((_program(), "rm", "--force", "--ignore", "--time=0", name), _own(), Path("/"), PATIENCE)

    async def _problem(self) -> str:
        now = self._clock.monotonic()
        if self._asked is None or now - self._asked[0] > ASKED:
            self._asked = (now, await _asked())
        return self._asked[1]


async def _asked() -> str:
    if shutil.which("podman") is None:
        return "it is not installed"
    try:
        return await outcome((_program(), "info", "--format={{.Host.OS}}"), _own(), Path("/"), PATIENCE)
    except (OSError, TimeoutError) as error:
        return str(error) or f"no answer within {PATIENCE:g} s"


def _command(
    name: str, container: Document, environment: Mapping[str, str], places: Mapping[str, Path], up: Path
) -> tuple[str, ...]:
    image = container.get("image") or ""
    if not image or image.startswith("-"):
        raise CannotStart("InvalidImageName", f'"{image[:100]}" is no image')
    options = [*flags(), f"--name={name}", "--replace", "--rm", "--network=host", "--log-driver=none"]
    options.append(f"--pidfile={up}")
    options.append(f"--pull={PULLS.get(container.get('imagePullPolicy') or '', 'missing')}")
    own = {each["name"] for each in container.get("env") or ()}
    for variable in environment:
        if variable in KEPT:  # podman's own, unless the pod has one too
            options += [f"--env={variable}={environment[variable]}"] if variable in own else []
        else:
            if not _VARIABLE.fullmatch(variable):
                raise CannotStart("CreateContainerConfigError", f'podman takes no variable "{variable[:60]}"')
            options.append(f"--env={variable}")
    for mount in container.get("volumeMounts") or ():
        place = place_of(mount, places)
        options.append(f"--volume={place}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}")
    if container.get("workingDir"):
        options.append(f"--workdir={container['workingDir']}")
    if container.get("command"):
        words = command_of({"command": container["command"]}, environment)
        options.append(f"--entrypoint={json.dumps(words)}")
    arguments = command_of({"args": container.get("args")}, environment)
    return (_program(), *choice(), "run", *options, image, *arguments)


def flags() -> tuple[str, ...]:
    """Limits that the kernel grants, and cgroups that runc wants."""
    made = []
    for limit, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        soft, hard = (1 << 20 if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(number))
        made.append(f"--ulimit={limit}={min(soft, MOST)}:{min(hard, MOST)}")
    return tuple(made)


MOST = 20_000


def choice() -> tuple[str, ...]:
    """The runtime, where podman's own choice would fail."""
    hybrid = Path("/sys/fs/cgroup/unified").is_dir()
    runc = shutil.which("runc", path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    return (f"--runtime={runc}", "--cgroup-manager=cgroupfs") if hybrid and runc else ()


def _program() -> str:
    return shutil.which("podman") or "podman"


def _own() -> dict[str, str]:
    """What podman itself needs to know."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
