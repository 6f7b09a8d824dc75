"""Runs Schemathesis on the API's own OpenAPI documents: as nobody, as an account with `edit` in one namespace, as administrator.

`python -m tests.fuzz.openapi SCHEMATHESIS [--examples 3] [--only apps/v1]`. SCHEMATHESIS is its program, from an environment
of its own. It ends with an error when an answer is a failure of the server, or goes to who has no right to it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.kubectl import Kubectl, newest
from tests.e2e.raw import Raw
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import read_access

WHO = ("anonymous", "editor", "admin")
METHODS = {"get", "put", "post", "delete", "patch"}
HOOKS = "tests.fuzz.openapi_hooks"
CHECKS = "not_a_server_error,rights_are_kept"
LEFT_OUT = r"/watch/|/proxy|/exec|/attach|/portforward|/log$"
"""Streams, and what needs nodes."""
KEPT = r"/(customresourcedefinitions|apiservices|namespaces|clusterroles|clusterrolebindings|roles|rolebindings)(/\{name\})?$"
"""Not deleted, for the rest of the run needs them: names are learnt from lists."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="of Schemathesis")
    parser.add_argument("--examples", type=int, default=3, help="for each operation, besides the edges of its schema")
    parser.add_argument("--only", default="", help="documents whose name contains this")
    parser.add_argument("--phases", default="fuzzing")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, TrimtabServer(Path(folder)) as server:
        return run(asked, server, Path(folder))


def run(asked: argparse.Namespace, server: TrimtabServer, folder: Path) -> int:
    admin = Raw(server, admin=True)
    paths = {
        name: found["serverRelativeURL"]
        for name, found in admin("GET", "/openapi/v3").json()["paths"].items()
        if re.search(r"/v\d", name) and asked.only in name
    }
    ways = _ways_in(server, folder)
    failed = []
    for name, path in sorted(paths.items()):
        document = folder / (name.replace("/", "_") + ".json")
        operations = _written(admin("GET", path).json(), document)
        for who in WHO:
            began = time.monotonic()
            code, said, codes = _schemathesis(asked, server, document, who, ways[who])
            took = time.monotonic() - began
            answers = "  ".join(f"{answer}: {count}" for answer, count in sorted(codes.items()))
            print(f"{name:45} {who:10} {operations:4} operations {took:6.1f} s  {answers}", flush=True)
            if code:
                print(said, flush=True)
                failed.append((name, who))
    log = server.log()
    if "Traceback" in log:
        print(log)
        failed.append(("the server's log", ""))
    print(f"{len(paths) * len(WHO) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def _ways_in(server: TrimtabServer, folder: Path) -> dict[str, list[str]]:
    """The options for each of the three."""
    kubectl = Kubectl(newest(), server, "kube-public", folder)
    kubectl("create", "serviceaccount", "editor")
    binding = ("--clusterrole=edit", "--serviceaccount=kube-public:editor", "--namespace=default")
    kubectl("create", "rolebinding", "editor", *binding)
    token = kubectl("create", "token", "editor", "--duration=3h").strip()
    access = read_access(server.kubeconfig)
    return {
        "anonymous": [],
        "editor": ["--header", f"Authorization: Bearer {token}"],
        "admin": ["--request-cert", str(access.certificate), "--request-cert-key", str(access.key)],
    }


def _written(found: dict[str, Any], document: Path) -> int:
    """The document without what is left out. How many operations it has."""
    found["paths"] = {path: item for path, item in found["paths"].items() if not re.search(LEFT_OUT, path)}
    for path, item in found["paths"].items():
        if re.search(KEPT, path):
            item.pop("delete", None)
    document.write_text(json.dumps(found))
    return sum(len(METHODS & item.keys()) for item in found["paths"].values())


def _schemathesis(
    asked: argparse.Namespace, server: TrimtabServer, document: Path, who: str, way: list[str]
) -> tuple[int, str, Counter[str]]:
    access = read_access(server.kubeconfig)
    command = [str(Path(asked.program).absolute()), "run", str(document), "--url", server.url, *way]
    command += ["--tls-verify", str(access.ca), "--generation-deterministic"]
    command += ["--checks", CHECKS, "--phases", asked.phases, "--max-examples", str(asked.examples), "--no-shrink"]
    command += ["--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off", "--no-color"]
    command += ["--request-timeout", "20", "--workers", "1"]
    answers = document.with_suffix(f".{who}")
    env = {**os.environ, "SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(Path.cwd())}
    env |= {"TRIMTAB_WHO": who, "TRIMTAB_CODES": str(answers), "PYTHONHASHSEED": "0"}
    ended = subprocess.run(command, cwd=document.parent, env=env, capture_output=True, text=True, check=False)
    codes = Counter(answers.read_text().split() if answers.exists() else ())
    return ended.returncode, ended.stdout + ended.stderr, codes


if __name__ == "__main__":
    sys.exit(main())
