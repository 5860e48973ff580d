# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-manage: what an operator does by hand, on the database itself.

A group of commands is a module whose ``add_parsers`` adds them, and which names for
each, as the default of ``run``, the function that does it and returns the exit status.
"""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import sys
from collections.abc import Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import (
    manage_audit,
    manage_jobs,
    manage_ownership,
    manage_placement,
)
from cyborg_lite.exceptions import CyborgError

__all__ = ['main', 'runtime']

PROG: Final = 'cyborg-lite-manage'
FAILURE: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 nothing is wrong, 1 something is, 2 it cannot be told."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        conf = configuration.parse(given, PROG, command_line=[_COMMANDS])
        status: int = conf.command.run(conf)
    except SystemExit as end:
        # A mistake in a file comes with its text, for which Python would exit with 1.
        if not isinstance(end.code, str):
            raise
        print(end.code, file=sys.stderr)
        return FAILURE
    except CyborgError as error:
        print(f'{PROG}: {error.text} {error.advice}', file=sys.stderr)
        return FAILURE
    return status


# Any: the parsers of argparse, whose type takes a parameter that is not public.
def _add_parsers(parsers: Any) -> None:
    parsers.required = True
    for group in (manage_jobs, manage_audit, manage_placement, manage_ownership):
        group.add_parsers(parsers)


_COMMANDS: Final = cfg.SubCommandOpt('command', title='commands', handler=_add_parsers)

if __name__ == '__main__':
    sys.exit(main())
