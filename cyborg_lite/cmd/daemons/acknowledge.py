# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-agent acknowledge``: accepts the errors of devices of this host."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.agent.inventory import device_health
from cyborg_lite.cmd.support.health_rules import read_health_rules
from cyborg_lite.drivers.host.sysfs import pci_address

SUBCOMMAND: Final = 'acknowledge'
_PROG: Final = 'cyborg-lite-agent acknowledge'

_DESCRIPTION: Final = (
    'Accept the errors of devices of this host that health rules count within a '
    'window, so that the devices are healthy again. New errors count again.'
)
_OPTIONS: Final[list[cfg.Opt]] = [
    cfg.MultiStrOpt(
        'address',
        positional=True,
        default=[],
        help='PCI addresses of devices. Without an address the devices are listed.',
    )
]


def run(arguments: Sequence[str]) -> int:
    """Acknowledge the errors of the devices, or list all devices with errors.

    :returns: 0; 1 with the reason on standard error if an address is unknown or the
        state directory of the agent cannot be written
    """
    conf = configuration.parse(
        arguments, _PROG, command_line=_OPTIONS, description=_DESCRIPTION
    )
    state_path = Path(conf.agent.state_path)
    unhealthy = device_health.list_reached(state_path, read_health_rules(conf))
    if not conf.address:
        lines = [f'{key}: {text}' for key, texts in unhealthy.items() for text in texts]
        print('\n'.join(lines) or 'No device has errors to acknowledge.')
        return 0
    status = 0
    for text in conf.address:
        address = pci_address(text)
        if address is None or address not in unhealthy:
            addresses = ', '.join(unhealthy) or 'none'
            print(
                f'{_PROG}: {text} has no errors. Known: {addresses}',
                file=sys.stderr,
            )
            status = 1
            continue
        try:
            device_health.acknowledge(state_path, address)
        except OSError as error:
            print(f'{_PROG}: {error}', file=sys.stderr)
            return 1
        seconds = conf.agent.heartbeat_interval
        print(f'{address} is acknowledged. The agent accepts it within {seconds} s.')
    return status
