# SPDX-License-Identifier: Apache-2.0
"""Who holds a device through VFIO: a guest has its group open while it runs."""

import os
import re
from collections.abc import Sequence

from cyborg_lite.drivers.sysfs import Host


def device_files(host: Host, directory: str) -> tuple[str, ...]:
    """The files below /dev that a guest opens to have a device, by its directory.

    The group has one, and on kernels that have them so has the device itself.
    """
    group = host.target(f'{directory}/iommu_group')
    of_device = host.names(f'{directory}/vfio-dev')
    return (
        *([f'/dev/vfio/{group}'] if group else []),
        *(f'/dev/vfio/devices/{name}' for name in of_device),
    )


def processes_with(root: str, files: Sequence[str]) -> list[int]:
    """Numbers of the processes that have one of the files open.

    Only root sees the files of others.
    """
    wanted = frozenset(files)
    processes = os.path.join(root, 'proc')
    numbers = [name for name in _names(processes) if re.fullmatch(r'\d+', name)]
    return sorted(
        int(number)
        for number in numbers
        if wanted & _open_files(os.path.join(processes, number, 'fd'))
    )


def _open_files(directory: str) -> set[str]:
    found = set()
    for name in _names(directory):
        try:
            found.add(os.readlink(os.path.join(directory, name)))
        except OSError:
            continue  # closed meanwhile
    return found


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []  # the process has ended
