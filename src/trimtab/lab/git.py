"""Bare repositories in a folder, as a team would have them: seeded, committed to by somebody else, looked into.

Done by the git program alone, so that what a test finds does not rest on the code that it tests. `git_daemon`,
`git_http` and `git_ssh` serve such a folder.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


class GitServer:
    """The repositories below `folder`; each is `<name>.git`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def create(
        self, name: str = "team", files: Mapping[str, bytes | str] | None = None, *, branch: str = "main"
    ) -> str:
        """A repository with one commit of these files, whose id is returned; "" for one without any commit."""
        run("init", "--quiet", "--bare", f"--initial-branch={branch}", str(self.path(name)))
        for setting in ("receive.denyDeletes=false", "uploadpack.allowAnySHA1InWant=true", "http.receivepack=true"):
            run("-C", str(self.path(name)), "config", *setting.split("="))
        return self.commit(name, files, branch=branch) if files is not None else ""

    def path(self, name: str = "team") -> Path:
        return self.folder / f"{name}.git"

    def commit(
        self,
        name: str,
        changes: Mapping[str, bytes | str | None],
        *,
        branch: str = "main",
        message: str = "Change things",
        who: str = "Somebody Else <else@example.com>",
        modes: Mapping[str, str] | None = None,
        force_from: str | None = None,
    ) -> str:
        """As somebody else would: writes files, or removes them (None). `modes` are Git's, such as 120000 for a symlink.
        `force_from` rewrites the branch to follow that commit ("" for none): a force push."""
        head = self.head(name, branch)
        start = head if force_from is None else force_from
        said = message.encode()
        lines = [f"commit refs/heads/{branch}\n".encode(), f"committer {who} now\n".encode()]
        lines += [b"data %d\n" % len(said), said, b"\n"]
        if start:
            lines.append(f"from {start}\n".encode())
        for path, content in changes.items():
            if content is None:
                lines.append(f"D {path}\n".encode())
                continue
            data = content.encode() if isinstance(content, str) else content
            mode = (modes or {}).get(path, "100644")
            if mode == "160000":
                lines.append(b"M 160000 " + data + f" {path}\n".encode())
            else:
                lines += [f"M {mode} inline {path}\n".encode(), b"data %d\n" % len(data), data, b"\n"]
        options = ["--quiet", "--date-format=now", *(["--force"] if force_from is not None else [])]
        run("-C", str(self.path(name)), "fast-import", *options, said=b"".join(lines))
        return self.head(name, branch)

    def head(self, name: str = "team", branch: str = "main") -> str:
        """Where a branch is; "" when there is none."""
        found = run("-C", str(self.path(name)), "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
        return found.decode().strip()

    def read(self, name: str = "team", revision: str = "main") -> dict[str, bytes]:
        """All files of a branch or commit."""
        folder = str(self.path(name))
        listed = run("-C", folder, "ls-tree", "-r", "-z", "--full-tree", revision).split(b"\0")
        entries = [entry.split(b"\t", 1) for entry in listed if entry]
        blobs = [(about.split()[2], path) for about, path in entries if about.split()[1] == b"blob"]
        asked = b"".join(oid + b"\n" for oid, _ in blobs)
        answer, files = run("-C", folder, "cat-file", "--batch", said=asked), {}
        at = 0
        for _, path in blobs:
            header_end = answer.index(b"\n", at)
            size = int(answer[at:header_end].split()[2])
            files[os.fsdecode(path)] = answer[header_end + 1 : header_end + 1 + size]
            at = header_end + 1 + size + 1
        return files

    def history(self, name: str = "team", revision: str = "main") -> list[str]:
        """Ids of commits, the newest first."""
        return run("-C", str(self.path(name)), "rev-list", revision).decode().split()

    def tag(self, name: str, tag: str, revision: str = "main", *, annotated: bool = False) -> None:
        words = ["-a", "-m", tag] if annotated else []
        run("-C", str(self.path(name)), "tag", *words, tag, revision)

    def hook(self, name: str, hook: str, script: str) -> None:
        """A script of the server, such as pre-receive."""
        file = self.path(name) / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(script)
        file.chmod(0o755)


PERSON = {
    "GIT_AUTHOR_NAME": "Lab",
    "GIT_AUTHOR_EMAIL": "lab@example.com",
    "GIT_COMMITTER_NAME": "Lab",
    "GIT_COMMITTER_EMAIL": "lab@example.com",
}


def environment(home: Path | None = None) -> dict[str, str]:
    """For git processes of the lab: no configuration of this machine or account."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home or "/nonexistent"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(home / "gitconfig") if home else os.devnull,
        "LC_ALL": "C",
        **PERSON,
    }


def run(*arguments: str, said: bytes | None = None) -> bytes:
    """One git command. CalledProcessError has what it complained of."""
    done = subprocess.run(["git", *arguments], input=said, capture_output=True, env=environment(), check=False)  # noqa: S603, S607
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, ["git", *arguments], done.stdout, done.stderr)
    return done.stdout
