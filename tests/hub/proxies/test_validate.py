"""Everything that is wrong with a document is told at once."""

from __future__ import annotations

import pytest

from tests.hub.kit import Plan, Service, plan
from trimtab.hub.artifacts.digests import file_paths
from trimtab.hub.contract import ApplyOptions, Hub, Refused
from trimtab.hub.proxies.validate import Validate, wrong
from trimtab.model.scheme import Scheme

KIND = Scheme().kind_of(Plan)
FILES = file_paths(Plan)


def fields(document: Hub) -> list[str]:
    return [field for field, _ in wrong(document, KIND, files=FILES, rules=True)]


async def test_a_good_document_is_passed_on_as_it_is() -> None:
    service = Service()
    document = plan(spec={"files": [{"name": "charts/a.tgz"}]})
    await Validate(service, KIND, files=FILES, rules=True).apply(document, ApplyOptions(project="red"))
    assert service.rows["red", "a"]["spec"] == {"files": [{"name": "charts/a.tgz"}]}


@pytest.mark.row(26)
async def test_all_mistakes_are_told_with_their_fields() -> None:
    service = Service()
    spec = {
        "replicas": "many",
        "unknwon": 1,
        "parts": [{}],
        "sharing": {"enabled": True},
        "files": [{"name": "../x"}],
    }
    with pytest.raises(Refused) as refused:
        await Validate(service, KIND, files=FILES).apply(plan(spec=spec), ApplyOptions(project="red"))
    told = {field for field, _ in refused.value.problems}
    assert {"spec.replicas", "spec.unknwon", "spec.parts[0].name", "spec.sharing.projects", "spec"} <= told
    assert service.rows == {}


@pytest.mark.row(27)
@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a\\b", "", "a/../b", "a//b", "./a", "C:/x"])
def test_paths_that_lead_elsewhere_are_refused(path: str) -> None:
    assert fields(plan(spec={"files": [{"name": path}]}))


@pytest.mark.row(27)
def test_a_file_is_named_once() -> None:
    [(_, why)] = wrong(plan(spec={"files": [{"name": "a"}, {"name": "a"}]}), KIND, files=FILES)
    assert "named twice" in why


@pytest.mark.row(3)
def test_name_and_project_are_mandatory() -> None:
    assert fields({"metadata": {}, "spec": {}}) == ["metadata.name", "metadata.project"]
    assert fields({"spec": {}}) == ["metadata"]
    assert fields({"metadata": {"name": "a", "project": "red"}}) == []


@pytest.mark.row(2)
def test_a_document_of_another_kind_is_refused() -> None:
    document = plan()
    document["apiVersion"] = "infra.trimtab.dev/v1"
    assert fields(document) == ["apiVersion"]
