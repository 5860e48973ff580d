# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-conductor: it owns the database and runs the jobs."""

from cyborg_lite import runtime  # isort: skip  # must be imported first: it may monkey-patch

import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.clients.glance import Glance
from cyborg_lite.clients.limits import KeystoneLimits
from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.runner import daemon
from cyborg_lite.cmd.support import database, message_keys
from cyborg_lite.conductor.arqs.binding import BindRules
from cyborg_lite.conductor.arqs.nova_support import NovaRules
from cyborg_lite.conductor.jobs.purging import Retention
from cyborg_lite.conductor.jobs.runner import Workers
from cyborg_lite.conductor.service import (
    ConductorService,
    ConductorSettings,
    Connections,
)
from cyborg_lite.conf import nova
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.reconfiguration import HardwareSets, parse_hardware_sets
from cyborg_lite.model.hosts.services import CONDUCTOR, ServiceState
from cyborg_lite.rpc import notifications, transport
from cyborg_lite.rpc.security.keys import Role
from cyborg_lite.rpc.upgrade_levels import Pins
from cyborg_lite.version import VERSION


def read_hardware_sets(path: str) -> HardwareSets:
    """Return the sets of a file.

    :param path: empty: there are no sets
    :raises ConfigurationError: the file cannot be read, or names missing files
    """
    if not path:
        return HardwareSets()
    try:
        data = yaml.safe_load(Path(path).read_text(encoding='utf-8'))
    except OSError as error:
        reason = f'Cannot read [conductor] hardware_sets {path}: {error.strerror}.'
        raise ConfigurationError(reason=reason) from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        text = ' '.join(str(error).split())
        reason = f'[conductor] hardware_sets {path} is no YAML: {text}'
        raise ConfigurationError(reason=reason) from None
    sets = parse_hardware_sets(data)
    inventory = Path(sets.directory, sets.inventory)
    if not inventory.exists():
        raise ConfigurationError(reason=f'Hardware sets: {inventory} does not exist.')
    return sets


__all__ = ['build', 'main', 'runtime']

_DESCRIPTION: Final = (
    'The daemon that owns the database of cyborg_lite, binds ARQs, and keeps Placement '
    'up to date. Any number may run.'
)


_NEW_STATUS: Final = {
    'offered': DeviceStatus.ENABLED,
    'maintaining': DeviceStatus.MAINTAINING,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the conductor until SIGTERM; return the exit status."""
    conf = configuration.parse(arguments, CONDUCTOR, description=_DESCRIPTION)
    identity = daemon.Identity(
        CONDUCTOR, opens_database=True, workers=conf.conductor.workers
    )
    return daemon.run(conf, identity, build)


def _connect(conf: cfg.ConfigOpts, own_api: transport.Transport | None) -> Connections:
    """Connect to the message bus, the database and the other services.

    :raises ConfigurationError: as ``build``
    """
    try:
        peers = Connections(
            transport=transport.connect(
                conf, signer=message_keys.create_signer(conf, Role.CONDUCTOR)
            ),
            database=database.from_configuration(conf),
            placement=Placement.from_config(conf),
            nova=Nova.from_config(conf),
            glance=Glance.from_config_if_set(conf),
            notifications=notifications.connect(
                conf, conf.notifications.topic, conf.host
            )
            if conf.notifications.enabled
            else None,
            limits=KeystoneLimits.from_config_if_enabled(conf),
            own_api=own_api,
        )
    except cfg.Error as error:
        raise ConfigurationError(reason=str(error)) from None
    transport.pin_versions(
        peers.transport,
        Pins(conf.upgrade_levels, partial(_read_versions, peers.database)),
    )
    return peers


def _read_versions(db: Database) -> Iterator[tuple[str, str]]:
    """Yield binary and version of each running daemon of another version."""
    for service in db.read(services.list_services):
        is_other = service.version != VERSION
        if is_other and service.state is ServiceState.UP:
            yield service.binary, service.version


def build(
    conf: cfg.ConfigOpts, own_api: transport.Transport | None = None
) -> ConductorService:
    """Build the conductor from the configuration, without starting it.

    :param own_api: to the API in this process; None: there is none
    :raises ConfigurationError: the URL or the credentials of a service, or the hardware
        sets, are invalid
    """
    peers = _connect(conf, own_api)
    section = conf.conductor
    names = {field.name for field in fields(ConductorSettings)}
    settings: dict[str, Any] = {name: section[name] for name in names & {*section}}
    settings |= {
        'host': conf.host,
        'rules': _read_bind_rules(conf),
        'workers': Workers(section.job_workers, section.job_workers_per_host),
        'metrics_ports': _metrics_ports(conf),
        'serves_each_device': section.device_metrics,
        'largest_image': section.largest_image << 20,
        'new_status': _NEW_STATUS[section.new_devices],
        'retention': Retention(
            usage=section.usage_retention,
            device_events=section.device_event_retention,
            cleanings=section.cleaning_retention,
            reconfigurations=section.reconfiguration_retention,
            operations=section.operation_retention,
            arq_history=section.arq_history_retention,
        ),
        'max_backlog': conf.notifications.max_backlog,
        'hardware_sets': read_hardware_sets(section.hardware_sets),
        'max_unbound_requests': conf.limits.max_unbound_requests,
    }
    return ConductorService(peers, ConductorSettings(**settings))


def _metrics_ports(conf: cfg.ConfigOpts) -> range:
    """Return one port per worker process.

    Each worker binds the first free one, so the assignment is arbitrary.
    """
    first = conf.conductor.metrics_port
    return range(first, first + conf.conductor.workers) if first else range(0)


def _read_bind_rules(conf: cfg.ConfigOpts) -> BindRules:
    return BindRules(
        deadline=conf.conductor.bind_deadline,
        event_deadline=conf.conductor.event_deadline,
        require_allocation=conf.conductor.require_allocation,
        connect_deadline=conf.conductor.connect_deadline,
        nova=NovaRules(
            attaches_mdev=nova.ATTACHES_MDEV[conf.nova.attaches_mdev],
            attaches_unmanaged=conf.nova.attaches_unmanaged,
            hosts_without_compute=tuple(conf.conductor.hosts_without_compute),
        ),
    )


if __name__ == '__main__':
    sys.exit(main())
