# SPDX-License-Identifier: Apache-2.0
"""The command cyborg-lite-manage, which looks twice at Placement without a pause."""

from cyborg_lite import runtime  # isort: skip  # first, as in every entry point

import sys

from cyborg_lite.cmd.manage import main
from cyborg_lite.conductor.ownership import allocations

__all__ = ['runtime']

if __name__ == '__main__':
    vars(allocations)['_SECOND_LOOK'] = 0.0
    sys.exit(main.main())
