# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage host``: list, show, disable, enable and forget hosts."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import is_json, print_records
from cyborg_lite.cmd.support.parsers import Parsers, add_command, add_group
from cyborg_lite.cmd.support.text_table import format_records
from cyborg_lite.conductor.hosts.hosts import DRAIN_REASON, HostService
from cyborg_lite.conductor.jobs.runner import create_owner
from cyborg_lite.conductor.providers.host_jobs import HostSyncJobs
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices
from cyborg_lite.db.hosts import hosts
from cyborg_lite.errors.hosts import HostNotFound
from cyborg_lite.model.devices.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.hosts.hosts import HostSummary
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_count

_COLUMNS: Final = {
    'HOST': 'name',
    'AGENT': 'agent',
    'DEVICES': 'devices',
    'MAINTAINING': 'maintaining',
    'ARQS': 'arqs',
}
_DEVICE_COLUMNS: Final = {
    'DEVICE': 'uuid',
    'TYPE': 'type',
    'VENDOR': 'vendor',
    'STATUS': 'status',
    'HEALTH': 'health',
}
_ARQ_COLUMNS: Final = {
    'ARQ': 'uuid',
    'STATE': 'state',
    'INSTANCE': 'instance_uuid',
    'DEVICE': 'device',
}


def add_parsers(parsers: Parsers) -> None:
    commands = add_group(parsers, 'host', 'list, disable or forget hosts')
    text = 'list hosts with their agents and devices'
    add_command(commands, 'list', text, _list, has_table=True)
    text = 'show the devices of a host and the ARQs that use it'
    _add_host_command(commands, 'show', text, _show)
    for name, text in (
        ('disable', 'set all devices of a host to maintaining; they get no new ARQ'),
        ('enable', 'set all devices of a host to enabled'),
    ):
        command = _add_host_command(commands, name, text, _set_status)
        command.add_argument('--reason', default='', help='stored with the devices')
        command.set_defaults(enables=name == 'enable')
    text = 'delete a host that is gone, and its providers'
    forget = _add_host_command(commands, 'forget', text, _forget)
    forget.add_argument(
        '--drain',
        action='store_true',
        help='disable the devices first; if the host cannot be forgotten yet, list '
        'what prevents the removal',
    )


def _add_host_command(
    commands: Parsers, name: str, text: str, run: Callable[[cfg.ConfigOpts], int]
) -> Any:
    command = add_command(commands, name, text, run)
    # The name `host` is taken by an option of this service.
    command.add_argument('of_host', metavar='NAME')
    return command


def _list(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        summaries = db.read(hosts.list_hosts)
    print_records(conf, summaries, _COLUMNS, 'No agent has reported a host.')
    return 0


def _show(conf: cfg.ConfigOpts) -> int:
    host = conf.command.of_host
    with database.open_database(conf) as db:
        summary = _find_summary(db, host)
        query = Query(filters={'hostname': (host,)})
        records = db.read(devices.list_devices, query)
        arqs = db.read(hosts.list_arqs, host)
    if is_json(conf):
        document = {
            **dataclasses.asdict(summary),
            'devices': [_device_document(device) for device in records],
            'arqs': [dataclasses.asdict(arq) for arq in arqs],
        }
        print(json.dumps(document, indent=2, default=str))
        return 0
    print(f'Host {host}: agent {summary.agent or "none"}')
    print()
    print(format_records(records, _DEVICE_COLUMNS, 'The host has no devices.'))
    print()
    print(format_records(arqs, _ARQ_COLUMNS, 'No ARQ uses the host.'))
    return 0


def _find_summary(db: Database, host: str) -> HostSummary:
    for summary in db.read(hosts.list_hosts):
        if summary.name == host:
            return summary
    raise HostNotFound(host=host)


def _device_document(device: DeviceRecord) -> dict[str, object]:
    names = ('uuid', 'type', 'vendor', 'model', 'status', 'health')
    return {name: getattr(device, name) for name in names}


@contextmanager
def _open_service(conf: cfg.ConfigOpts) -> Iterator[tuple[Database, HostService]]:
    with database.open_database(conf) as db:
        placement = Placement.from_config(conf)
        sync = PlacementSync(db, placement, conf.conductor.hosts_without_compute)
        jobs = HostSyncJobs(db, sync, create_owner(conf.conductor.job_lease))
        yield db, HostService(db, jobs)


def _set_status(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    status = DeviceStatus.ENABLED if command.enables else DeviceStatus.MAINTAINING
    with _open_service(conf) as (_db, service):
        changed = service.set_status(command.of_host, status, command.reason)
        changing = service.list_changing(command.of_host) if command.enables else ()
    devices = format_count(changed, 'device')
    print(f'Host {command.of_host}: the status of {devices} is {status} now.')
    for uuid in changing:
        print(
            f'Device {uuid} is not enabled: its mode or its configuration is being '
            'changed. If it is in maintenance after the change, enable it again.'
        )
    return 0


def _forget(conf: cfg.ConfigOpts) -> int:
    """Forget a host.

    :returns: 1 if ARQs or the agent prevent it, or if a provider remains
    """
    host = conf.command.of_host
    with _open_service(conf) as (db, service):
        if conf.command.drain:
            service.set_status(host, DeviceStatus.MAINTAINING, DRAIN_REASON)
        if _print_obstacles(db, host):
            return 1
        removed, result = service.forget(host)
    print(
        f'Host {host} is forgotten: {format_count(removed.devices, "device")}, '
        f'{format_count(removed.handles, "handle")}, '
        f'{format_count(removed.arqs, "ARQ")}, {format_count(removed.jobs, "job")}, '
        f'{format_count(len(removed.provider_uuids), "provider")}.'
    )
    for problem in result.problems:
        print(f'Provider {problem.uuid} ({problem.name}) remains: {problem.reason}')
    return int(bool(result.problems))


def _print_obstacles(db: Database, host: str) -> bool:
    """Print what prevents the removal of a host; return False for nothing."""
    summary = _find_summary(db, host)
    arqs = db.read(hosts.list_arqs, host)
    if arqs:
        print(f'Instances use host {host}. Move or delete them:')
        print(format_records(arqs, _ARQ_COLUMNS))
    is_up = summary.agent is ServiceState.UP
    if is_up:
        print(
            f'The agent of host {host} is up. Stop cyborg-lite-agent there and wait '
            'for [conductor] agent_down_after.'
        )
    return bool(arqs) or is_up
