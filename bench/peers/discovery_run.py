"""Whole discoveries, as users have them: `trimtab up` beside a registry, and `trimtab images discover`.

The time is that of the command, its start included: claim, listing, catalogue, Images, and the end of the job. SBOMs are
not waited for.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from trimtab.testing.embedded import TrimtabServer

PROGRAM = str(Path(sys.executable).with_name("trimtab"))
REGISTRY = """\
apiVersion: images.trimtab.dev/v1alpha1
kind: Registry
metadata: {{ name: bench }}
spec: {{ uri: "http://{host}", plainHTTP: true }}
"""


def discoveries(folder: Path, host: str, rounds: int) -> tuple[float, float]:
    """Seconds of the first, and the best of those after it, in which nothing has changed."""
    folder.mkdir()
    with TrimtabServer(folder, flags=("--systems", "images")) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=60)
        access = ("--kubeconfig", str(server.kubeconfig))
        written = REGISTRY.format(host=host).encode()
        subprocess.run([PROGRAM, "apply", *access, "-f", "-"], input=written, check=True, stdout=subprocess.DEVNULL)
        first, *others = (
            _timed("images", "discover", "bench", "--until", "Images", *access) for _ in range(rounds + 1)
        )
    return first, min(others)


def _timed(*words: str) -> float:
    start = time.perf_counter()
    subprocess.run([PROGRAM, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start
