# SPDX-License-Identifier: Apache-2.0
"""Description of an attach handle by the files of the sample host."""

from collections.abc import Mapping
from typing import Any, Final

from devstack.launcher import paths

_MDEVS: Final = 'sys/bus/mdev/devices'
_FUNCTIONS: Final = 'sys/bus/pci/devices'
_BOOT_ID: Final = 'proc/sys/kernel/random/boot_id'
# File of a function, and what it contains.
_CONTENTS: Final = {
    'nvidia/current_vgpu_type': 'vGPU of type',
    'xclbinuuid': 'xclbin',
    'driver': 'driver',
}


def read_boot_id() -> str:
    """Return the id of the present boot; empty while there is no sample host."""
    try:
        return (paths.SAMPLE_HOST / _BOOT_ID).read_text().strip()
    except OSError:
        return ''


# Any: the fields of an ARQ have various types.
def describe(arq: Mapping[str, Any]) -> str:
    """Return what the kernel shows for the attach handle of an ARQ."""
    uuid, info = arq['attach_handle_uuid'], arq['attach_handle_info'] or {}
    if not uuid or not paths.SAMPLE_HOST.is_dir():
        return 'nothing'
    if arq['attach_handle_type'] == 'MDEV':
        type_link = paths.SAMPLE_HOST / _MDEVS / uuid / 'mdev_type'
        exists = type_link.exists()
        return f'mdev of type {type_link.resolve().name}' if exists else 'no mdev'
    if arq['attach_handle_type'] != 'PCI':
        return 'nothing'
    address = '{domain}:{bus}:{device}.{function}'.format_map(info)
    function = paths.SAMPLE_HOST / _FUNCTIONS / address
    if not function.exists():
        return f'no function {address}'
    parts = []
    for name, subject in _CONTENTS.items():
        file = function / name
        if file.is_symlink():
            parts.append(f'{subject} {file.resolve().name}')
        elif file.is_file():
            parts.append(f'{subject} {file.read_text().strip()}')
    return ', '.join([f'function {address}', *parts])
