# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-agent, the daemon on each host with accelerators.

Three subcommands exit at once: ``discover`` scans the host, ``ready`` checks whether
the devices of instances are rebuilt, and ``acknowledge`` accepts the PCI errors of
devices.
"""

import cyborg_lite.runtime  # noqa: F401  # must be imported first: it may monkey-patch

# isort: split

import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.agent.bitstreams.image_cache import ImageCache
from cyborg_lite.agent.bitstreams.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.agent.bitstreams.programming import BitstreamStore
from cyborg_lite.agent.inventory.hardware_monitor import AgentIntervals
from cyborg_lite.agent.service import BINARY, AgentResources, AgentService
from cyborg_lite.agent.state.identity import load_identity
from cyborg_lite.clients.glance import Glance
from cyborg_lite.cmd.daemons import discover, subcommands
from cyborg_lite.cmd.daemons.subcommands import read_health_rules
from cyborg_lite.cmd.runner import daemon
from cyborg_lite.cmd.support import message_keys
from cyborg_lite.cmd.support.ownership_file import build_ownership
from cyborg_lite.drivers import loading
from cyborg_lite.drivers.host.kernel import PrivilegedKernel
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.kernel_log import KernelLog
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.security.keys import Role
from cyborg_lite.rpc.upgrade_levels import Pins

_MIB: Final = 1 << 20
_DESCRIPTION: Final = (
    'The daemon on each host with accelerators. It reports the devices of the host and '
    'prepares them for instances. Subcommands, each with its own --help: "discover" '
    'scans the host once and prints the devices; "ready" checks whether the devices of '
    'instances exist; "acknowledge" clears the PCI errors of a device.'
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent, or the subcommand in the arguments; return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for name, run in (
        ('discover', discover.run),
        ('ready', subcommands.check_ready),
        ('acknowledge', subcommands.acknowledge),
    ):
        if name in arguments:
            arguments.remove(name)
            return run(arguments)
    conf = configuration.parse(arguments, BINARY, description=_DESCRIPTION)
    return daemon.run(conf, daemon.Identity(BINARY), build)


def build(conf: cfg.ConfigOpts) -> AgentService:
    """Build the agent from the configuration, without starting it.

    :raises ConfigurationError: if a driver is unknown or an option is invalid
    """
    kernel = PrivilegedKernel(conf.agent.privileged_command)
    host = Host(
        conf.host,
        Path(conf.agent.sysfs_root),
        kernel,
        has_system_disk=not conf.agent.boots_from_network,
    )
    names = [field.name for field in fields(AgentIntervals)]
    timing = AgentIntervals(**{name: conf.agent[name] for name in names})
    drivers = loading.load_drivers(conf.agent.enabled_drivers, host, conf)
    state_path = Path(conf.agent.state_path)
    resources = AgentResources(
        host,
        drivers,
        state_path,
        _bitstream_store(conf, host),
        build_ownership(conf, host),
        read_health_rules(conf),
        KernelLog(host.root, kernel.read_log).read,
    )
    signer = message_keys.create_signer(conf, Role.AGENT)
    bus = transport.connect(conf, signer=signer, identity=load_identity(state_path))
    # An agent cannot read the versions of conductors: `auto` is that of this release.
    transport.pin_versions(bus, Pins(conf.upgrade_levels, lambda: ()))
    return AgentService(bus, resources, timing)


def _bitstream_store(conf: cfg.ConfigOpts, host: Host) -> BitstreamStore | None:
    """Return the bitstream store, or None if Glance is not configured."""
    try:
        glance = Glance.from_config_if_set(conf)
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
    return BitstreamStore(cache, LoadedBitstreams(directory, host))


if __name__ == '__main__':
    sys.exit(main())
