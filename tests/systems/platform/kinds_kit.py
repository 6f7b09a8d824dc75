"""Documents of the platform's kinds: any that are valid, and small ones to start from."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]

words = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
versions = st.one_of(st.just(""), st.from_regex(r"v[0-9]{1,3}(\.[0-9]{1,2})?", fullmatch=True))
wanted = st.one_of(st.just("latest"), st.from_regex(r"v[0-9]{1,3}", fullmatch=True))
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)
labels = st.dictionaries(words, words, max_size=3)
files = st.builds(lambda name, sensitive: {"name": name, **sensitive},
                  st.lists(words, min_size=1, max_size=3).map("/".join),
                  st.sampled_from([{}, {"sensitive": True}, {"digest": "sha256:" + "0" * 64}]))  # fmt: skip
sharings = st.one_of(
    st.just({"enabled": False}),
    st.just({"enabled": True, "projects": [{"name": "*"}]}),
    st.lists(words, min_size=1, max_size=4, unique=True).map(
        lambda names: {"enabled": True, "projects": [{"name": name} for name in names]}
    ),
)
json_values = st.recursive(
    st.one_of(st.booleans(), st.integers(-(2**53), 2**53), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=8,
)


def some(required: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries(required, optional=optional or {})


def by_name(file: Document) -> str:
    return str(file["name"])


artifacts = st.one_of(
    some({"uploadedYAML": some({"paths": st.lists(files, min_size=1, max_size=3, unique_by=by_name)})}),
    some({"yamlInRepo": some({"repository": words, "paths": st.lists(words, min_size=1, max_size=3, unique=True)},
                             {"revision": words})}),
    some({"uploadedHelm": some({"chartPath": files}, {"valuesPaths": st.lists(files, max_size=2, unique_by=by_name)})}),
    some({"helmInRepo": some({"repository": words, "chart": words}, {"version": words})}),
    some({"helmInRepo": some({"repository": words, "path": words}, {"revision": words})}),
)  # fmt: skip
names = st.lists(words, max_size=3, unique=True)
nodes = some(
    {"arch": words, "hostname": words, "operatingSystem": words, "privateIp": words,
     "roles": st.lists(st.sampled_from(["ControlPlane", "Worker", "Storage"]), min_size=1, unique=True)},
    {"labels": labels, "ssh": some({}, {"port": words, "passphrase": words}), "interface": words,
     "taints": st.lists(some({"effect": words, "key": words}, {"value": words}), max_size=2,
                        unique_by=lambda taint: (taint["key"], taint["effect"]))},
)  # fmt: skip
mks = some(
    {"kubernetesVersion": words, "nodes": st.dictionaries(words, nodes, min_size=1, max_size=2),
     "network": some({"cni": some({"name": words}, {"version": words}), "podSubnet": words, "serviceSubnet": words},
                     {"ipv6": some({}, {"podSubnet": words}), "nameservers": labels})},
    {"installerTtl": st.integers(0, 4000), "highAvailability": st.booleans(), "location": words,
     "kubernetesUpgrade": some({"params": some({"workerConcurrency": words}), "strategy": st.just("concurrent")}),
     "controlPlaneOverrides": some({}, {"kubeApiserver": some({}, {"extraArgs": labels})})},
)  # fmt: skip
configs = st.one_of(
    some({"imported": some({"kubeconfigSecretRef": some({"name": words}, {"key": words})}, {"context": words})}),
    some({"mks": mks}),
    *(some({cloud: st.dictionaries(words, json_values, max_size=3)}) for cloud in ("eks", "aks", "gke")),
)

SPECS: dict[str, st.SearchStrategy[Document]] = {
    "Project": some({}, {"adopt": st.booleans(), "deletion": st.sampled_from(["Refuse", "Cascade"])}),
    "Addon": some({"namespace": words, "artifact": artifacts},
                  {"version": versions, "dependsOn": names, "sharing": sharings}),
    "Blueprint": some({}, {"version": versions, "base": some({"name": words}, {"version": wanted}),
                           "addons": st.lists(some({"name": words}, {"version": wanted, "dependsOn": names}), max_size=3,
                                              unique_by=lambda addon: addon["name"]), "sharing": sharings}),
    "Cluster": some({"config": configs},
                    {"blueprint": some({"name": words}, {"version": wanted}), "sharing": sharings,
                     "probeInterval": st.just("10s"), "proxy": some({"enabled": st.booleans(), "httpProxy": words})}),
    "Workload": some({"namespace": words, "artifact": artifacts,
                      "placement": st.one_of(some({"clusters": names.map(lambda found: [{"name": n} for n in found])}),
                                             some({"labels": st.just("env=prod")}))},
                     {"version": versions, "sharing": sharings,
                      "drift": some({}, {"action": st.sampled_from(["Off", "Detect", "Correct"])})}),
}  # fmt: skip


def documents(kind: str) -> st.SearchStrategy[Document]:
    """Any valid document of a kind, as a user writes it."""
    project = st.just(None) if kind == "Project" else words
    metadata = st.builds(
        lambda name, project, more: {"name": name, **({"project": project} if project else {}), **more},
        words,
        project,
        some(
            {}, {"description": texts.filter(bool), "labels": labels.filter(bool), "annotations": labels.filter(bool)}
        ),
    )
    return some({"metadata": metadata, "spec": SPECS[kind]})
