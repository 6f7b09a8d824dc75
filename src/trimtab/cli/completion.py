"""`trimtab completion`: scripts that complete the command line.

A script carries all commands and options in itself, so that completing them starts no program. Kinds, names of objects and
contexts are asked of `trimtab __complete`, which offers no word that means something to a shell. Bash and zsh share one
function in the words of POSIX sh: it reads the words so far, and prints what may come next; `:files` means that a file may.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer

SHELLS = ("bash", "zsh", "fish")


class Place(NamedTuple):
    """Where one may be on the command line, as `hub artifacts`, and what may come there."""

    path: str
    commands: tuple[str, ...]
    flags: tuple[str, ...]
    valued: tuple[str, ...]
    objects: bool


def script(app: typer.Typer, shell: str) -> str:
    places = list(_places(typer.main.get_command(app), ""))
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](places)


def _places(command: Any, path: str) -> Iterator[Place]:
    children = {name: each for name, each in getattr(command, "commands", {}).items() if not each.hidden}
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    flags = [name for p in options for name in (*p.opts, *p.secondary_opts)]
    valued = [name for p in options if not (p.is_flag or p.count) for name in p.opts]
    objects = any(str(p.metavar or "").startswith("KIND") for p in arguments)
    yield Place(path, tuple(children), (*flags, "--help"), tuple(valued), objects)
    for name, child in children.items():
        yield from _places(child, f"{path} {name}".strip())


def _cases(places: list[Place], field: str) -> str:
    lines = [
        f"    {shlex.quote(place.path)}) echo {shlex.quote(' '.join(words))} ;;"
        for place in places
        if (words := getattr(place, field))
    ]
    return "\n".join(lines)


def _shared(places: list[Place]) -> str:
    objects = "|".join(shlex.quote(place.path) for place in places if place.objects)
    return f"""\
