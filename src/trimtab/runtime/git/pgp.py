"""PGP signatures, by the `gpg` program in a home of its own that lives as long as the call. It blocks."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from trimtab.model.redacted import Redacted
from trimtab.runtime.git.errors import GitMissing

BEGIN = "-----BEGIN PGP SIGNATURE-----"
SECONDS = 30.0
LARGEST = 4 * 1024 * 1024
_STATUS = "[GNUPG:] "


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What gpg says of a signature; `fingerprint` is of the primary key, "" when it is not a good one."""

    fingerprint: str = ""
    user: str = ""
    why: str = ""


def checked(signature: str, payload: bytes, keys: str) -> Checked:
    """`keys` are armoured public keys: these and no others are trusted."""
    if len(signature) > LARGEST or len(keys) > LARGEST:
        return Checked(why="the signature or the keys are too large")
    with _home() as home:
        _run(home, ["--import"], keys.encode())
        (home / "signature.asc").write_text(signature)
        said = _run(home, ["--trust-model", "always", "--verify", str(home / "signature.asc"), "-"], payload)
    words = [line.removeprefix(_STATUS).split() for line in said.splitlines() if line.startswith(_STATUS)]
    states = {word[0]: word[1:] for word in words if word}
    signed = sum(word[0] == "NEWSIG" for word in words if word)
    if signed == 1 and "GOODSIG" in states and "VALIDSIG" in states:
        return Checked(fingerprint=states["VALIDSIG"][-1], user=" ".join(states["GOODSIG"][1:]))
    reasons = {
        "NO_PUBKEY": "the key that made it is not among those trusted",
        "BADSIG": "it does not belong to this commit",
        "EXPKEYSIG": "its key has expired",
        "REVKEYSIG": "its key was revoked",
        "EXPSIG": "it has expired",
        "ERRSIG": "it cannot be checked",
        "NODATA": "it is no PGP signature",
    }
    return Checked(why=next((why for name, why in reasons.items() if name in states), "gpg does not accept it"))


def signed(payload: bytes, key: Redacted, passphrase: Redacted | None = None) -> str:
    """The armoured signature by an armoured private key. ValueError when it cannot be used."""
    with _home() as home:
        words = ["--pinentry-mode", "loopback", "--passphrase-file", str(home / "passphrase")]
        (home / "passphrase").touch(mode=0o600)
        (home / "passphrase").write_bytes(passphrase.reveal_bytes() if passphrase else b"")
        _run(home, [*words, "--import"], key.reveal_bytes())
        (home / "payload").write_bytes(payload)
        try:
            _run(
                home,
                [*words, "--armor", "--output", str(home / "out.asc"), "--detach-sign", str(home / "payload")],
                b"",
            )
            if not (home / "out.asc").exists():
                raise ValueError("the PGP key cannot be used: it is no private key, or its passphrase is another")
            return (home / "out.asc").read_text()
        finally:
            _end_agent(home)


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    """In the usual place for temporary files: the agent's socket must have a short path."""
    if shutil.which("gpg") is None:
        raise GitMissing("the program 'gpg' is missing on this machine; install the package 'gnupg', or use SSH keys")
    with tempfile.TemporaryDirectory(prefix="gpg-", ignore_cleanup_errors=True) as place:
        yield Path(place)


def _run(home: Path, words: Sequence[str], said: bytes) -> str:
    command = ["gpg", "--homedir", str(home), "--batch", "--no-tty", "--no-options", "--status-fd", "1"]
    command += ["--no-auto-key-retrieve", "--no-auto-key-locate", "--disable-dirmngr"]
    try:
        done = subprocess.run(  # noqa: S603
            [*command, *words], input=said, capture_output=True, env=_env(home), timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.decode(errors="replace")


def _end_agent(home: Path) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603
            ["gpgconf", "--homedir", str(home), "--kill", "all"],  # noqa: S607
            capture_output=True, env=_env(home), timeout=SECONDS, check=False,
        )  # fmt: skip


def _env(home: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "GNUPGHOME": str(home), "LC_ALL": "C"}
