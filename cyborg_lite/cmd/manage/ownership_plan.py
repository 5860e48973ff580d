# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage ownership plan`` and ``check``: the ownership file."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from oslo_config import cfg

from cyborg_lite.agent.ownership.nova_files import NovaFiles
from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import print_records
from cyborg_lite.cmd.support.ownership_file import read_plan
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.conf import agent
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.ownership.nova_config import NovaConfig, check_nova_config
from cyborg_lite.model.ownership.plan import (
    ConfigLine,
    OwnershipPlan,
    build_config,
    check_devices,
)
from cyborg_lite.model.text import format_count

_COLUMNS: Final = {
    'HOST': 'hostname',
    'CARD': 'address',
    'OWNER': 'owner',
    'DIFFERENCE': 'reason',
}


def add_parsers(parser: Parsers) -> None:
    commands = parser.add_subparsers(title='commands', metavar='COMMAND')
    plan = add_command(
        commands,
        'plan',
        'print the configuration of both services for the ownership file',
        _plan,
        has_table=True,
    )
    check = add_command(
        commands,
        'check',
        'compare the reported devices with the ownership file; the exit status is 1 if '
        'there is a difference',
        _check,
        has_table=True,
    )
    for command in (plan, check):
        command.add_argument(
            '--file', help='ownership file; default: [agent] ownership_file'
        )
        command.add_argument('--host', dest='of_host', help='only this host')
    check.add_argument(
        '--nova-config',
        action='append',
        metavar='PATH',
        help='file of nova-compute of the host, or directory of such files; needs '
        '--host and may be repeated; default: on the host itself [agent] '
        'nova_config_files',
    )


def _read_plan(conf: cfg.ConfigOpts) -> OwnershipPlan:
    path = conf.command.file or conf[agent.GROUP].ownership_file
    if not path:
        reason = 'Name the ownership file with --file or in [agent] ownership_file.'
        raise ConfigurationError(reason=reason)
    return read_plan(path)


# --- plan -----------------------------------------------------------------------------


def _plan(conf: cfg.ConfigOpts) -> int:
    command, plan = conf.command, _read_plan(conf)
    hosts = [command.of_host] if command.of_host else _list_stated_hosts(plan)
    lines = {host: build_config(plan.list_rules(host)) for host in hosts}
    if command.format == 'json':
        documents = {host: [*map(dataclasses.asdict, lines[host])] for host in hosts}
        print(json.dumps(documents, indent=2))
        return 0
    for host in hosts:
        print(f'# Host {host}')
        _print_lines(lines[host])
    return 0


def _list_stated_hosts(plan: OwnershipPlan) -> list[str]:
    return list(dict.fromkeys(rule.host for rule in plan.rules))


def _print_lines(lines: Iterable[ConfigLine]) -> None:
    for (file, section), group in groupby(
        lines, lambda line: (line.file, line.section)
    ):
        print(f'\n# {file}')
        if section:
            print(f'[{section}]')
        for line in group:
            print(line.text)
    print()


# --- check ----------------------------------------------------------------------------


def _check(conf: cfg.ConfigOpts) -> int:
    command, plan = conf.command, _read_plan(conf)
    if command.nova_config and not command.of_host:
        raise ConfigurationError(reason='Name the host of --nova-config with --host.')
    with database.open_database(conf) as db:
        devices = db.read(device_owners.list_owned_devices, command.of_host)
        all_hosts = db.read(device_owners.list_hosts)
    hosts = [command.of_host] if command.of_host else _list_hosts(plan, all_hosts)
    problems = check_devices(plan, devices, hosts)
    nova_host = command.of_host if command.nova_config else conf.host
    nova = _load_nova_config(conf) if nova_host in hosts else None
    if nova is not None:
        problems += check_nova_config(plan, nova_host, nova)
    count = format_count(len(hosts), 'host')
    empty = f'The devices of {count} match the ownership file.'
    print_records(conf, problems, _COLUMNS, empty)
    return int(bool(problems))


def _load_nova_config(conf: cfg.ConfigOpts) -> NovaConfig | None:
    """Return the configuration of Nova; None: it has no readable files here.

    :raises ConfigurationError: a file that the command names cannot be read
    """
    paths = conf.command.nova_config
    if not paths:
        files = NovaFiles(conf.agent.nova_config_files, agent.NOVA_CONFIG_FILES)
        config = files.load()
        return config if files.is_known else None
    files = NovaFiles(paths)
    config = files.load()
    if not files.is_known:
        raise ConfigurationError(reason=f'Cannot read all of {", ".join(paths)}.')
    return config


def _list_hosts(plan: OwnershipPlan, all_hosts: Sequence[str]) -> list[str]:
    """Return the hosts with an agent, and those that the file names exactly."""
    stated_hosts = (host for host in _list_stated_hosts(plan) if '*' not in host)
    return sorted({*all_hosts, *stated_hosts})
