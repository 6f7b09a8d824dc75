"""What is kept of manifests that were made: for whom, and how much."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from trimtab.model.document import convert
from trimtab.model.redacted import Redacted
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Workload
from trimtab.systems.platform.rendering import sources
from trimtab.systems.platform.rendering.helm import Helm, RemoteChart
from trimtab.systems.platform.rendering.manifests import Unfit, read
from trimtab.systems.platform.rendering.sources import Sources

MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


class Counting(Helm):
    """Says how often it was asked."""

    def __init__(self) -> None:
        super().__init__("/nowhere")
        self.count = 0

    async def template(self, *given: Any, **more: Any) -> bytes:
        self.count += 1
        return MAP


def workload(artifact: dict[str, Any]) -> Workload:
    return convert(
        {
            "apiVersion": "apps.trimtab.dev/v3",
            "kind": "Workload",
            "metadata": {"name": "shop", "namespace": "team"},
            "spec": {"namespace": "web", "placement": {"labels": "a=b"}, "artifact": artifact},
        },
        Workload,
    )


class Shelf:
    """Files by name."""

    def __init__(self, **files: bytes) -> None:
        self.files = files

    async def read(self, owner: Any, name: str) -> bytes:
        return self.files[name]


CHART = RemoteChart(endpoint="https://charts.test", chart="tiny", version="1.2.3")


@pytest.mark.parametrize(
    ("then", "times"),
    [
        (CHART, 1),
        (RemoteChart(endpoint="https://charts.test", chart="tiny", version="1.2.4"), 2),
        (RemoteChart(endpoint="https://charts.test", chart="tiny", version="1.2.3", username="ann"), 2),
        (RemoteChart(endpoint="https://charts.test", chart="tiny", version="1.2.3", password=Redacted("x")), 2),
        (RemoteChart(endpoint="https://charts.test", chart="tiny", version="1.2.3", ca="x"), 2),
        (RemoteChart(endpoint="https://charts.test", chart="tiny", version="1.2.3", insecure=True), 2),
    ],
)
async def test_a_chart_that_one_may_read_is_not_another_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: RemoteChart, times: int
) -> None:
    found = iter((CHART, then))

    async def remote(*given: Any) -> RemoteChart:
        return next(found)

    monkeypatch.setattr(sources, "_remote_chart", remote)
    helm = Counting()
    made = Sources(Shelf().read, tmp_path, helm)
    owner = workload({"helmInRepo": {"repository": "r", "chart": "tiny", "version": "1.2.3"}})
    for _ in range(2):
        await made.manifests(None, owner, "web")  # type: ignore[arg-type]
    assert helm.count == times


@pytest.mark.parametrize("version", ["", "1", "1.2", "~1.2.3", "^1.2.3", ">=1.2.3", "1.2.x", "1.2.3 - 2.0.0", "*"])
async def test_only_a_whole_version_always_means_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    async def remote(*given: Any) -> RemoteChart:
        return RemoteChart(endpoint="https://charts.test", chart="tiny", version=version)

    monkeypatch.setattr(sources, "_remote_chart", remote)
    helm = Counting()
    made = Sources(Shelf().read, tmp_path, helm)
    for _ in range(2):
        await made.manifests(None, workload({"helmInRepo": {"repository": "r", "chart": "tiny"}}), "web")  # type: ignore[arg-type]
    assert helm.count == 2


async def test_what_is_kept_has_an_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "KEPT_BYTES", 3000)
    monkeypatch.setattr(sources, "KEPT", 4)
    owner = workload({"uploadedYAML": {"paths": [{"name": "a.yaml"}]}})
    shelf = Shelf()
    made = Sources(shelf.read, tmp_path, Counting())
    for number in range(9):
        shelf.files["a.yaml"] = MAP + b"data: {x: %d}\n" % number
        await made.manifests(None, owner, "web")  # type: ignore[arg-type]
    assert len(made._kept) == 4
    shelf.files["a.yaml"] = MAP + b"data: {x: '%s'}\n" % (b"y" * 2900)
    await made.manifests(None, owner, "web")  # type: ignore[arg-type]
    assert len(made._kept) == 1
    shelf.files["a.yaml"] = MAP + b"data: {x: '%s'}\n" % (b"z" * 3100)
    assert (await made.manifests(None, owner, "web")).documents  # type: ignore[arg-type]
    assert not made._kept, "what is larger than all that may be kept is not"


def test_the_same_files_for_another_namespace_are_other_manifests() -> None:
    assert read({"a": MAP}, namespace="web").digest != read({"a": MAP}, namespace="shop").digest
    assert read({"a": MAP}, namespace="web").mark == read({"b": MAP}, namespace="web").mark


def test_a_word_that_is_taken_for_a_tag_is_not_shown() -> None:
    with pytest.raises(Unfit) as refused:
        read({"a": b"password: !hunter2 x\n"})
    assert str(refused.value) == "a: line 1: a tag is not known"


async def test_a_file_is_the_one_that_the_spec_names_or_none(tmp_path: Path) -> None:
    shelf = Shelf(**{"a.yaml": MAP})
    made = Sources(shelf.read, tmp_path, Counting())
    digest = f"sha256:{hashlib.sha256(MAP).hexdigest()}"
    owner = workload({"uploadedYAML": {"paths": [{"name": "a.yaml", "digest": digest}]}})
    assert (await made.manifests(None, owner, "web")).documents  # type: ignore[arg-type]
    shelf.files["a.yaml"] = MAP + b"data: {x: forged}\n"
    with pytest.raises(Fault) as refused:
        await made.manifests(None, owner, "web")  # type: ignore[arg-type]
    assert refused.value.reason == "ArtifactChanged"
