"""Which Terraform the tests drive: `$TRIMTAB_TERRAFORM`, else the `terraform` of the path. OpenTofu will do.

What one of the two lacks is said here, by name and by the version that brought it. A test that needs such a feature calls
`can("write-only attributes")` first, and is skipped by that name where the binary is older than the feature, nowhere else.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.needs import needs

VARIABLE = "TRIMTAB_TERRAFORM"

SINCE = {
    "write-only attributes": {"Terraform": (1, 11), "OpenTofu": (1, 11)},
    "ephemeral resources": {"Terraform": (1, 10), "OpenTofu": (1, 11)},
    "null objects in maps": {"Terraform": (1, 9), "OpenTofu": (1, 13)},
}
"""Features, and the version of each product that was the first to have it.

A null in place of an object, in a map of nested attributes, makes OpenTofu 1.12 panic (`objchange.AssertPlanValid`), before
any provider could help it; Terraform did until its issue 35083. That 1.13 has it is not known: the next version is to be tried.
"""


def binary() -> str:
    """Its path. A test whose machine has none is skipped; one that was promised a binary which is not there fails."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named or "terraform")
    if named and found is None:
        pytest.fail(f"{VARIABLE} names {named}, which is no program", pytrace=False)
    if found is None:
        needs("terraform")
    return os.path.abspath(found or "terraform")


def as_terraform(folder: Path) -> Path:
    """A folder to put first in a path, for scripts that call it `terraform`."""
    folder.mkdir()
    (folder / "terraform").symlink_to(binary())
    return folder


def can(*features: str) -> None:
    """Skips the test, by name, where the binary is too old for one of them."""
    product, version = told(binary())
    for feature in features:
        if is_lacking(feature, product, version):
            numbers = ".".join(map(str, SINCE[feature][product]))
            pytest.skip(f"{product} {'.'.join(map(str, version))} lacks {feature}: looked for from {numbers} on")


def is_lacking(feature: str, product: str, version: tuple[int, ...]) -> bool:
    return version < SINCE[feature][product]


@functools.cache
def told(program: str) -> tuple[str, tuple[int, ...]]:
    """What it says it is: ("OpenTofu", (1, 12, 6))."""
    environment = {"PATH": os.environ["PATH"], "CHECKPOINT_DISABLE": "1"}
    done = subprocess.run([program, "version"], capture_output=True, text=True, env=environment, check=True)
    return parsed(done.stdout)


def parsed(said: str) -> tuple[str, tuple[int, ...]]:
    match = re.match(r"(Terraform|OpenTofu) v(\d+)\.(\d+)\.(\d+)", said)
    assert match, said
    return match[1], tuple(int(number) for number in match.groups()[1:])
