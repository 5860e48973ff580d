# SPDX-License-Identifier: Apache-2.0
"""The configuration files of the two services."""

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.launcher import places

HOST: Final = socket.gethostname()

# All that there are: the tree that is looked at may be of any host.
_DRIVERS: Final = (
    'fake_driver',
    'nvidia_gpu_driver',
    'amd_gpu_driver',
    'intel_gpu_driver',
    'intel_fpga_driver',
    'inspur_fpga_driver',
    'xilinx_fpga_driver',
)

_CYBORG_LITE: Final = """\
# Written by devstack/standalone.sh at every start.
[DEFAULT]
host = {host}
transport_url = local://

[api]
auth_strategy = noauth
host = 127.0.0.1
port = {port}

[database]
connection = sqlite:///{database}

[conductor]
# Binds are made by hand here, and nobody schedules: without an allocation there is
# only a warning. A deployment with Nova leaves the default, which refuses them.
require_allocation = false

[agent]
enabled_drivers = {drivers}
sysfs_root = {sysfs_root}
state_path = {agent}
image_directory = {agent}/images

[placement]
endpoint_override = http://127.0.0.1:{placement_port}

[nova]
endpoint_override = http://127.0.0.1:{nova_port}/v2.1

[oslo_concurrency]
lock_path = {locks}
"""

PLACEMENT: Final = """\
# Written by devstack/standalone.sh at every start.
[api]
auth_strategy = noauth2

[placement_database]
connection = sqlite:///{database}
"""


@dataclass(frozen=True, slots=True)
class Ports:
    api: int
    placement: int
    nova: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: connections of the last run that linger are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', port))
        except OSError:
            return False
        return True


def write(ports: Ports, sysfs_root: Path) -> None:
    places.CONFIG.parent.mkdir(parents=True, exist_ok=True)
    places.CONFIG.write_text(
        _CYBORG_LITE.format(
            host=HOST,
            drivers=','.join(_DRIVERS),
            port=ports.api,
            placement_port=ports.placement,
            nova_port=ports.nova,
            database=places.DATABASE,
            sysfs_root=sysfs_root,
            agent=places.AGENT,
            locks=places.LOCKS,
        )
    )
    places.PLACEMENT_CONFIG.write_text(
        PLACEMENT.format(database=places.PLACEMENT_DATABASE)
    )
