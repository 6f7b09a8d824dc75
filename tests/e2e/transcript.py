"""Transcripts: shell sessions with kubectl and what a real Kubernetes answered, as files that people can read.

    $ kubectl get configmap nobody
    Error from server (NotFound): configmaps "nobody" not found
    [1]

A line that begins with `$ ` is a command for bash, `> ` continues it, and what follows up to the next command is its
output, with the exit code in brackets unless it is 0. What differs from run to run (uids, times, revisions, widths of
columns) is normalised on both sides. `#` in the first column is for the reader; such lines come before a command.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.e2e.kubectl import EXAMPLES, programs, reference
from trimtab.testing.peer import ApiServer

FOLDER = Path(__file__).parent / "transcripts"


class Step(NamedTuple):
    """A command with the remarks before it, and what it printed."""

    remarks: str
    command: str
    output: str = ""

    def __str__(self) -> str:
        first, *more = self.command.split("\n")
        lines = [f"$ {first}", *(f"> {line}".rstrip() for line in more)]
        return self.remarks + "\n".join(lines) + "\n" + self.output


def parse(text: str) -> list[Step]:
    steps: list[Step] = []
    remarks = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("#"):
            remarks += line
        elif line.startswith("$ "):
            steps.append(Step(remarks, line[2:].rstrip("\n")))
            remarks = ""
        elif line.startswith(">"):
            steps[-1] = steps[-1]._replace(command=steps[-1].command + "\n" + line[2:].rstrip("\n"))
        else:
            steps[-1] = steps[-1]._replace(output=steps[-1].output + line)
    return steps


def replay(steps: list[Step], server: ApiServer, home: Path, namespace: str) -> list[Step]:
    """The same commands, with what the server answers now. `home` gets a kubeconfig, and kubectl's caches."""
    program = home / "bin" / "kubectl"
    program.parent.mkdir()
    program.symlink_to(programs()[reference()])
    kubeconfig = home / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig.read_text())
    kubeconfig.chmod(0o600)
    env = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "KUBECONFIG": str(kubeconfig),
        "NAMESPACE": namespace,
        "TZ": "UTC",
    }

    def bash(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=EXAMPLES,
            env=env,
            timeout=60,
        )
        code = f"[{done.returncode}]\n" if done.returncode else ""
        return normalise(done.stdout.replace(namespace, "NAMESPACE")) + code

    bash(f"kubectl create namespace {namespace} && kubectl config set-context --current --namespace={namespace}")
    try:
        return [step._replace(output=bash(step.command)) for step in steps]
    finally:
        bash(f"kubectl delete namespace {namespace} --wait=false")


def normalise(text: str) -> str:
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    text = _ERRORS.sub(lambda errors: "".join(sorted(errors[0].splitlines(keepends=True))), text)
    return text if text.endswith("\n") or not text else text + "\n"


_ERRORS = re.compile(r"(^\* .*\n)+", re.MULTILINE)  # Go walks maps in any order
_VARYING = [
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000"), "TIME"),
    (re.compile(r'(resourceVersion"?: )"\d+"'), r'\1"REVISION"'),
    (re.compile(r"(Resource Version: +)\d+"), r"\1REVISION"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "TOKEN"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"v1\.32\.13\+[\w.]+"), "v1.32.13"),
    (re.compile(r"(^|(?<= ))\d+[sm](\d+s)?(?= |$)", re.MULTILINE), "AGE"),
    (re.compile(r"\bmade-\w{5}\b"), "made-RANDOM"),
    (re.compile(r"(?<=\S) {2,}(?=\S)"), "  "),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
]
