"""What the pages and the help say of the commands is so: each has an example, and every option that is named exists."""

import re
from pathlib import Path

import click
import pytest
import typer

from trimtab.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
READY = "trimtab is ready at"  # what `up` says is no command


def commands(group: click.Group, prefix: str = "") -> dict[str, click.Command]:
    """All of them by what is written after `trimtab`: `get`, `discovery`, `discovery why`."""
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        found[prefix + name] = command
        if hasattr(command, "commands"):
            found |= commands(command, f"{prefix}{name} ")  # type: ignore[arg-type]
    return found


COMMANDS = commands(typer.main.get_group(app))


def options(command: click.Command) -> set[str]:
    return {"--help", "-h"}.union(*((*parameter.opts, *parameter.secondary_opts) for parameter in command.params))


def unknown(line: str) -> list[str]:
    """The options in a command line that the command does not have."""
    words = line.split("|")[0].split()
    name = next((name for end in (4, 3, 2) if (name := " ".join(words[1:end])) in COMMANDS), "")
    if not name:
        return [words[1]] if len(words) > 1 and words[1].isalpha() else []
    command = COMMANDS[name]
    rest = words[1 + len(name.split()) :]
    if hasattr(command, "commands") and rest and rest[0].isalpha():
        return rest[:1]
    flags = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(rest))
    return [flag for flag in flags if flag not in options(command)]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_has_an_example_that_the_command_takes(name: str) -> None:
    (example,) = re.findall(r"^\s*Example:  (trimtab .+)$", COMMANDS[name].help or "", re.MULTILINE)
    assert example.startswith(f"trimtab {name}")
    assert unknown(example) == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_says_what_it_is(name: str) -> None:
    shown = [p for p in COMMANDS[name].params if p.param_type_name == "option" and not getattr(p, "hidden", False)]
    assert [p.name for p in shown if not getattr(p, "help", "")] == []


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_command_lines_of_the_pages_are_taken(page: Path) -> None:
    text = page.read_text()
    blocks = re.findall(r"^```(?:console)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = [span.replace("\\|", "|") for span in re.findall(r"`(trimtab [a-z][^`]*)`", text)]
    said = [line for line in (*lines, *spans) if line.startswith("trimtab ") and not line.startswith(READY)]
    wrong = {line: bad for line in said if (bad := unknown(line))}
    assert wrong == {}


def test_the_guide_tells_of_every_option_of_up() -> None:
    section = (ROOT / "docs" / "guide.md").read_text().partition("## Starting and stopping\n")[2].partition("\n## ")[0]
    usage = re.search(r"^```\n(trimtab up .*?)^```", section, re.DOTALL | re.MULTILINE)
    assert usage is not None
    table = "\n".join(line for line in section.splitlines() if line.startswith("| `--"))
    wanted = {
        opt for p in COMMANDS["up"].params if not getattr(p, "hidden", False) for opt in p.opts if opt[:2] == "--"
    }
    for place in (usage[1], table):
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", place)) == wanted - {"--help"}
