# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage mode``: plan and apply the modes of the devices of a host."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from oslo_config import cfg

from cyborg_lite.cmd import database, message_keys
from cyborg_lite.cmd.parsers import add_command, add_group
from cyborg_lite.cmd.text_table import format_table
from cyborg_lite.conductor.modes import ModeService
from cyborg_lite.exceptions import ConfigurationError
from cyborg_lite.model.device_errors import ModeRefused
from cyborg_lite.model.modes import DevicePlan, ModePlan
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.keys import Role


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    """Add the command ``mode plan``."""
    commands = add_group(parsers, 'mode', 'plan the modes of devices')
    plan = add_command(
        commands,
        'plan',
        'show the modes of the devices of a host, what a change to the declared mode '
        'does, and which ARQs prevent it; the exit status is 1 if a device '
        'does not have its declared mode',
    )
    # The name `host` is taken by an option of this service.
    plan.add_argument('of_host', metavar='HOST')
    plan.add_argument(
        '--apply',
        action='store_true',
        help='start to change the devices that no instance uses to their declared mode',
    )
    plan.add_argument('--format', choices=['table', 'json'], default='table')
    plan.set_defaults(run=_plan)


def _plan(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with open_service(conf) as service:
        plans = service.plan_host(daemon_context(), command.of_host)
        if command.format == 'json':
            print(json.dumps([dataclasses.asdict(plan) for plan in plans], indent=2))
        else:
            _print_plans(plans)
        differing = [plan for plan in plans if _needs_change(plan)]
        if command.apply:
            return int(not _apply(service, differing))
    return int(bool(differing))


@contextmanager
def open_service(conf: cfg.ConfigOpts) -> Iterator[ModeService]:
    """Connect to the database and the message bus for one command.

    :raises ConfigurationError: the transport reaches no agent of another process
    """
    if transport.address(conf).startswith('local:'):
        reason = (
            'The transport local:// reaches no agent of another process. Use the '
            'commands `openstack accelerator device mode list` and `set`.'
        )
        raise ConfigurationError(reason=reason)
    signer = message_keys.create_signer(conf, Role.CONDUCTOR)
    bus = transport.connect(conf, signer=signer, is_daemon=False)
    try:
        with database.open_database(conf) as db:
            agents = AgentAPI(bus, conf.conductor.agent_timeout)
            yield ModeService(db, agents, lambda: None)
    finally:
        bus.cleanup()


def _needs_change(plan: DevicePlan) -> bool:
    return plan.declared is not None and plan.declared not in plan.current_modes


def _apply(service: ModeService, plans: Sequence[DevicePlan]) -> bool:
    """Start the changes; return False if one is refused."""
    is_complete = True
    for plan in plans:
        mode = plan.declared or ''
        try:
            service.change(daemon_context(), plan.device_uuid, mode)
            print(f'Device {plan.address}: the change to {mode} is started.')
        except ModeRefused as error:
            is_complete = False
            print(f'Device {plan.address}: {error.text}')
    return is_complete


def _print_plans(plans: Sequence[DevicePlan]) -> None:
    if not plans:
        print('No device of the host has modes.')
        return
    rows: list[Sequence[object]] = [
        ('DEVICE', 'ADDRESS', 'CURRENT', 'DECLARED', 'STORED', 'ARQS', 'CHANGE')
    ]
    for plan in plans:
        names = plan.current or '-', plan.declared or '-', plan.stored or '-'
        change = f'{plan.change.mode}: {plan.change.state}' if plan.change else '-'
        rows.append((plan.device_uuid, plan.address, *names, len(plan.arqs), change))
    print(format_table(rows))
    for plan in plans:
        _print_details(plan)


def _print_details(plan: DevicePlan) -> None:
    print(f'\nModes of {plan.address}:')
    for mode in plan.plans:
        print(f'  {mode.mode}{" (current)" if mode.is_current else ""}')
        if mode.mode == plan.declared:
            _print_difference(mode)
    if plan.declared is not None and plan.find(plan.declared) is None:
        print(f'  The declared mode {plan.declared} does not exist.')
    for arq in plan.arqs:
        print(f'  ARQ {arq} prevents a change.')
    if plan.change is not None and plan.change.reason:
        print(f'  The change to {plan.change.mode}: {plan.change.reason}')


def _print_difference(mode: ModePlan) -> None:
    signed = [('+', item) for item in mode.appears]
    signed += [('-', item) for item in mode.vanishes]
    for sign, item in signed:
        print(f'    {sign} {item}')
