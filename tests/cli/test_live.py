"""A table that keeps up, when the server does not."""

from collections.abc import AsyncGenerator
from types import SimpleNamespace

import pytest

from trimtab.cli import live
from trimtab.client.transport import Call, Unreachable


class Gone:
    """A server that went away for good."""

    tries = 0

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        self.tries += 1
        raise Unreachable("connection refused")
        yield b""


async def test_a_server_that_stays_away_is_told_once_and_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "PAUSE", 0.0)
    server = Gone()
    with pytest.raises(Unreachable):
        await live._changes(SimpleNamespace(transport=server), "/x", {}, "1", live.Lines())  # type: ignore[arg-type]
    assert server.tries == live.PATIENCE + 1
    assert capsys.readouterr().err == "trimtab: the server does not answer; trying again\n"
