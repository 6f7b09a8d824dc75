"""For Schemathesis, which imports it: requests that come past the first door, and what each answer must be.

Half of the namespaces are one that is there, half of the names those of one object, so that some requests meet something.
"""

import os
from typing import Any

import schemathesis

WHO = os.environ["TRIMTAB_WHO"]
HOME = "default"
PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
OWN = ("/selfsubjectaccessreviews", "/selfsubjectrulesreviews", "/selfsubjectreviews")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """A watch has no end. Of the rest, most are given what the schema cannot say: names of something, their own kind."""
    case.query = {name: value for name, value in (case.query or {}).items() if name not in ("watch", "follow")}
    if isinstance(
        case.path_parameters, dict
    ):  # an empty name is the whole collection: one that the run needs is not deleted
        case.path_parameters |= {
            name: HOME for name, value in case.path_parameters.items() if not str(value).strip("/. ")
        }
    chance = hash(str((case.path_parameters, case.body))) % 4
    if not chance:
        return
    if isinstance(case.path_parameters, dict):
        case.path_parameters |= {name: HOME for name in case.path_parameters if name == "namespace" or chance > 1}
    if isinstance(case.body, dict):
        if case.media_type not in PATCHES:
            case.media_type = "application/json"
        group = case.operation.definition.raw.get("x-kubernetes-group-version-kind")
        if group and chance > 1:
            version = f"{group['group']}/{group['version']}" if group["group"] else group["version"]
            case.body |= {"apiVersion": version, "kind": group["kind"], "metadata": {"name": HOME}}


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    with open(os.environ["TRIMTAB_CODES"], "a") as codes:
        codes.write(f"{response.status_code}\n")


@schemathesis.check
def rights_are_kept(context: Any, response: Any, case: Any) -> None:
    """What succeeded was theirs to ask for."""
    path = response.request.url.partition("://")[2].partition("/")[2].partition("?")[0]
    if WHO == "admin" or response.status_code >= 300:
        return
    if WHO == "editor":
        if f"namespaces/{HOME}/" in path or path.endswith(OWN) or path.endswith(f"namespaces/{HOME}"):
            return
        raise AssertionError(f"{case.method} of {path} succeeded for an account with rights in {HOME} alone")
    raise AssertionError(f"{case.method} of {path} succeeded for nobody")
