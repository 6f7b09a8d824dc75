"""Clients keep OpenAPI documents by the hash in the index: it tells documents apart, and nothing else."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.server.api import Api, running
from tests.server.test_definitions import DEFINITIONS, definition, launch

SEA = "apis/sea.example.com/v1"


async def hashes(api: Api) -> dict[str, str]:
    index = (await api.get("/openapi/v3")).doc["paths"]
    links = {name: link["serverRelativeURL"].split("?hash=") for name, link in index.items()}
    assert all(path == f"/openapi/v3/{name}" for name, (path, _) in links.items())
    return {name: found for name, (_, found) in links.items()}


async def test_a_hash_is_of_what_is_there(api: Api) -> None:
    await launch(api)
    found = await hashes(api)
    assert {SEA, "api/v1", "apis/apps/v1"} <= found.keys()
    for name, told in found.items():
        body = (await api.get(f"/openapi/v3/{name}?hash={told}")).raw
        assert hashlib.sha256(body).hexdigest().upper().startswith(told)
        assert (await api.get(f"/openapi/v3/{name}", if_none_match=f'"{told}"')).code == 304


async def test_a_hash_goes_with_its_document_and_comes_back_with_it(api: Api) -> None:
    await launch(api)
    before = await hashes(api)
    path = f"{DEFINITIONS}/boats.sea.example.com"
    changed = (await api.get(path)).doc
    spec = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["colour"] = {"type": "string"}
    assert (await api.put(path, changed)).code == 200
    await api.until(f"/openapi/v3/{SEA}", lambda answer: b"colour" in answer.raw)
    after = await hashes(api)
    assert [name for name in before if after[name] != before[name]] == [SEA]
    assert (await api.merge(path, {"spec": definition()["spec"]})).code == 200
    await api.until(f"/openapi/v3/{SEA}", lambda answer: b"colour" not in answer.raw)
    assert await hashes(api) == before


def test_every_process_says_the_same_hashes() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-m", "tests.server.test_openapi"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(json.loads(told[0])) > 5
    assert told[0] == told[1]


async def tell() -> None:
    async with running() as api:
        await launch(api)
        sys.stdout.write(json.dumps(await hashes(api)))


if __name__ == "__main__":
    asyncio.run(tell())
