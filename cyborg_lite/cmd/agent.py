# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-agent: the daemon on each host; with ``discover`` it looks once."""

import cyborg_lite.runtime  # noqa: F401  # first of all: it may patch the others

# isort: split

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.agent.image_cache import ImageCache
from cyborg_lite.agent.loaded import LoadedRegions
from cyborg_lite.agent.ownership import Ownership
from cyborg_lite.agent.programming import Stock
from cyborg_lite.agent.service import BINARY, AgentService, Resources
from cyborg_lite.agent.watching import Timing
from cyborg_lite.clients.glance import Glance
from cyborg_lite.cmd import daemon, discover
from cyborg_lite.drivers import loading
from cyborg_lite.drivers.kernel import PrivilegedKernel
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import ConfigurationError
from cyborg_lite.rpc import transport

_MIB: Final = 1 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if discover.WORD in given:
        given.remove(discover.WORD)
        return discover.run(given)
    conf = configuration.parse(given, BINARY)
    return daemon.run(conf, daemon.Identity(BINARY), build)


def build(conf: cfg.ConfigOpts) -> AgentService:
    """The agent as the configuration has it; also for those who run it beside others.

    :raises ConfigurationError: a driver is wrong
    """
    kernel = PrivilegedKernel(conf.agent.privileged_command)
    host = Host(conf.host, Path(conf.agent.sysfs_root), kernel)
    timing = Timing(
        discovery_interval=conf.agent.discovery_interval,
        heartbeat_interval=conf.agent.heartbeat_interval,
        driver_timeout=conf.agent.driver_timeout,
        fingerprint_interval=conf.agent.fingerprint_interval,
        recovery_patience=conf.agent.recovery_patience,
        removal_scans=conf.agent.removal_scans,
    )
    drivers = loading.load(conf.agent.enabled_drivers, host, conf)
    state_path = Path(conf.agent.state_path)
    ownership = Ownership(
        host, conf.agent.nova_config_files, conf.agent.excluded_devices
    )
    resources = Resources(host, drivers, state_path, _stock(conf), ownership)
    return AgentService(transport.connect(conf), resources, timing)


def _stock(conf: cfg.ConfigOpts) -> Stock | None:
    """None: without Glance nothing is ever loaded."""
    try:
        glance = Glance.if_configured(conf)
    except cfg.Error as error:
        raise ConfigurationError(reason=str(error)) from None
    if glance is None:
        return None
    directory = Path(conf.agent.image_directory)
    cache = ImageCache(
        directory,
        glance,
        largest=conf.agent.largest_image * _MIB,
        capacity=conf.agent.image_cache_size * _MIB,
    )
    return Stock(cache, LoadedRegions(directory))


if __name__ == '__main__':
    sys.exit(main())
