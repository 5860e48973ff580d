# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-conductor: the daemon that owns the database and runs the jobs."""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import sys
from collections.abc import Sequence

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.clients.glance import Glance
from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd import daemon, database
from cyborg_lite.conductor.binding import BindRules
from cyborg_lite.conductor.service import BINARY, ConductorService, Peers, Settings
from cyborg_lite.exceptions import ConfigurationError
from cyborg_lite.rpc import transport

__all__ = ['build', 'main', 'runtime']


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    conf = configuration.parse(sys.argv[1:] if arguments is None else arguments, BINARY)
    identity = daemon.Identity(
        BINARY, opens_database=True, workers=conf.conductor.workers
    )
    return daemon.run(conf, identity, build)


def build(conf: cfg.ConfigOpts) -> ConductorService:
    """The conductor as the configuration has it.

    :raises ConfigurationError: an address or the credentials of a service are wrong
    """
    try:
        peers = Peers(
            transport=transport.connect(conf),
            database=database.configured(conf),
            placement=Placement.configured(conf),
            nova=Nova.configured(conf),
            glance=Glance.if_configured(conf),
        )
    except cfg.Error as error:
        raise ConfigurationError(reason=str(error)) from None
    settings = Settings(
        host=conf.host,
        rules=BindRules(
            deadline=conf.conductor.bind_deadline,
            event_deadline=conf.conductor.event_deadline,
            require_allocation=conf.conductor.require_allocation,
        ),
        job_workers=conf.conductor.job_workers,
        job_lease=conf.conductor.job_lease,
        agent_timeout=conf.conductor.agent_timeout,
        agent_down_after=conf.conductor.agent_down_after,
        placement_audit_interval=conf.conductor.placement_audit_interval,
        audit_interval=conf.conductor.audit_interval,
        orphan_grace=conf.conductor.orphan_grace,
        reap_orphans=conf.conductor.reap_orphans,
        metrics_host=conf.conductor.metrics_host,
        metrics_ports=_metrics_ports(conf),
        load_timeout=conf.conductor.load_timeout,
        largest_image=conf.conductor.largest_image << 20,
        default_images=tuple(conf.conductor.default_images),
        hosts_without_compute=tuple(conf.conductor.hosts_without_compute),
    )
    return ConductorService(peers, settings)


def _metrics_ports(conf: cfg.ConfigOpts) -> range:
    """One for each process of this host; which of them has which is chance."""
    first = conf.conductor.metrics_port
    return range(first, first + conf.conductor.workers) if first else range(0)


if __name__ == '__main__':
    sys.exit(main())
