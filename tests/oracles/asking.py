"""A Go program beside a test: built in a folder of its own from modules by name, asked in lines of JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.needs import needs

HERE = Path(__file__).parent


class Oracle:
    """Answers one question after another, until it is closed."""

    def __init__(self, name: str, folder: Path, given: Any = None) -> None:
        needs("go")
        work = folder / name
        shutil.copytree(HERE / name, work)
        built = subprocess.run(["go", "build", "-o", "oracle", "."], cwd=work, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        (work / "given.json").write_text(json.dumps(given))
        self._program = subprocess.Popen(
            [str(work / "oracle"), str(work / "given.json")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **question: Any) -> Any:
        return self.ask_plainly(question)

    def ask_plainly(self, question: Any) -> Any:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        print(json.dumps(question), file=self._program.stdin, flush=True)
        return json.loads(self._program.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.communicate(timeout=10)
