# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-agent discover``: scans this host once, without any network access."""

import json
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.discovery_report import (
    DiscoveryRow,
    build_rows,
    format_table,
)
from cyborg_lite.agent.inventory.privilege_check import PrivilegeCheck
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.cmd.daemons.subcommands import read_health_rules
from cyborg_lite.cmd.support.one_line_errors import one_line_errors
from cyborg_lite.cmd.support.ownership_file import build_ownership
from cyborg_lite.drivers import loading
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.pci.names import load_names
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.devices.health_rules import HealthRule
from cyborg_lite.model.inventory.host_report import DiscoveryResult

_PROG: Final = 'cyborg-lite-agent discover'

_DESCRIPTION: Final = (
    'Scan the devices of this host once and print what the agent would report. No '
    'daemon and no network is required.'
)

_OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'sysfs-root',
        metavar='DIR',
        help='Directory that contains sys, proc and dev. Default: [agent] sysfs_root.',
    ),
    cfg.StrOpt(
        'format', default='table', choices=['table', 'json'], help='Output format.'
    ),
    cfg.BoolOpt(
        'explain',
        default=False,
        help='Read the signals of each card, and show the health rules for them.',
    ),
]


@one_line_errors(_PROG, 1)
def run(arguments: Sequence[str] | None = None) -> int:
    """Scan the host and print the rows.

    :returns: 0, also if no device is offered; 1 with the reason on standard error if
        the scan failed
    """
    conf = configuration.parse(
        arguments or (), _PROG, command_line=_OPTIONS, description=_DESCRIPTION
    )
    names = load_names()
    # With the names of their PCI ids, from the files of this system.
    rows = [replace(row, name=names.describe(row.result.ids)) for row in _scan(conf)]
    if conf.format == 'json':
        print(json.dumps([row.as_json() for row in rows], indent=2))
    else:
        print(format_table(rows))
    return 0


def _scan(conf: cfg.ConfigOpts) -> list[DiscoveryRow]:
    root = Path(conf.sysfs_root or conf.agent.sysfs_root)
    if not root.is_dir():
        raise ConfigurationError(reason=f'{root} is not a directory.')
    has_disk = not conf.agent.boots_from_network
    host = Host(conf.host, root, has_system_disk=has_disk)
    drivers = loading.load_drivers(conf.agent.enabled_drivers, host, conf)
    if root != Path(conf.agent.sysfs_root):
        discovery = Discovery(host, drivers, conf.agent.driver_timeout)
    else:
        ownership, privileges = build_ownership(conf, host), PrivilegeCheck(host)

        def amend(result: DiscoveryResult) -> DiscoveryResult:
            return privileges.amend(ownership.amend(result))

        discovery = Discovery(host, drivers, conf.agent.driver_timeout, amend)
        # The agent of this host may be running.
        cache = Cache(Path(conf.agent.state_path), read_only=True)
        cache.open()
        discovery.restore_handles(entry.handle for entry in cache.handles.values())
    results, unavailable = discovery.scan(), discovery.unavailable_drivers
    disabled = loading.load_disabled_drivers(conf.agent.enabled_drivers, host, conf)
    rows = build_rows(host, results, unavailable, disabled)
    if not conf.explain:
        return rows
    rules = tuple(read_health_rules(conf).rules.values())
    return [_explain(row, drivers.get(row.driver or ''), rules) for row in rows]


def _explain(
    row: DiscoveryRow, driver: Driver | None, rules: Sequence[HealthRule]
) -> DiscoveryRow:
    """Return the row with the readings of its card, and the rules for them."""
    device = row.result.device
    if device is None or not isinstance(driver, PciDriver):
        return row
    readings = driver.read_usage(device).counters
    probes = {name: readings.get(name) for name in driver.SIGNALS if '*' not in name}
    for_card = [
        rule
        for rule in rules
        if any(fnmatchcase(rule.signal, pattern) for pattern in driver.SIGNALS)
    ]
    return replace(row, probes=probes, rules=for_card)
