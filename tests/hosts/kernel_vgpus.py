# SPDX-License-Identifier: Apache-2.0
"""Sysfs state of NVIDIA's driver after each change of vGPUs."""

import errno
import re
import zlib
from pathlib import Path
from typing import Final

from tests.hosts import kernel_modes, sysfs_parts
from tests.hosts.kernel_errors import fail
from tests.hosts.sysfs_writer import Tree

# Types of fixture cards in MIG mode, by address, then by slices and eighths of memory.
_INSTANCES: Final = {
    '0000:c1:00.0': {
        (1, 1): 'nvidia-474',
        (2, 2): 'nvidia-475',
        (3, 4): 'nvidia-476',
        (4, 4): 'nvidia-477',
        (7, 8): 'nvidia-478',
    }
}

# L40S types: id -> name and GiB; the card has 48 GiB.
_TYPES: Final = {
    '1147': ('NVIDIA L40S-1Q', 1),
    '1150': ('NVIDIA L40S-4Q', 4),
    '1152': ('NVIDIA L40S-8Q', 8),
    '1153': ('NVIDIA L40S-12Q', 12),
    '1155': ('NVIDIA L40S-24Q', 24),
    '1156': ('NVIDIA L40S-48Q', 48),
}
_MEMORY: Final = 48
_HEADING: Final = 'ID    : vGPU Name'


def create_mdev(root: Path, kind: Path, uuid: str) -> None:
    parent = kind.parents[1]
    fields = {'type': kind.name, 'iommu_group': 900 + zlib.crc32(uuid.encode()) % 1000}
    directory = str(parent.relative_to(root.resolve()))
    sysfs_parts.write_mediated(
        Tree(root, {}), directory, uuid, fields, 'nvidia-vgpu-vfio'
    )


def set_type(function: Path, text: str) -> None:
    """Set a type that the function lists, or 0."""
    listed = (function / 'nvidia/creatable_vgpu_types').read_text()
    current = function / 'nvidia/current_vgpu_type'
    free = current.read_text().strip() == '0'
    if text != '0' and not (free and re.search(rf'^{text}\s*:', listed, re.M)):
        raise fail(errno.EINVAL)
    current.write_text(f'{text}\n')


def recount_all(root: Path) -> None:
    """Recount the available instances of all cards."""
    for device in sorted((root / 'sys/bus/pci/devices').glob('*')):
        if (device / 'mdev_supported_types').exists() or (device / 'virtfn0').exists():
            recount(root, device.resolve())


def recount(root: Path, function: Path) -> None:
    """Recount the card that a function is or belongs to."""
    card = (function / 'physfn').resolve()
    card = card if card.exists() else function
    virtual = [link.resolve() for link in card.glob('virtfn*')]
    if (card / 'mdev_supported_types').exists():
        _recount_card(card)
    elif any((entry / 'mdev_supported_types').exists() for entry in virtual):
        _recount_virtual(card, virtual)
    elif any((entry / 'nvidia').exists() for entry in virtual):
        _list_types(virtual)


def _recount_card(card: Path) -> None:
    counts = _count_mdevs([card])
    for kind in (card / 'mdev_supported_types').iterdir():
        available = _read_limit(kind) - counts.get(kind.name, 0)
        _show(kind, available if set(counts) <= {kind.name} else 0)


def _recount_virtual(card: Path, virtual: list[Path]) -> None:
    counts = _count_mdevs(virtual)
    instances = _list_instances(card)
    for function in virtual:
        is_used = bool(_count_mdevs([function]))
        for kind in (function / 'mdev_supported_types').iterdir():
            limit = (
                _read_limit(kind) if instances is None else instances.get(kind.name, 0)
            )
            room = limit > counts.get(kind.name, 0) and not is_used
            alone = instances is not None or set(counts) <= {kind.name}
            on_instance = bool(re.search(r'-\d+-', (kind / 'name').read_text()))
            fits = on_instance is (instances is not None)
            _show(kind, int(room and alone and fits))


def _list_instances(card: Path) -> dict[str, int] | None:
    """Return the number of GPU instances by type, or None without MIG mode."""
    types = _INSTANCES.get(card.name)
    if types is None:
        return None
    root = next(item.parent for item in card.parents if item.name == 'sys')
    counts = kernel_modes.count_instances(root, card.name)
    return {types[key]: number for key, number in counts.items() if key in types}


def _list_types(virtual: list[Path]) -> None:
    current = [(entry / 'nvidia/current_vgpu_type').read_text() for entry in virtual]
    used = [text.strip() for text in current if text.strip() != '0']
    fitting = [
        type_id
        for type_id, (_, size) in _TYPES.items()
        if set(used) <= {type_id} and (len(used) + 1) * size <= _MEMORY
    ]
    lines = [_HEADING, *(f'{entry}  : {_TYPES[entry][0]}' for entry in fitting)]
    for function, text in zip(virtual, current, strict=True):
        lines_shown = lines if text.strip() == '0' else [_HEADING]
        listing = function / 'nvidia/creatable_vgpu_types'
        listing.chmod(0o644)
        listing.write_text('\n'.join(lines_shown) + '\n')


def _count_mdevs(functions: list[Path]) -> dict[str, int]:
    """Return the number of mdevs by type."""
    result: dict[str, int] = {}
    for function in functions:
        for kind in (function / 'mdev_supported_types').iterdir():
            count = len(list((kind / 'devices').iterdir()))
            if count:
                result[kind.name] = result.get(kind.name, 0) + count
    return result


def _read_limit(kind: Path) -> int:
    result = re.search(r'max_instance=(\d+)', (kind / 'description').read_text())
    assert result is not None
    return int(result[1])


def _show(kind: Path, count: int) -> None:
    file = kind / 'available_instances'
    if file.read_text() != f'{count}\n':
        file.write_text(f'{count}\n')
