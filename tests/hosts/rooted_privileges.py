# SPDX-License-Identifier: Apache-2.0
"""Privileged process of an emulated host; its tools are those below another root.

Checks and processes are those of the product. Run it with the root as first argument.
"""

import sys

from oslo_privsep.daemon import helper_main

from cyborg_lite.drivers.host import privileged


def build_command(root: str) -> str:
    """Return the command for ``[agent] privileged_command``."""
    return f'{sys.executable} -m {__name__} {root}'


if __name__ == '__main__':
    privileged.set_root(sys.argv.pop(1))
    helper_main()
