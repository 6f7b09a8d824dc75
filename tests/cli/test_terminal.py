"""What others wrote into objects and messages is shown, and never obeyed by a terminal."""

import pytest

from tests.cli.conftest import Program
from trimtab.cli.codes import complain
from trimtab.testing.embedded import TrimtabServer

ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "red\\e[31m\\a", labels: {test: terminal}}
rules: []
"""


def test_a_message_of_a_server_is_one_line_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    complain("denied: \x1b]0;title\x07\x1b[2J\nall\x9b31m gone")
    assert capsys.readouterr().err == "error: denied:  ]0;title  [2J all 31m gone\n"


def test_names_of_objects_carry_no_control_characters_to_the_terminal(
    trimtab_server: TrimtabServer, bare: Program
) -> None:
    bare.env["KUBECONFIG"] = str(trimtab_server.kubeconfig)
    said = [
        bare("apply", "-f", "-", stdin=ROLE),
        bare("get", "clusterroles", "-l", "test=terminal"),
        bare("get", "clusterroles", "-l", "test=terminal", "-o", "name"),
        bare("get", "clusterroles", "no\x1b[31m"),
        bare("delete", "clusterroles", "-l", "test=terminal"),
    ]
    assert [ran.code for ran in said] == [0, 0, 0, 3, 0]
    assert all("red" in ran.out for ran in said[:3])
    assert not any(char in ran.out + ran.err for ran in said for char in "\x1b\x07")
