# SPDX-License-Identifier: Apache-2.0
"""Configuration files of cyborg_lite and Placement."""

import random
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from devstack.launcher import paths

HOST: Final = socket.gethostname()

# The options of a section, by section.
Sections = Mapping[str, Mapping[str, Sequence[str]]]

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
# Users bind ARQs by hand here, without a scheduler. A bind without an allocation only
# logs a warning. A deployment with Nova keeps the default, which rejects such a bind.
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
# No Nova attaches the functions here, so all kinds of vGPUs can be bound.
attaches_unmanaged = true

[glance]
endpoint_override = http://127.0.0.1:{image_port}

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
    """The TCP ports of the services on loopback."""

    api: int
    placement: int
    nova: int
    images: int


# Below the ports that Linux gives to outgoing connections, see ip_local_port_range in
# ip(7). A port of theirs may be in use again before its server listens.
_SERVER_PORTS: Final = range(10_000, 32_768)
_RANDOM: Final = random.SystemRandom()  # tests seed the usual generator
_selected_ports: set[int] = set()


def free_port() -> int:
    """Return a TCP port that is free on loopback now, another one at each call."""
    while True:
        port = _RANDOM.choice(_SERVER_PORTS)
        if port not in _selected_ports and is_free(port):
            _selected_ports.add(port)
            return port


def is_free(port: int) -> bool:
    """Check whether a server could listen on the port."""
    with socket.socket() as probe:
        # As in servers: connections in TIME_WAIT do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', port))
        except OSError:
            return False
        return True


def list_drivers() -> list[str]:
    """Return all drivers of the environment, those of other packages included.

    The host may contain devices of any driver.
    """
    return sorted(entry_points(group='cyborg_lite.drivers').names)


def write_files(ports: Ports, sysfs_root: Path, sections: Sections) -> None:
    """Write the configuration files of both services.

    :param sections: options of the drivers; each text is a line
    """
    paths.CONFIG.parent.mkdir(parents=True, exist_ok=True)
    paths.CONFIG.write_text(
        _CYBORG_LITE.format(
            host=HOST,
            drivers=','.join(list_drivers()),
            port=ports.api,
            placement_port=ports.placement,
            nova_port=ports.nova,
            image_port=ports.images,
            database=paths.DATABASE,
            sysfs_root=sysfs_root,
            agent=paths.AGENT,
            locks=paths.LOCKS,
        )
        + ''.join(_format_section(name, sections[name]) for name in sections)
    )
    paths.PLACEMENT_CONFIG.write_text(
        PLACEMENT.format(database=paths.PLACEMENT_DATABASE)
    )


def _format_section(name: str, options: Mapping[str, Sequence[str]]) -> str:
    lines = [f'{key} = {text}' for key, texts in options.items() for text in texts]
    return '\n'.join(['', f'[{name}]', *lines, ''])
