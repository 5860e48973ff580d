# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-manage: administration commands on the database.

Each group of commands has a function that registers its parsers. It sets ``run``, per
command, to a function that returns the exit status.
"""

from cyborg_lite import runtime  # isort: skip  # must be imported first: it may monkey-patch

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.manage import (
    agents,
    audit,
    init,
    ownership,
    placement,
    recover,
    topology,
    units,
)
from cyborg_lite.cmd.support.json_output import run_command
from cyborg_lite.cmd.support.one_line_errors import one_line_errors
from cyborg_lite.cmd.support.parsers import Parsers

__all__ = ['main', 'runtime']

PROG: Final = 'cyborg-lite-manage'
FAILURE: Final = 2
_FURTHER_GROUPS: Final = 'cyborg_lite.manage'  # entry points
_DESCRIPTION: Final = (
    'Administer a deployment of cyborg_lite. The commands read and change its '
    'database. Run them on a controller.'
)


@one_line_errors(PROG, FAILURE)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: 0 if there is no problem, 1 if there is one, 2 if the command failed
    """
    conf = configuration.parse(
        arguments, PROG, command_line=[_COMMANDS], description=_DESCRIPTION
    )
    return run_command(conf, lambda: int(conf.command.run(conf)))


def _add_parsers(parsers: Parsers) -> None:
    parsers.required = True
    for add_parsers in (
        audit.add_parsers,
        recover.add_parsers,
        placement.add_parsers,
        ownership.add_parsers,
        agents.add_parsers,
        topology.add_parsers,
        init.add_parsers,
        units.add_parsers,
    ):
        add_parsers(parsers)
    # Commands outside the service, such as the import.
    for entry_point in sorted(entry_points(group=_FURTHER_GROUPS)):
        entry_point.load()(parsers)


_COMMANDS: Final = cfg.SubCommandOpt('command', title='commands', handler=_add_parsers)

if __name__ == '__main__':
    sys.exit(main())
