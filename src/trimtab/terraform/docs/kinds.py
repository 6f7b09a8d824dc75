"""The pages of all kinds of a snapshot, and the one that maps types to kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.docs.pages import DATA_SOURCE, RESOURCE, Subject, page
from trimtab.terraform.kinds.naming import PREFIX
from trimtab.terraform.kinds.provider import TrimtabProvider

Head = Mapping[str, Any]


def pages(provider: TrimtabProvider) -> dict[str, str]:
    """All pages by the names of their files: resources/, data-sources/, index.md and types.md."""
    made = {"index.md": _index(provider), "types.md": types_page(provider.kinds.heads)}
    heads = provider.kinds.heads
    by_type = {f"{PREFIX}_{name}": head for name, head in heads.items()}
    plurals = {f"{PREFIX}_{head['plural_name']}": head for head in heads.values()}
    for type_, make in provider.resources().items():
        head = by_type[type_]
        subject = Subject(type_, RESOURCE, make().schema(), _kind(head), head["group"] or "core", _imports(head))
        made[f"resources/{type_.removeprefix(f'{PREFIX}_')}.md"] = page(subject)
    for type_, read in provider.data_sources().items():
        head = by_type.get(type_) or plurals[type_]
        subject = Subject(type_, DATA_SOURCE, read().schema(), _kind(head), head["group"] or "core")
        made[f"data-sources/{type_.removeprefix(f'{PREFIX}_')}.md"] = page(subject)
    return made


def types_page(heads: Mapping[str, Head], title: str = "Terraform types and their kinds") -> str:
    """Which group, version and kind a type of Terraform stands for."""
    lines = [f"# {title}", "", "| resource, data source | data source of many | group | version | kind | in a |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for name in sorted(heads):
        head = heads[name]
        many = "" if head["branch"] else f"`{PREFIX}_{head['plural_name']}`"
        kind = head["kind"] + (f", with `{'.'.join(head['branch'])}`" if head["branch"] else "")
        group = head["group"] or "(core)"
        lines.append(f"| `{PREFIX}_{name}` | {many} | {group} | {head['version']} | {kind} | {_place(head)} |")
    return "\n".join(lines) + "\n"


def _kind(head: Head) -> str:
    return f"{head['kind']} of {head['group'] + '/' if head['group'] else ''}{head['version']}"


def _place(head: Head) -> str:
    if not head["namespaced"]:
        return ""
    return "project" if head["hub"] else "namespace"


def _imports(head: Head) -> tuple[str, ...]:
    place = _place(head)
    return (f"{place}/name",) if place else ("name",)


def _index(provider: TrimtabProvider) -> str:
    subject = Subject("provider", "Provider", provider.schema())
    text = page(subject).replace("provider (Provider)", f"{PREFIX} Provider", 1)
    return text.replace('data "provider" "example" {}', f'provider "{PREFIX}" {{}}').replace(
        'page_title: "provider Provider"', f'page_title: "{PREFIX} Provider"'
    )
