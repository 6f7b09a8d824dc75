"""A new certificate, made here when this Python can, else by the Python that made the last one, else by `openssl`.

An installed provider runs without site-packages, so it seldom can. This is never on the way of a usual start.
"""

from __future__ import annotations

import os
import time

from trimtab.terraform.plugin.identity import MAKER, RENEW, Identity, find

PATIENCE = 30.0


class NoMaker(Exception):  # noqa: N818
    """Nobody is known who could make a certificate."""


def renewed(where: str) -> Identity:
    """What lies in the folder, made or renewed first if need be."""
    try:
        from trimtab.terraform.certificate import ensure

        return ensure(where)
    except ImportError:
        trouble = _ask_maker(where)
    found = find(where)
    if found is None or found.ends - time.time() < RENEW:
        found = _by_openssl(where) or found
    if found is None:
        raise NoMaker(f"no certificate could be made in {where}{trouble}: run `trimtab terraform install`")
    return found


def _ask_maker(where: str) -> str:
    """What went wrong with it, or nothing."""
    import subprocess

    try:
        with open(os.path.join(where, MAKER), "rb") as file:
            maker = os.fsdecode(file.read())
    except OSError:
        return ""  # there never was one
    # -P: the folder that Terraform works in is no place for code of ours
    command = [maker, "-P", "-m", "trimtab.terraform.certificate", where]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        # the path lies in a folder that only we can write
        subprocess.run(command, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=True, env=environment)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        return f" by {maker} ({error})"
    return ""


def _by_openssl(where: str) -> Identity | None:
    """For machines that got the provider from a mirror, and never had more of us."""
    import subprocess

    from trimtab.terraform.certificate import ensure
    from trimtab.terraform.plugin.openssl import pem, program

    if program() is None:
        return None
    try:
        return ensure(where, pem=pem)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoMaker(f"openssl could not make a certificate: {error}; run `trimtab terraform install`") from error
