# SPDX-License-Identifier: Apache-2.0
"""Owners of the devices of a host, from the configuration of the agent."""

from oslo_config import cfg

from cyborg_lite.agent.ownership.ownership import Ownership
from cyborg_lite.cmd.support.ownership_file import OwnershipFile
from cyborg_lite.conf.agent import NOVA_CONFIG_FILES
from cyborg_lite.drivers.host.sysfs import Host


def build_ownership(conf: cfg.ConfigOpts, host: Host) -> Ownership:
    """Return the comparison with the options of the operator and of Nova.

    :raises ConfigurationError: the ownership file is invalid
    """
    return Ownership(
        host,
        conf.agent.nova_config_files,
        conf.agent.excluded_devices,
        NOVA_CONFIG_FILES,
        OwnershipFile(conf.agent.ownership_file).read,
    )
