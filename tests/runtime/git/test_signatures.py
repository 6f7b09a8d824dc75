"""Signatures of commits, against the real programs: what they make we accept, what we make they accept."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from tests.needs import needs
from tests.runtime.git.conftest import ME, run_gpg
from trimtab.lab.git import GitServer, environment
from trimtab.lab.git_ssh import key_pair
from trimtab.model.redacted import Redacted
from trimtab.runtime.git import CommitInfo, GitMissing, Mirror, Person, Remote
from trimtab.runtime.git.allowed_signers import parse
from trimtab.runtime.git.signatures import PgpSigner, SshSigner, Trusted, Untrusted, verify
from trimtab.runtime.git.wire import string


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    needs("git", "ssh-keygen")
    server = GitServer(tmp_path / "server")
    server.create("team", {"a": "a"})
    return Mirror(tmp_path / "mirror", Remote(url=f"file://{server.path()}", allow_file=True))


async def _signed(mirror: Mirror, signer: SshSigner | PgpSigner | None) -> str:
    return await mirror.commit(None, {"x": b"x"}, message="Sign\n", author=ME, committer=ME, sign=signer)


def _git(folder: Path, *words: str, home: Path, said: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    env = environment(home) | {"GNUPGHOME": str(home)}
    return subprocess.run(["git", "-C", str(folder), *words], input=said, capture_output=True, env=env, check=False)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
async def test_git_itself_verifies_what_we_signed_with_an_ssh_key(mirror: Mirror, tmp_path: Path, kind: str) -> None:
    private, public = key_pair(tmp_path / "key", kind=kind)
    commit = await _signed(mirror, SshSigner(key=Redacted(private.read_bytes())))
    allowed = tmp_path / "allowed"
    allowed.write_text(f"{ME.email} {public}\n")
    setting = f"gpg.ssh.allowedSignersFile={allowed}"
    done = _git(mirror.folder / "repository", "-c", setting, "verify-commit", "-v", commit, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b'Good "git" signature for trimtab@example.com' in done.stderr
    verified = await verify(await mirror.about(commit), Trusted(ssh=allowed.read_text()))
    assert (verified.kind, verified.principal) == ("ssh", ME.email)
    assert verified.fingerprint.encode() in done.stderr


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
async def test_a_commit_that_git_signed_with_an_ssh_key_is_verified(tmp_path: Path, kind: str) -> None:
    needs("git", "ssh-keygen")
    private, public = key_pair(tmp_path / "key", kind=kind)
    server = GitServer(tmp_path / "server")
    server.create("team", {"a": "a"})
    tree = _git(server.path(), "rev-parse", "main^{tree}", home=tmp_path).stdout.decode().strip()
    settings = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={private}"]
    done = _git(server.path(), *settings, "commit-tree", "-S", "-m", "Signed", tree, home=tmp_path)
    commit = done.stdout.decode().strip()
    _git(server.path(), "update-ref", "refs/heads/main", commit, home=tmp_path)
    mirror = Mirror(tmp_path / "mirror", Remote(url=f"file://{server.path()}", allow_file=True))
    await mirror.fetch("main")
    about = await mirror.about(commit)
    assert (await verify(about, Trusted(ssh=f"ann@example.com {public}"))).principal == "ann@example.com"

    tampered = msgspec.structs.replace(about, signed=about.signed.replace(b"Signed", b"Sighed"))
    with pytest.raises(Untrusted, match="does not belong to it"):
        await verify(tampered, Trusted(ssh=f"ann@example.com {public}"))


async def test_only_allowed_keys_count_and_only_when_they_are_valid(mirror: Mirror, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path / "key")
    _, other = key_pair(tmp_path / "other")
    about = await mirror.about(await _signed(mirror, SshSigner(key=Redacted(private.read_bytes()))))
    at_noon = msgspec.structs.replace(about, time=datetime(2026, 5, 1, 12, 0, tzinfo=UTC))
    for line in (
        f"x {other}",
        f'x namespaces="file" {public}',
        f'x namespaces="!git,*" {public}',
        f'x valid-before="20260501115959Z" {public}',
        f'x valid-after="20260502" {public}',
        "",
    ):
        with pytest.raises(Untrusted, match="no allowed signer"):
            await verify(at_noon, Trusted(ssh=line))
    for line in (f'x namespaces="file,git",valid-after="20260501Z" {public}', f'"x,y" {public} comment'):
        assert (await verify(at_noon, Trusted(ssh=f"# who\n\n{line}\n"))).principal == "x"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x", "must be 'principals"),
        ("x ssh-ed25519 AAAA", "has no key|is not known"),
        ("x cert-authority ssh-ed25519 {key}", "cert-authority is not supported"),
        ('x odd="1" ssh-ed25519 {key}', "option"),
        ('x valid-after="tomorrow" ssh-ed25519 {key}', "time"),
        ('x namespaces="" ssh-ed25519 {key}', "names none"),
        ("x namespaces ssh-ed25519 {key}", "names none"),
        ('x valid-before="20200101",valid-before="20990101" ssh-ed25519 {key}', "there twice"),
    ],
)
def test_lines_of_allowed_signers_that_cannot_be_meant_are_refused_by_number(line: str, why: str) -> None:
    key = base64.b64encode(string("ssh-ed25519") + string(bytes(32))).decode()
    with pytest.raises(ValueError, match=f"line 2: .*({why})"):
        parse("# first\n" + line.format(key=key))


async def test_an_unsigned_commit_is_untrusted_and_says_what_to_do(mirror: Mirror) -> None:
    with pytest.raises(Untrusted, match="is not signed; sign it"):
        await verify(await mirror.about(await _signed(mirror, None)), Trusted())


async def test_a_key_with_a_passphrase_signs_and_a_wrong_one_shows_no_secret(mirror: Mirror, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path / "key", passphrase="open sesame")
    key = Redacted(private.read_bytes())
    commit = await _signed(mirror, SshSigner(key=key, passphrase=Redacted("open sesame")))
    assert (await verify(await mirror.about(commit), Trusted(ssh=f"x {public}"))).principal == "x"
    signer = SshSigner(key=key, passphrase=Redacted("guess"))
    with pytest.raises(ValueError, match="passphrase is another") as raised:
        await _signed(mirror, signer)
    assert "guess" not in repr(raised.value) + repr(signer)


async def test_a_signature_of_a_hardware_key_is_verified_as_openssh_does(tmp_path: Path) -> None:
    """The token is played: what it would sign is signed by a key of our own; ssh-keygen is the judge."""
    needs("ssh-keygen")
    token = Ed25519PrivateKey.generate()
    raw = token.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    kind = "sk-ssh-ed25519@openssh.com"
    public = string(kind) + string(raw) + string("ssh:")
    payload = b"tree of something\n"
    told = b"SSHSIG" + string("git") + string("") + string("sha512") + string(hashlib.sha512(payload).digest())

    def armoured(flags: bytes) -> str:
        rest = flags + (7).to_bytes(4, "big")
        value = token.sign(hashlib.sha256(b"ssh:").digest() + rest + hashlib.sha256(told).digest())
        blob = b"SSHSIG" + (1).to_bytes(4, "big") + string(public) + string("git") + string("") + string("sha512")
        blob += string(string(kind) + string(value) + rest)
        body = base64.b64encode(blob).decode()
        return f"-----BEGIN SSH SIGNATURE-----\n{body}\n-----END SSH SIGNATURE-----\n"

    line = f"x {kind} {base64.b64encode(public).decode()}\n"
    (tmp_path / "allowed").write_text(line)
    (tmp_path / "sig").write_text(armoured(b"\1"))
    words = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "x", "-n", "git", "-s", "sig"]
    judged = _judged(words, payload, tmp_path)
    assert judged.returncode == 0, judged.stderr
    commit = _info(armoured(b"\1"), payload)
    assert (await verify(commit, Trusted(ssh=line))).principal == "x"
    with pytest.raises(Untrusted, match="nobody touched"):
        await verify(_info(armoured(b"\0"), payload), Trusted(ssh=line))


def _judged(words: list[str], payload: bytes, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, input=payload, cwd=folder, capture_output=True, check=False)


async def test_sha1_signatures_and_short_rsa_keys_are_refused(tmp_path: Path) -> None:
    needs("ssh-keygen")
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    from trimtab.runtime.git.ssh_keys import verified
    from trimtab.runtime.git.wire import BadForm, mpint

    for bits, form, why in ((2048, "ssh-rsa", "rsa-sha2-512 are accepted"), (1024, "rsa-sha2-512", "at least 2048")):
        private = rsa.generate_private_key(65537, bits)
        numbers = private.public_key().public_numbers()
        key = string("ssh-rsa") + mpint(numbers.e) + mpint(numbers.n)
        value = private.sign(b"data", padding.PKCS1v15(), hashes.SHA512())
        with pytest.raises(BadForm, match=why):
            verified(key, form, value, b"data")


@given(st.binary(max_size=200))
async def test_rubbish_in_place_of_a_signature_is_untrusted_and_nothing_else(rubbish: bytes) -> None:
    body = base64.b64encode(b"SSHSIG" + (1).to_bytes(4, "big") + rubbish).decode()
    armoured = f"-----BEGIN SSH SIGNATURE-----\n{body}\n-----END SSH SIGNATURE-----"
    with pytest.raises(Untrusted):
        await verify(_info(armoured, b"payload"), Trusted())


async def test_pgp_signatures_pass_both_ways(mirror: Mirror, gpg: Path, tmp_path: Path) -> None:
    public = run_gpg(gpg, "--armor", "--export").decode()
    private = run_gpg(gpg, "--armor", "--export-secret-keys")
    commit = await _signed(mirror, PgpSigner(key=Redacted(private)))
    done = _git(mirror.folder / "repository", "verify-commit", commit, home=gpg)
    assert b'Good signature from "Ann <ann@example.com>"' in done.stderr, done.stderr
    about = await mirror.about(commit)
    verified = await verify(about, Trusted(pgp=public))
    assert (verified.kind, verified.principal) == ("pgp", "Ann <ann@example.com>")

    with pytest.raises(Untrusted, match="does not belong to this commit"):
        await verify(msgspec.structs.replace(about, signed=about.signed + b"\n"), Trusted(pgp=public))
    with pytest.raises(Untrusted, match="no PGP keys are trusted"):
        await verify(about, Trusted())


async def test_a_pgp_key_that_is_not_trusted_or_not_usable_says_so(mirror: Mirror, gpg: Path) -> None:
    private = run_gpg(gpg, "--armor", "--export-secret-keys")
    about = await mirror.about(await _signed(mirror, PgpSigner(key=Redacted(private))))
    with pytest.raises(Untrusted, match="not among those trusted"):
        await verify(about, Trusted(pgp="-----BEGIN PGP PUBLIC KEY BLOCK-----\n"))
    with pytest.raises(ValueError, match="cannot be used"):
        await _signed(mirror, PgpSigner(key=Redacted("no key")))


async def test_a_missing_gpg_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissing, match="install the package 'gnupg'"):
        await verify(_info("-----BEGIN PGP SIGNATURE-----\n", b""), Trusted(pgp="some"))


def _info(signature: str, signed: bytes) -> CommitInfo:
    nobody = Person(name="Ann", email="ann@example.com")
    return CommitInfo(
        id="0" * 40, author=nobody, committer=nobody, time=datetime.now(UTC), message="", parents=(), tree="0" * 40,
        signature=signature, signed=signed,
    )  # fmt: skip
