# SPDX-License-Identifier: Apache-2.0
"""Subcommands of ``cyborg-lite-agent`` that exit at once: ``ready``, ``acknowledge``.

A container of nova-compute waits for ``ready`` after a reboot of the host, where no
systemd orders the two services.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.agent.arqs.readiness import are_rebuilt
from cyborg_lite.agent.inventory import device_health
from cyborg_lite.agent.inventory.health_rule_files import load_rules
from cyborg_lite.cmd.support.one_line_errors import one_line_errors
from cyborg_lite.drivers.host.sysfs import Host, pci_address
from cyborg_lite.model.devices.health_rules import HealthRules


def read_health_rules(conf: cfg.ConfigOpts) -> HealthRules:
    """Return the shipped rules with the changes of the operator.

    :raises ConfigurationError: a file cannot be read, or a rule is invalid
    """
    window = conf.agent.pci_error_period
    limits = {
        f'pci-{severity}': {'threshold': conf.agent[f'{severity}_error_limit']}
        for severity in ('fatal', 'nonfatal', 'correctable')
    }
    options = {name: {**values, 'window': window} for name, values in limits.items()}
    return load_rules(Path(conf.agent.hardware_directory), options)


_READY: Final = 'cyborg-lite-agent ready'
_READY_DESCRIPTION: Final = (
    'Check whether the agent has rebuilt the devices of instances since the boot of '
    'this host. The exit status is 0 if it has.'
)
_ACKNOWLEDGE: Final = 'cyborg-lite-agent acknowledge'
_ACKNOWLEDGE_DESCRIPTION: Final = (
    'Accept the errors of devices of this host that health rules count within a '
    'window, so that the devices are healthy again. New errors count again.'
)
_ADDRESSES: Final = cfg.MultiStrOpt(
    'address',
    positional=True,
    default=[],
    help='PCI addresses of devices. Without an address the devices are listed.',
)


@one_line_errors(_READY, 1)
def check_ready(arguments: Sequence[str] | None = None) -> int:
    """Check whether the agent has rebuilt the handles since the boot of the host.

    :returns: 0 if it has; 1 otherwise
    """
    conf = configuration.parse(arguments or (), _READY, description=_READY_DESCRIPTION)
    host = Host(conf.host, Path(conf.agent.sysfs_root))
    if are_rebuilt(Path(conf.agent.state_path), host.boot_id):
        print('The devices of instances exist on this host.')
        return 0
    print('The agent has not rebuilt the devices of instances since the boot.')
    return 1


def acknowledge(arguments: Sequence[str]) -> int:
    """Acknowledge the errors of the devices, or list all devices with errors.

    :returns: 0; 1 with the reason on standard error if an address is unknown or the
        state directory of the agent cannot be written
    """
    conf = configuration.parse(
        arguments,
        _ACKNOWLEDGE,
        command_line=[_ADDRESSES],
        description=_ACKNOWLEDGE_DESCRIPTION,
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
                f'{_ACKNOWLEDGE}: {text} has no errors. Known: {addresses}',
                file=sys.stderr,
            )
            status = 1
            continue
        try:
            device_health.acknowledge(state_path, address)
        except OSError as error:
            print(f'{_ACKNOWLEDGE}: {error}', file=sys.stderr)
            return 1
        seconds = conf.agent.heartbeat_interval
        print(f'{address} is acknowledged. The agent accepts it within {seconds} s.')
    return status
