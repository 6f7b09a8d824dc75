"""`trimtab up` with an audit log, and options that make no sense together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import environment


def up(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trimtab", "up", "--port", "0", "--data-dir", str(folder / "d"), *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=30)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--audit-log", "x"), "an audit log needs a policy"),
        (("--audit-policy", "x"), "an audit policy needs a log"),
        (("--audit-policy", "x", "--audit-log", "y", "--audit-log-maxsize", "0"), "0 is not in the range"),
        (("--audit-policy", "x", "--audit-log", "y", "--audit-log-maxbackup=-1"), "-1 is less than 0"),
        (("--service-account-issuer", "a b"), "must have no spaces"),
        (("--service-account-jwks-uri", "http://a"), "must be a URL with the scheme https"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    done = up(tmp_path, *options)
    assert done.returncode == 2
    assert why in " ".join(done.stderr.split())


def test_a_policy_that_is_wrong_is_refused_in_one_line(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Much}]}")
    done = up(tmp_path, "--systems", "none", "--audit-policy", str(policy), "--audit-log", str(tmp_path / "log"))
    assert done.returncode == 1
    assert done.stderr.startswith(f'trimtab: {policy}: rules[0].level: Unsupported value: "Much"')
    assert not (tmp_path / "d" / "store.db").exists()
