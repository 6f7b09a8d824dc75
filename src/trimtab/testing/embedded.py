"""`trimtab up` as a process of its own, with the same interface as a real cluster.

A test can take either. It is ready when the constructor returns: the command has printed its ready line.
"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from trimtab.testing.processes import Process

_READY = re.compile(r"^trimtab is ready at (?P<url>https://\S+)\s+kubeconfig (?P<kubeconfig>.+?)\s*$", re.MULTILINE)


class TrimtabServer:
    """Starts on construction; the data stay in the folder, so another one on the same folder continues."""

    name = "trimtab"

    def __init__(self, folder: Path, *, flags: Sequence[str] = ()) -> None:
        log = folder / "trimtab.log"
        started = log.stat().st_size if log.exists() else 0
        command = [
            str(Path(sys.executable).with_name("trimtab")),
            "up",
            "--data-dir",
            str(folder / "data"),
            "--port",
            "0",
            *flags,
        ]
        self._process = Process(command, log=log)

        def ready_line() -> re.Match[str] | None:
            return _READY.search(log.read_bytes()[started:].decode(errors="replace"))

        try:
            self._process.wait_until(lambda: ready_line() is not None, within=60)
        except BaseException:
            self._process.kill()
            raise
        line = ready_line()
        assert line is not None  # noqa: S101 - wait_until has seen it
        self.url = line["url"]
        self.kubeconfig = Path(line["kubeconfig"])

    @property
    def pids(self) -> dict[str, int]:
        return {"server": self._process.pid} if self._process.running else {}

    def logs(self) -> str:
        return f"--- trimtab\n{self._process.tail()}"

    def log(self) -> str:
        """All that it printed, in this run and in earlier ones on the same folder."""
        return self._process.log.read_text(errors="replace")

    def wait_until(self, ready: Callable[[], bool], *, within: float) -> None:
        """As `Process` does it."""
        self._process.wait_until(ready, within=within)

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        """Ends it as a power cut would, to see what survives."""
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