_trimtab_commands() {{
  case "$1" in
{_cases(places, "commands")}
  esac
}}
_trimtab_flags() {{
  case "$1" in
{_cases(places, "flags")}
  esac
}}
_trimtab_valued() {{
  case "$1" in
{_cases(places, "valued")}
  esac
}}
_trimtab_objects() {{
  case "$1" in {objects}) return 0 ;; esac
  return 1
}}
{_CORE}"""


_CORE = r"""_trimtab_ask() {
  command trimtab __complete "$@" --namespace "$ns" --kubeconfig "$kubeconfig" --context "$context" 2>/dev/null
}
_trimtab_next() {
  local path="" want="" first="" ns="" kubeconfig="" context="" word="" current="" kind=""
  while [ $# -gt 1 ]; do
    word=$1
    shift
    if [ -n "$want" ]; then
      [ "$word" = "=" ] && continue
      case "$want" in
        -n|--namespace) ns=$word ;;
        --kubeconfig) kubeconfig=$word ;;
        --context) context=$word ;;
      esac
      want=""
      continue
    fi
    case "$word" in
      --namespace=*) ns=${word#*=} ; continue ;;
      --kubeconfig=*) kubeconfig=${word#*=} ; continue ;;
      --context=*) context=${word#*=} ; continue ;;
      -*)
        case " $(_trimtab_valued "$path") " in *" $word "*) want=$word ;; esac
        continue ;;
    esac
    if [ -z "$first" ]; then
      case " $(_trimtab_commands "$path") " in
        *" $word "*) path="${path:+$path }$word" ; continue ;;
      esac
      first=$word
    fi
  done
  current=$1
  if [ -n "$want" ]; then
    case "$want" in
      -n|--namespace) _trimtab_ask names namespaces ;;
      --context) _trimtab_ask contexts ;;
      *) echo ":files" ;;
    esac
    return
  fi
  case "$current" in
    -*) _trimtab_flags "$path" | tr ' ' '\n' ; return ;;
  esac
  if [ -n "$(_trimtab_commands "$path")" ]; then
    _trimtab_commands "$path" | tr ' ' '\n'
  elif ! _trimtab_objects "$path"; then
    if [ "$path" = "completion" ]; then printf 'bash\nzsh\nfish\n'; else echo ":files"; fi
  elif [ -n "$first" ] && [ "${first#*/}" = "$first" ]; then
    _trimtab_ask names "$first"
  elif [ "${current#*/}" != "$current" ]; then
    kind=${current%%/*}
    _trimtab_ask names "$kind" | while IFS= read -r word; do printf '%s\n' "$kind/$word"; done
  else
    _trimtab_ask kinds
  fi
}
"""


def _bash(places: list[Place]) -> str:
    return (
        "# Completion of trimtab for bash.\n"
        + _shared(places)
        + r"""_trimtab() {
  local current=${COMP_WORDS[COMP_CWORD]} found
  found=$(_trimtab_next "${COMP_WORDS[@]:1:COMP_CWORD}")
  if [ "$found" = ":files" ]; then
    compopt -o default 2>/dev/null
    COMPREPLY=()
    return
  fi
  local each
  COMPREPLY=()
  while IFS= read -r each; do  # not compgen -W: it would run what is in a word
    case "$each" in "$current"*) [ -n "$each" ] && COMPREPLY+=("$each") ;; esac
  done <<< "$found"
}
complete -F _trimtab trimtab
"""
    )


def _zsh(places: list[Place]) -> str:
    return (
        "#compdef trimtab\n# Completion of trimtab for zsh.\n"
        + _shared(places)
        + r"""_trimtab() {
  local found
  found=$(emulate -L sh; _trimtab_next "${(@)words[2,CURRENT]}")
  if [[ $found == ":files" ]]; then
    _files
  else
    compadd -- ${(f)found}
  fi
}
if [ "${funcstack[1]}" = "_trimtab" ]; then _trimtab "$@"; else compdef _trimtab trimtab; fi
"""
    )


def _fish(places: list[Place]) -> str:
    def cases(field: str) -> str:
        return "\n".join(
            f"        case '{place.path}'\n            string join \\n -- {' '.join(words)}"
            for place in places
            if (words := getattr(place, field))
        )

    functions = "".join(
        f"function __trimtab_{field}\n    switch $argv[1]\n{cases(field)}\n    end\nend\n"
        for field in ("commands", "flags", "valued")
    )
    objects = " ".join(f"'{place.path}'" for place in places if place.objects)
    return f"# Completion of trimtab for fish.\n{functions}set -g __trimtab_objects {objects}\n{_FISH}"


_FISH = r"""function __trimtab_next
    set -l tokens (commandline -opc)
    set -l current (commandline -ct)
    set -l path ''
    set -l want ''
    set -l first ''
    set -l asked
    for word in $tokens[2..-1]
        if test -n "$want"
            switch $want
                case -n --namespace
                    set -a asked --namespace $word
                case --kubeconfig --context
                    set -a asked $want $word
            end
            set want ''
            continue
        end
        if string match -q -- '-*' $word
            contains -- $word (__trimtab_valued $path); and set want $word
            continue
        end
        if test -z "$first"
            if contains -- $word (__trimtab_commands $path)
                set path (string trim "$path $word")
                continue
            end
            set first $word
        end
    end
    if test -n "$want"
        switch $want
            case -n --namespace
                command trimtab __complete names namespaces $asked 2>/dev/null
            case --context
                command trimtab __complete contexts $asked 2>/dev/null
            case '*'
                __fish_complete_path $current
        end
        return
    end
    if string match -q -- '-*' $current
        __trimtab_flags $path
    else if test -n "$(__trimtab_commands $path)"
        __trimtab_commands $path
    else if not contains -- $path $__trimtab_objects
        __fish_complete_path $current
    else if test -n "$first"; and not string match -q '*/*' $first
        command trimtab __complete names $first $asked 2>/dev/null
    else if string match -q '*/*' $current
        set -l kind (string split -m1 / $current)[1]
        command trimtab __complete names $kind $asked 2>/dev/null | string replace -r '^' "$kind/"
    else
        command trimtab __complete kinds $asked 2>/dev/null
    end
end
complete -c trimtab -f -a '(__trimtab_next)'
"""
