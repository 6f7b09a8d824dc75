"""The command line as a whole. A command's options and help are in a `commands_` module, or in that of its group; its body
is imported when it runs, so that `up` starts at once."""

from __future__ import annotations

from typing import Annotated

import typer

from trimtab.cli.canary import app as canary
from trimtab.cli.commands_keeping import backup, restore
from trimtab.cli.commands_objects import apply, delete, describe, events, get, tree, version, wait
from trimtab.cli.commands_running import controllers, crds, install, run, up
from trimtab.cli.discovery import app as discovery
from trimtab.cli.envtest import app as envtest
from trimtab.cli.git import app as git
from trimtab.cli.hub import app as hub
from trimtab.cli.images import app as images
from trimtab.cli.options import one_of
from trimtab.cli.rest import app as rest
from trimtab.cli.terraform import app as terraform

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    up,
    controllers,
    run,
    install,
    get,
    apply,
    delete,
    describe,
    wait,
    tree,
    events,
    crds,
    version,
    backup,
    restore,
)
GROUPS = {
    "canary": canary,
    "discovery": discovery,
    "envtest": envtest,
    "git": git,
    "hub": hub,
    "images": images,
    "rest": rest,
    "terraform": terraform,
}

for command in COMMANDS:
    app.command()(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


@app.callback(
    epilog="Exit codes: 0 done; 1 failed; 2 wrong usage; 3 not found; 4 refused (conflict, not allowed); "
    "124 out of time; 130 interrupted."
)
def trimtab() -> None:
    """A control plane that you pip install: the Kubernetes API on an embedded store."""


@app.command()
def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell that completes.")],
) -> None:
    """Print a script by which a shell completes commands, options, kinds and names of objects.

    Example:  trimtab completion bash > ~/.local/share/bash-completion/completions/trimtab
    """
    from trimtab.cli import completion as command

    print(command.script(app, one_of(shell, command.SHELLS, "SHELL")), end="")
