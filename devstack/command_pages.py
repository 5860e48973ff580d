# SPDX-License-Identifier: Apache-2.0
"""Writes the man pages and the shell completion of the commands from their ``--help``.

``python -m devstack.command_pages`` writes ``etc/man/`` and
``cyborg_lite/conf/completion.bash``.
"""

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest import mock

from cyborg_lite.cmd.daemons import agent, api, conductor, controller, standalone
from cyborg_lite.cmd.dbsync import main as dbsync
from cyborg_lite.cmd.manage import main as manage
from cyborg_lite.cmd.status import main as status

ROOT: Final = Path(__file__).parents[1]
MAN: Final = ROOT / 'etc' / 'man'
COMPLETION: Final = ROOT / 'cyborg_lite' / 'conf' / 'completion.bash'

COMMANDS: Final[Mapping[str, Callable[[Sequence[str] | None], int]]] = {
    'cyborg-lite-agent': agent.main,
    'cyborg-lite-api': api.main,
    'cyborg-lite-conductor': conductor.main,
    'cyborg-lite-controller': controller.main,
    'cyborg-lite-dbsync': dbsync.main,
    'cyborg-lite-manage': manage.main,
    'cyborg-lite-standalone': standalone.main,
    'cyborg-lite-status': status.main,
}

# The agent starts its subcommands itself, so argparse does not list them.
_AGENT_COMMANDS: Final = ('discover', 'ready', 'acknowledge')

_HEAD: Final = """\
# Completion of the commands of cyborg_lite, for bash. For zsh run first:
#   autoload -U +X bashcompinit && bashcompinit
# Written by `tox run -e gencommands`.
_cyborg_lite() {
    local path="$1" word words
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $word == -* ]] || path="$path $word"
    done
    case "$path" in
"""
_TAIL: Final = """\
    *) words="" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _cyborg_lite \\
"""


@dataclass(frozen=True, slots=True)
class Page:
    """The help of a command or of one of its subcommands."""

    path: tuple[str, ...]
    text: str

    @property
    def options(self) -> list[str]:
        """Long options, sorted."""
        names = re.findall(r'^  (?:-\w, )?(--[\w-]+)', self.text, re.MULTILINE)
        return sorted(set(names) - {'--shell_completion'})

    @property
    def subcommands(self) -> list[str]:
        """Names of the subcommands, in the order of the help."""
        if self.path == ('cyborg-lite-agent',):
            return list(_AGENT_COMMANDS)
        commands = self.text.partition('\ncommands:\n')[2]
        return re.findall(r'^    ([\w-]+)(?:  |$)', commands, re.MULTILINE)


def read_help(path: Sequence[str]) -> Page:
    """Return the help of a command without starting a process."""
    output = io.StringIO()
    with (
        mock.patch.dict(os.environ, COLUMNS='80'),
        contextlib.redirect_stdout(output),
        contextlib.suppress(SystemExit),
    ):
        COMMANDS[path[0]]([*path[1:], '--help'])
    return Page(tuple(path), output.getvalue())


def walk_pages(path: Sequence[str]) -> Iterator[Page]:
    """Yield the help of a command and of all its subcommands."""
    page = read_help(path)
    yield page
    for name in page.subcommands:
        yield from walk_pages([*path, name])


def build_man_page(pages: Sequence[Page]) -> str:
    """Return the man page of a command."""
    prog = pages[0].path[0]
    summary = re.split(r'\n\n', pages[0].text)[1]
    lines = [
        f'.TH {prog.upper()} 8',
        '.SH NAME',
        f'{prog} \\- {" ".join(summary.split())}'.replace('"', "'"),
    ]
    for page in pages:
        lines += [
            f'.SH "{" ".join(page.path).upper()}"',
            '.nf',
            # The prefix \\& hides a dot or a quote, which would be a request of roff.
            *(f'\\&{_escape(line)}' for line in page.text.splitlines()),
            '.fi',
        ]
    return '\n'.join(lines) + '\n'


def _escape(line: str) -> str:
    return line.replace('\\', '\\e').replace('-', '\\-')


def build_completion(pages: Sequence[Page]) -> str:
    """Return the completion function of all commands."""
    cases = [
        f'    "{" ".join(page.path)}"*)'
        if not page.subcommands
        else f'    "{" ".join(page.path)}")'
        for page in pages
    ]
    words = [' '.join([*page.subcommands, *page.options]) for page in pages]
    body = ''.join(
        f'{case} words="{text}" ;;\n' for case, text in zip(cases, words, strict=True)
    )
    return f'{_HEAD}{body}{_TAIL}    {" ".join(COMMANDS)}\n'


def main() -> None:
    """Write all files."""
    MAN.mkdir(exist_ok=True)
    every_page = []
    for prog in COMMANDS:
        pages = list(walk_pages([prog]))
        (MAN / f'{prog}.8').write_text(build_man_page(pages))
        every_page += pages
    COMPLETION.write_text(build_completion(every_page))


if __name__ == '__main__':
    main()
