"""The provider: every kind of a snapshot as a resource and two data sources, of the server that its configuration names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from trimtab import __version__
from trimtab.terraform.framework.attributes import Attribute
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.data_source import DataSource
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.provider import Provider
from trimtab.terraform.framework.resource import Resource
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import Config
from trimtab.terraform.framework.types import BOOL, STRING
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.naming import PREFIX

TEXTS = {
    "kubeconfig": "A kubeconfig file. Or the environment variable TRIMTAB_KUBECONFIG or KUBECONFIG.",
    "context": "The context of the kubeconfig; its current one when it is not set.",
    "endpoint": "The server, as https://host:port, instead of a kubeconfig. Or TRIMTAB_ENDPOINT.",
    "token": "A bearer token. Or TRIMTAB_TOKEN, when the server is an endpoint.",
    "ca_file": "The certificate authority of the server, when it is not a public one. Or TRIMTAB_CA_FILE.",
    "project": "The project, or namespace, of resources that name none. Or TRIMTAB_PROJECT.",
}


class Source(Protocol):
    """Where definitions come from: a `Snapshot`, or `Kinds` at hand."""

    @property
    def heads(self) -> Mapping[str, Mapping[str, Any]]: ...

    def definition(self, name: str) -> Definition: ...

    def schema(self) -> bytes: ...


class TrimtabProvider(Provider):
    def __init__(self, kinds: Source) -> None:
        super().__init__(PREFIX, __version__)
        self.kinds = kinds

    def schema(self) -> Schema:
        attributes = {
            name: Attribute(STRING, optional=True, sensitive=name == "token", description=text)
            for name, text in TEXTS.items()
        }
        attributes["wait"] = Attribute(
            BOOL,
            optional=True,
            description="Whether resources that do not say wait until they are ready. Yes, if not set.",
        )
        attributes["force_conflicts"] = Attribute(
            BOOL, optional=True, description="Whether resources that do not say take over fields that others manage."
        )
        return Schema(attributes, description="Manages the kinds of a Trimtab server, or of any Kubernetes.")

    def configure(self, config: Config, context: Context) -> Any:
        """None while something of it is unknown: what needs the server then says so."""
        from trimtab.terraform.kinds.access import NoAccess, Settings, access
        from trimtab.terraform.kinds.api import Api
        from trimtab.terraform.kinds.client import Client

        if any(config.get(name) is UNKNOWN for name in TEXTS):
            return None
        given = Settings(**{name: str(config.get(name) or "") for name in TEXTS})
        try:
            reached = access(given)
        except NoAccess as error:
            raise Failed("No access to a server", str(error)) from None
        return Client(
            Api(reached, cancelled=context.cancelled),
            reached.project,
            wait=config.get("wait") is not False,
            force_conflicts=config.get("force_conflicts") is True,
        )

    def resources(self) -> Mapping[str, Callable[[], Resource]]:
        return {f"{PREFIX}_{name}": self._resource(name) for name in self.kinds.heads}

    def data_sources(self) -> Mapping[str, Callable[[], DataSource]]:
        offered: dict[str, Callable[[], DataSource]] = {}
        for name, head in self.kinds.heads.items():
            if not head["branch"]:
                offered[f"{PREFIX}_{name}"] = self._single(name)
                offered[f"{PREFIX}_{head['plural_name']}"] = self._plural(name)
        return offered

    def _resource(self, name: str) -> Callable[[], Resource]:
        def make() -> Resource:
            from trimtab.terraform.kinds.kind_resource import KindResource

            kind = _kind(self.kinds.heads[name])
            same = {f"{PREFIX}_{one}" for one, head in self.kinds.heads.items() if _kind(head) == kind and one != name}
            return KindResource(self.kinds.definition(name), frozenset(same))

        return make

    def _single(self, name: str) -> Callable[[], DataSource]:
        def make() -> DataSource:
            from trimtab.terraform.kinds.kind_data import KindData

            return KindData(self.kinds.definition(name))

        return make

    def _plural(self, name: str) -> Callable[[], DataSource]:
        def make() -> DataSource:
            from trimtab.terraform.kinds.kind_data import KindsData

            return KindsData(self.kinds.definition(name))

        return make


def _kind(head: Mapping[str, Any]) -> tuple[Any, ...]:
    return head["group"], head["version"], head["kind"]
