# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-agent ready``: checks the handles of this host, without network access.

A container of nova-compute waits for this command after a reboot of the host, where no
systemd orders the two services.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cyborg_lite import conf as configuration
from cyborg_lite.agent.arqs.readiness import are_rebuilt
from cyborg_lite.cmd.support.one_line_errors import one_line_errors
from cyborg_lite.drivers.host.sysfs import Host

SUBCOMMAND: Final = 'ready'
_PROG: Final = 'cyborg-lite-agent ready'
_DESCRIPTION: Final = (
    'Check whether the agent has rebuilt the devices of instances since the boot of '
    'this host. The exit status is 0 if it has.'
)


@one_line_errors(_PROG, 1)
def run(arguments: Sequence[str] | None = None) -> int:
    """Check whether the agent has rebuilt the handles since the boot of the host.

    :returns: 0 if it has; 1 otherwise
    """
    conf = configuration.parse(arguments or (), _PROG, description=_DESCRIPTION)
    host = Host(conf.host, Path(conf.agent.sysfs_root))
    if are_rebuilt(Path(conf.agent.state_path), host.boot_id):
        print('The devices of instances exist on this host.')
        return 0
    print('The agent has not rebuilt the devices of instances since the boot.')
    return 1
