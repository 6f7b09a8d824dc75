"""What we ask of a remote: which refs it has, their objects, and to take a commit. Each is one run of `program`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from trimtab.runtime.git import program
from trimtab.runtime.git.access import Remote
from trimtab.runtime.git.address import Address, parse
from trimtab.runtime.git.complaints import certain, meaning, short
from trimtab.runtime.git.errors import AuthFailed, Moved, Refused, TimedOut, TooLarge, Uncertain, Unreachable
from trimtab.runtime.git.limits import Limits

_RACED = ("stale info", "fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref",
          "incorrect old value", "failed to lock", "reference already exists")  # fmt: skip


_PROGRAM, _REF = 96 << 20, 1024
"""Bytes of memory for a process that lists refs, and for each ref: it holds all before it prints the first."""


class Transport:
    """`address` is checked in the constructor: BadAddress."""

    def __init__(self, folder: Path, remote: Remote, limits: Limits) -> None:
        self.address: Address = parse(remote)
        self._folder, self._remote, self._limits = folder, remote, limits

    @property
    def host(self) -> str:
        return self.address.host or "the folder"

    @property
    def _naming(self) -> int:
        """Bytes of memory for as many refs as are allowed."""
        return _PROGRAM + self._limits.refs * _REF

    async def refs(self, *patterns: str) -> Mapping[str, str]:
        """Full names → object ids; an annotated tag as the commit that it is about."""
        words = ["ls-remote", "--quiet", "--", self.address.url, *patterns]
        said = await self._run(words, memory=self._naming, stall=self._limits.stall)
        found: dict[str, str] = {}
        peeled: dict[str, str] = {}
        for line in said.output.decode(errors="surrogateescape").splitlines():
            oid, _, name = line.partition("\t")
            if name.endswith("^{}"):
                peeled[name[:-3]] = oid
            else:
                found[name] = oid
        if len(found) > self._limits.refs:
            raise TooLarge(f"{self.host} names more than the {self._limits.refs} branches and tags that are allowed")
        return {**found, **peeled}

    async def fetch(self, refspecs: Sequence[str], *, room: int, cautious: bool = False) -> None:
        """`cautious`: with no more memory than a question takes, for a server that was not asked before."""
        options = ["--progress", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--force"]
        said = "".join(f"{each}\n" for each in refspecs).encode()  # there may be more than arguments can be
        words = ["fetch", *options, "--stdin", "--", self.address.url]
        memory = self._naming if cautious else None
        await self._run(words, said=said, room=room, memory=memory, stall=self._limits.stall)

    async def push(self, commit: str, branch: str, expected: str | None) -> None:
        """The caller has made sure that `commit` follows `expected`: with that the lease forces nothing."""
        ref = f"refs/heads/{branch}"
        options = ["--porcelain", "--no-verify", "--no-progress", "--no-signed", "--no-follow-tags"]
        lease = f"--force-with-lease={ref}:{expected or ''}"
        arguments = ["push", *options, lease, "--", self.address.url, f"{commit}:{ref}"]
        try:
            said = await program.run(
                self._folder, self.address, self._remote, arguments,
                limits=self._limits, room=self._limits.repository_bytes,
            )  # fmt: skip
        except TimedOut as error:
            raise Uncertain(f"{error}; fetch and look whether {branch} has the commit") from None
        lines = said.output.decode(errors="replace").splitlines()
        verdict = next((line.split("\t") for line in lines if f":{ref}\t" in line), None)
        if verdict is not None and verdict[0] == "!":
            why = verdict[-1]
            if any(reason in why or reason in said.errors for reason in _RACED):
                raise Moved(f"{branch} at {self.host} is not where it was expected ({expected or 'nowhere'}): {why}")
            if "unpacker error" in why or "remote failed to report status" in why:
                raise Uncertain(f"{self.host} did not tell whether it took the commit: {why}; fetch and look")
            raise Refused(f"{self.host} does not take the commit on {branch}: {_reason(why, said.errors)}")
        if said.code == 0:
            return
        failure = meaning(self.host, said.code, said.errors)
        if certain(failure, said.errors):
            raise failure
        raise Uncertain(f"the connection to {self.host} ended in mid-push: {short(said.errors)}; fetch and look")

    async def compact(self) -> None:
        """Rolls many small packs into few. Nothing is dropped, reachable or not: a commit of ours may be on no branch."""
        packs = await asyncio.to_thread(lambda: len(list((self._folder / "objects" / "pack").glob("*.pack"))))
        if packs > self._limits.packs:
            await self._run(["repack", "--geometric=2", "-d", "-q"], room=self._limits.repository_bytes)

    async def _run(
        self,
        arguments: Sequence[str],
        *,
        said: bytes = b"",
        room: int = 1 << 20,
        memory: int | None = None,
        stall: float | None = None,
    ) -> program.Said:
        done = await program.run(
            self._folder, self.address, self._remote, arguments,
            said=said, limits=self._limits, room=room, memory=memory, stall=stall,
        )  # fmt: skip
        if done.code != 0:
            error = meaning(self.host, done.code, done.errors)
            if isinstance(error, Unreachable | AuthFailed) and self.address.scheme == "git":
                error = Unreachable(f"{self.host} has no such repository, or does not answer: {short(done.errors)}")
            raise error
        return done


def _reason(why: str, errors: str) -> str:
    """What the server said in its own words, when it said any."""
    words = [line.removeprefix("remote:").strip() for line in errors.splitlines() if line.startswith("remote:")]
    told = "; ".join(word for word in words if word)[:300]
    return f"{why}: {told}" if told else why
