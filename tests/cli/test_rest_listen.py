"""`trimtab rest listen`: a service tells it of a change, and the object is looked at."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator

from tests.cli.conftest import Program
from tests.cli.rest_desk import LOCALLY, Desk, desk, quiet
from tests.systems.rest.arm_kit import GROUP

__all__ = ["desk", "quiet"]


@contextlib.contextmanager
def listening(program: Program, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = program.installed("rest", "listen", "--listen", "127.0.0.1:0", *words, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        said = re.fullmatch(r"listening at (https?://127\.0\.0\.1:\d+)/SERVICE\n", process.stdout.readline())
        assert said is not None
        yield process, said[1]
    finally:
        process.kill()
        process.communicate()


async def test_drift_that_a_service_tells_of_is_corrected(desk: Desk) -> None:
    station, arm = desk.station, desk.arm
    await station.secret("told", token="lab-token")
    await desk.serve(notifications={"tokenSecret": {"name": "told", "namespace": station.namespace}})
    arm.change(GROUP, lambda body: body.update(tags={"team": "blue"}))
    await station.make("ResourceGroup", "web", resourceID=GROUP, location="westus", tags={"team": "blue"})
    with listening(desk.program) as (process, url):
        await arm.subscribe(f"{url}/{station.service}?token=lab-token", "event-grid")
        arm.change(GROUP, lambda body: body.update(tags={"team": "red"}))
        await station.until("ResourceGroup", "web", lambda d: d["status"]["sync"].get("corrected"))
        await station.ready("ResourceGroup", "web")
        process.send_signal(signal.SIGTERM)
        out, err = await asyncio.to_thread(process.communicate, timeout=30)
    assert process.returncode == 0
    assert arm.resources[GROUP]["tags"] == {"team": "blue"}
    assert "lab-token" not in out + err


@LOCALLY
async def test_an_address_that_is_taken_or_wrong_is_one_line(desk: Desk) -> None:
    with listening(desk.program) as (_, url):
        ran = await desk("rest", "listen", "--listen", url.removeprefix("http://"))
        assert ran.code == 1
        assert "nobody can listen at 127.0.0.1:" in ran.err
    ran = await desk("rest", "listen", "--listen", "nowhere")
    assert ran.code == 2
    assert "is not HOST:PORT" in ran.err


@LOCALLY
async def test_a_certificate_needs_its_key(desk: Desk) -> None:
    assert (await desk("rest", "listen", "--tls-cert", "tls.crt")).code == 2
    ran = await desk("rest", "listen", "--tls-certificate", "tls.crt", "--tls-key", "tls.key")
    assert ran.code == 1
    assert "cannot be read" in ran.err
