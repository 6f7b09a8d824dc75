"""`trimtab install` for a hub under further group suffixes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.test_install_conversion import one
from trimtab.cli.codes import USAGE
from trimtab.cli.install import Options, install, manifest
from trimtab.cli.systems import load, scheme_of

STORAGE = "postgresql://db/hub"


def test_a_hub_is_installed_under_all_its_suffixes() -> None:
    systems = load("platform,gitops", ())
    options = Options(systems="platform,gitops", hub=STORAGE, suffixes=("acme.example",))
    made = manifest(systems, scheme_of(systems), options)
    services = {document["metadata"]["name"] for document in made if document["kind"] == "APIService"}
    assert {"v3.infra.trimtab.dev", "v3.infra.acme.example", "v3.hub.acme.example"} <= services
    hub = next(each for each in made if each["kind"] == "Deployment" and each["metadata"]["name"] == "trimtab-hub")
    arguments = hub["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--group-suffix") + 1] == "acme.example"
    own = next(document for document in made if document["metadata"]["name"] == "trimtab:trimtab-hub")
    assert "v3.infra.acme.example" in own["rules"][1]["resourceNames"]
    assert "infra.acme.example" in groups_for_people(made)


def test_without_suffixes_nothing_is_said_of_them() -> None:
    systems = load("platform", ())
    made = manifest(systems, scheme_of(systems), Options(systems="platform", hub=STORAGE))
    assert "--group-suffix" not in one(made, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(suffixes=("acme.example",)), "give --hub"),
        (Options(hub=STORAGE, suffixes=("Not A Domain",)), "Not A Domain"),
    ],
)
def test_suffixes_that_cannot_be_are_refused(options: Options, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert install(options) == USAGE
    told = capsys.readouterr()
    assert said in told.err
    assert not told.out


def groups_for_people(made: list[dict[str, Any]]) -> set[str]:
    """Of the roles that are added to view, edit and admin."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    roles = (each for each in made if any(label.startswith(prefix) for label in each["metadata"].get("labels", {})))
    return {group for role in roles for rule in role["rules"] for group in rule["apiGroups"]}
