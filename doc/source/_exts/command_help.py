# SPDX-License-Identifier: Apache-2.0
"""The directive ``command-help``: all commands with their arguments."""

from typing import Any, Final

from command_text import describe, read_arguments, tabulate
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.util.nodes import nested_parse_with_titles

from devstack.command_pages import COMMANDS, read_help, walk_pages

# It has the options that every command has, and no other.
_PLAIN_COMMAND: Final = 'cyborg-lite-api'


class CommandHelp(Directive):
    """A section per command, and a table of the options that all commands have."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        common = read_help([_PLAIN_COMMAND])
        names = {argument for argument, _ in read_arguments(common)}
        lines: list[str] = []
        for prog in COMMANDS:
            for page in walk_pages([prog]):
                lines += describe(page, names)
        lines += ['Options of all commands', '=' * 23, '']
        lines += tabulate(read_arguments(common))
        container = nodes.section()
        container.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines), container)
        return container.children


def setup(app: Any) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive('command-help', CommandHelp)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
