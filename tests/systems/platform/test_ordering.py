"""The order of addons, and which clusters a workload is meant to be on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.document import convert
from trimtab.model.selectors import LabelSelector
from trimtab.systems.platform.blueprints import ordered
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Cluster
from trimtab.systems.platform.placing import selected


@settings(max_examples=100)
@given(st.data())
def test_every_addon_comes_after_what_it_depends_on(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    names = data.draw(st.permutations([f"a{n}" for n in range(count)]))
    order = sorted(names)
    needs = {
        name: data.draw(st.lists(st.sampled_from(order[: order.index(name)] or [name]), max_size=3, unique=True))
        if order.index(name)
        else []
        for name in names
    }
    found = ordered(needs)
    assert sorted(found) == order
    for name, wanted in needs.items():
        assert all(found.index(each) < found.index(name) for each in wanted)


def test_the_given_order_is_kept_where_nothing_else_is_said() -> None:
    assert ordered({"c": (), "a": (), "b": ("c",)}) == ("c", "a", "b")


def test_a_circle_and_what_is_not_there_are_told() -> None:
    with pytest.raises(Fault, match="depend on each other: a, b") as circle:
        ordered({"a": ("b",), "b": ("a",), "c": ()})
    assert circle.value.reason == "DependencyCycle"
    with pytest.raises(Fault, match="addon a depends on z") as missing:
        ordered({"a": ("z",)})
    assert missing.value.reason == "DependencyMissing"


def cluster(project: str, name: str, *, shared: str = "", **labels: str) -> Cluster:
    sharing = {"enabled": True, "projects": [{"name": shared}]} if shared else {"enabled": False}
    return convert(
        {
            "metadata": {"name": name, "namespace": project, "labels": labels},
            "spec": {"config": {"eks": {}}, "sharing": sharing},
        },
        Cluster,
    )


@pytest.mark.row(23)
def test_labels_choose_own_clusters_and_shared_ones_and_own_ones_win() -> None:
    clusters = [
        cluster("team", "a", env="prod"),
        cluster("infra", "a", shared="*", env="prod"),
        cluster("infra", "b", shared="team", env="prod"),
        cluster("infra", "hidden", env="prod"),
        cluster("infra", "c", shared="*", env="prod"),
        cluster("other", "c", shared="*", env="prod"),
        cluster("team", "test", env="test"),
    ]
    found = selected(clusters, LabelSelector.parse("env=prod"), "team")
    assert {name: each.namespace for name, each in found.clusters.items()} == {"a": "team", "b": "infra"}
    assert {name: fault.reason for name, fault in found.faults.items()} == {"c": "ClusterAmbiguous"}
