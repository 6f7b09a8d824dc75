"""Where manifests come from: files of the resource itself, or of a Git repository; plain YAML, or a Helm chart."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.hub import File
from trimtab.model.markers import OneOf, Ref, Rule
from trimtab.model.resource import Spec
from trimtab.systems.platform.kinds.fields import (
    PATH_SAYS,
    Files,
    PlainPath,
    Referred,
    RepositoryPaths,
    SomeFiles,
)

ONE_PATH_RULE = r"!self.name.startsWith('/') && !self.name.contains('\\') && !self.name.matches('(^|/)[.]{1,2}(/|$)')"
ONE_PLAIN_RULE = r"!self.startsWith('/') && !self.contains('\\') && !self.matches('(^|/)[.][.](/|$)')"
RepositoryName = Annotated[Referred, Ref("Repository"), Meta(description="A Repository.")]
Revision = Annotated[str, Meta(min_length=1, max_length=255, description="A branch, a tag or a commit.")]


class UploadedYAML(Spec):
    """YAML files beside the document."""

    paths: Files


class YAMLInRepo(Spec):
    """YAML files of a Git repository."""

    repository: RepositoryName
    revision: Revision = "HEAD"
    paths: RepositoryPaths


class UploadedHelm(Spec):
    """A packed chart beside the document."""

    chart_path: Annotated[File, Rule(ONE_PATH_RULE, PATH_SAYS), Meta(description="The packed chart, a .tgz.")]
    values_paths: SomeFiles = ()


class HelmInRepo(
    Spec,
    rules=(
        Rule("has(self.chart) != has(self.path)", "give chart for a Helm repository, or path for a folder in Git"),
        Rule("!has(self.revision) || has(self.path)", "a revision is of a Git repository: give path too"),
        Rule("!has(self.version) || has(self.chart)", "a version is of a chart in a Helm repository: give chart too"),
    ),
):
    """A chart of a Helm repository (chart, version), or of a Git one (path, revision)."""

    repository: RepositoryName
    chart: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=255,
                pattern="^[A-Za-z0-9][A-Za-z0-9._/-]*$",
                description="The name of a chart of a Helm repository.",
            ),
        ]
        | UnsetType
    ) = UNSET
    version: (
        Annotated[str, Meta(min_length=1, max_length=255, description="Of the chart; the newest when not set.")]
        | UnsetType
    ) = UNSET
    revision: Revision | UnsetType = UNSET
    path: (
        Annotated[
            PlainPath, Rule(ONE_PLAIN_RULE, PATH_SAYS), Meta(description="The chart's folder in a Git repository.")
        ]
        | UnsetType
    ) = UNSET
    values_paths: SomeFiles = ()


class Artifact(
    Spec,
    one_of=OneOf("uploadedYAML", "yamlInRepo", "uploadedHelm", "helmInRepo"),
    rename={
        "uploaded_yaml": "uploadedYAML",
        "yaml_in_repo": "yamlInRepo",
        "uploaded_helm": "uploadedHelm",
        "helm_in_repo": "helmInRepo",
    },
):
    """What is applied. Exactly one source."""

    uploaded_yaml: UploadedYAML | UnsetType = UNSET
    yaml_in_repo: YAMLInRepo | UnsetType = UNSET
    uploaded_helm: UploadedHelm | UnsetType = UNSET
    helm_in_repo: HelmInRepo | UnsetType = UNSET

    def files(self) -> tuple[File, ...]:
        """Every file that lives beside the document."""
        if self.uploaded_yaml:
            return self.uploaded_yaml.paths
        if self.uploaded_helm:
            return (self.uploaded_helm.chart_path, *self.uploaded_helm.values_paths)
        return self.helm_in_repo.values_paths if self.helm_in_repo else ()

    def repository(self) -> str:
        """The Repository that it needs; "" for none."""
        source = self.yaml_in_repo or self.helm_in_repo
        return source.repository if source else ""
