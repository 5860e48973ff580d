# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-manage: administration commands on the database.

Each group of commands is a module with a function ``add_parsers``. It registers the
parsers and sets ``run``, per command, to a function that returns the exit status.
"""

from cyborg_lite import runtime  # isort: skip  # must be imported first: it may monkey-patch

import sys
from collections.abc import Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import (
    manage_audit,
    manage_device,
    manage_jobs,
    manage_ownership,
    manage_placement,
)
from cyborg_lite.exceptions import CyborgError

__all__ = ['main', 'runtime']

PROG: Final = 'cyborg-lite-manage'
FAILURE: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: 0 if there is no problem, 1 if there is one, 2 if the command failed
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        conf = configuration.parse(arguments, PROG, command_line=[_COMMANDS])
        status: int = conf.command.run(conf)
    except SystemExit as error:
        # For an error in a configuration file the code is a text. Python would print it
        # and exit with 1, which means something else here.
        if not isinstance(error.code, str):
            raise
        print(error.code, file=sys.stderr)
        return FAILURE
    except CyborgError as error:
        print(f'{PROG}: {error.text} {error.advice}', file=sys.stderr)
        return FAILURE
    return status


# Any: the type parameter of the argparse class is not public.
def _add_parsers(parsers: Any) -> None:
    parsers.required = True
    groups = (
        manage_jobs,
        manage_audit,
        manage_device,
        manage_placement,
        manage_ownership,
    )
    for group in groups:
        group.add_parsers(parsers)


_COMMANDS: Final = cfg.SubCommandOpt('command', title='commands', handler=_add_parsers)

if __name__ == '__main__':
    sys.exit(main())
