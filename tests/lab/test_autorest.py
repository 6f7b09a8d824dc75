"""The test server of AutoRest as the lab runs it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import urlopen

from tests.needs import needs
from trimtab.lab.autorest import AutorestServer, package, swagger
from trimtab.testing.ports import free_ports


def test_it_answers_on_loopback_only_and_brings_its_documents(tmp_path: Path) -> None:
    needs("node", package(), hint="scripts/packages.sh installs it")
    (port,) = free_ports(1)
    with AutorestServer(tmp_path, port) as server:
        with urlopen(f"{server.url}/paging/single") as answer:
            assert "values" in json.load(answer)
        assert _listening(server.pid) == {"0100007F"}
    assert "paths" in json.loads(swagger("lro.json").read_text("utf-8-sig"))


def _listening(pid: int) -> set[str]:
    """The addresses, as /proc writes them, that a process listens on."""
    own = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            own.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in own:
                found.add(fields[1].partition(":")[0])
    return found
