"""The guide to image discovery is true: the server takes every manifest in it, and what it names is what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trimtab.model.yaml import load_all
from trimtab.runtime.queue.contract import MAX_DELIVERIES
from trimtab.systems.images import reach, settling
from trimtab.systems.images.kinds import RegistrySpec, Removal
from trimtab.systems.images.kinds.job import MOST_ERRORS, REGISTRY_LABEL, RESERVED_LABEL
from trimtab.systems.images.layers import problems
from trimtab.systems.images.registry import errors, listing
from trimtab.systems.images.registry.blobs import LARGEST_BLOB
from trimtab.systems.images.registry.client import LARGEST_CONFIG, LARGEST_MANIFEST
from trimtab.systems.images.registry.outcomes import SkipReason
from trimtab.systems.images.runs import catalogue, claim, pulse
from trimtab.systems.images.worker.layers import Gathered
from trimtab.testing.embedded import TrimtabServer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "images.md").read_text()
TEXT = " ".join(PAGE.split())
MANIFESTS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SYSTEM = ROOT / "src" / "trimtab" / "systems" / "images"
WRITTEN = re.compile(
    r"""(?:End\("\w+",|Failed\(|Refused\(|_failed\(|_fail\([\w, .]*|_say\([\w, ]*|later\([\w, ()]*
        |reason=|reason\ or|ready\([^"]*)\s*"([A-Z][A-Za-z]+)\"""",
    re.VERBOSE,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    with TrimtabServer(tmp_path_factory.mktemp("guide"), flags=("--systems", "images")) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=30)
        yield server


@pytest.mark.parametrize("manifest", MANIFESTS, ids=[str(number) for number in range(1, len(MANIFESTS) + 1)])
def test_the_server_takes_every_manifest_of_the_page(server: TrimtabServer, manifest: str) -> None:
    program = str(Path(sys.executable).with_name("trimtab"))
    command = [program, "apply", "--dry-run", "--kubeconfig", str(server.kubeconfig), "-f", "-"]
    done = subprocess.run(command, input=manifest, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{manifest}\n{done.stderr}"


def shown(kind: str) -> dict[str, Any]:
    """All fields of a kind's specs that the page shows."""
    documents = [document for text in MANIFESTS for document in load_all(text) if document["kind"] == kind]
    return {name: value for document in documents for name, value in document["spec"].items()}


def test_the_page_shows_every_field_of_a_registry() -> None:
    told_in_words = {"caBundle", "skipTLSVerify", "plainHTTP"}
    fields = {field.encode_name for field in msgspec.structs.fields(RegistrySpec)}
    assert shown("Registry").keys() | told_in_words == fields
    assert all(f"`{name}" in PAGE for name in told_in_words)


def test_the_registry_of_the_page_has_the_defaults_of_removal_and_time() -> None:
    registry = next(iter(load_all(MANIFESTS[0])))
    usual = Removal()
    assert registry["spec"]["removal"] == {"grace": usual.grace, "maxPercent": usual.max_percent}
    (timeout,) = (field for field in msgspec.structs.fields(RegistrySpec) if field.name == "discovery_timeout")
    assert registry["spec"]["discoveryTimeout"] == timeout.default


def reasons() -> set[str]:
    """Every reason that the code writes into a condition or an error."""
    found = {reason for file in SYSTEM.rglob("*.py") for reason in WRITTEN.findall(file.read_text())}
    kinds = [errors.RegistryError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    found |= {kind.reason for kind in kinds}
    found |= {kind.__name__ for kind in problems.LayerError.__subclasses__()}
    return found - {"Unknown"}  # stands for none


@pytest.mark.parametrize("reason", sorted(reasons()))
def test_the_page_explains_every_reason(reason: str) -> None:
    assert f"`{reason}`" in PAGE


def test_the_reasons_are_found_in_the_code() -> None:
    """So that the test above does not pass because nothing is looked at."""
    assert {"WorkerLost", "InvalidFilter", "LayerDamaged", "NoDatabase", "CertificateInvalid"} <= reasons()
    assert reach.SecretNotFound.reason in reasons()


def test_the_page_names_every_annotation_and_label() -> None:
    names = {value for value in vars(claim).values() if isinstance(value, str) and value.startswith(claim.PREFIX)}
    names.discard(claim.PREFIX)
    for which in ("running", "last"):
        names |= {f"{claim.PREFIX}{which}-discovery{what}" for what in ("-type", "-started-at", "job-name")}
    assert [name for name in sorted(names) if f"`{name.removeprefix(claim.PREFIX)}`" not in PAGE] == []
    assert f"`{REGISTRY_LABEL}`" in PAGE
    assert f"`{RESERVED_LABEL}`" in PAGE


@pytest.mark.parametrize("reason", [reason.value for reason in SkipReason if reason is not SkipReason.FILTERED])
def test_the_page_explains_why_a_tag_is_skipped(reason: str) -> None:
    assert f"`{reason}`" in PAGE


def test_the_page_names_the_words_by_which_a_registry_says_that_something_is_gone() -> None:
    assert f"`{listing.NO_REPOSITORY}`" in PAGE
    assert "`MANIFEST_UNKNOWN`" in PAGE
    assert "MANIFEST_UNKNOWN" in listing.NO_TAG


def test_the_bounds_of_a_run_are_those_of_the_code() -> None:
    assert f"says nothing for {pulse.LOST_AFTER / 60:g} minutes" in TEXT
    assert f"asks for {settling.WINDOW} images at a time" in TEXT
    assert f"one HEAD, {listing.CONCURRENCY} at a time" in TEXT
    assert f"names the first {MOST_ERRORS} of" in TEXT
    assert f"the first {listing.LOGGED} of a listing" in TEXT
    assert claim.MOST_TRIES == 8
    assert "eight times at most" in TEXT
    assert claim.LONGEST_PAUSE == 15 * 60
    assert "up to a quarter of an hour" in TEXT
    assert MAX_DELIVERIES == 5
    assert "not delivered more than five times" in TEXT


def test_the_limits_are_those_of_the_code() -> None:
    limits = problems.LIMITS
    assert f"A manifest has {LARGEST_MANIFEST >> 20} MiB at most, a config {LARGEST_CONFIG >> 20} MiB" in TEXT
    assert f"a blob {LARGEST_BLOB >> 30} GiB, a layer {limits.layer_bytes >> 30} GiB" in TEXT
    assert limits.entries == 1_000_000
    assert f"grows more than {limits.ratio} times" in TEXT
    assert f"{Gathered.MOST_PACKAGES:,} packages an image" in TEXT
    assert f"it is over {catalogue.MAX_BYTES >> 20} MiB" in TEXT
