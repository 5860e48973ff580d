# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's driver shows of vGPUs after each change: which can be made still."""

import errno
import os
import re
import zlib
from pathlib import Path
from typing import Final

from tests.fakes import sysfs_parts
from tests.fakes.sysfs_writer import Tree

# GPU instances (MIG) of the fixtures that have any, by card: type -> how many.
_INSTANCES: Final = {'0000:c1:00.0': {'nvidia-474': 2, 'nvidia-476': 1}}

# Of an L40S: id -> name and GiB; the card has 48.
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


def fail(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def create_mdev(root: Path, kind: Path, uuid: str) -> None:
    parent = kind.parents[1]
    fields = {'type': kind.name, 'iommu_group': 900 + zlib.crc32(uuid.encode()) % 1000}
    directory = str(parent.relative_to(root.resolve()))
    sysfs_parts.write_mediated(
        Tree(root, {}), directory, uuid, fields, 'nvidia-vgpu-vfio'
    )


def set_type(function: Path, text: str) -> None:
    """A type of what the function lists, or 0."""
    listed = (function / 'nvidia/creatable_vgpu_types').read_text()
    current = function / 'nvidia/current_vgpu_type'
    free = current.read_text().strip() == '0'
    if text != '0' and not (free and re.search(rf'^{text}\s*:', listed, re.M)):
        raise fail(errno.EINVAL)
    current.write_text(f'{text}\n')


def recount_all(root: Path) -> None:
    """Of every card of the host."""
    for device in sorted((root / 'sys/bus/pci/devices').glob('*')):
        if (device / 'mdev_supported_types').exists() or (device / 'virtfn0').exists():
            recount(root, device.resolve())


def recount(root: Path, function: Path) -> None:
    """Of the card that a function is, or is a part of."""
    card = (function / 'physfn').resolve()
    card = card if card.exists() else function
    virtual = [link.resolve() for link in card.glob('virtfn*')]
    if (card / 'mdev_supported_types').exists():
        _recount_card(card)
    elif any((each / 'mdev_supported_types').exists() for each in virtual):
        _recount_virtual(card, virtual)
    elif any((each / 'nvidia').exists() for each in virtual):
        _list_types(virtual)


def _recount_card(card: Path) -> None:
    made = _made([card])
    for kind in (card / 'mdev_supported_types').iterdir():
        left = _most(kind) - made.get(kind.name, 0)
        _show(kind, left if set(made) <= {kind.name} else 0)


def _recount_virtual(card: Path, virtual: list[Path]) -> None:
    made = _made(virtual)
    instances = _INSTANCES.get(card.name)
    for function in virtual:
        taken = bool(_made([function]))
        for kind in (function / 'mdev_supported_types').iterdir():
            most = _most(kind) if instances is None else instances.get(kind.name, 0)
            room = most > made.get(kind.name, 0) and not taken
            alone = instances is not None or set(made) <= {kind.name}
            on_instance = bool(re.search(r'-\d+-', (kind / 'name').read_text()))
            fits = on_instance is (instances is not None)
            _show(kind, int(room and alone and fits))


def _list_types(virtual: list[Path]) -> None:
    current = [(each / 'nvidia/current_vgpu_type').read_text() for each in virtual]
    used = [text.strip() for text in current if text.strip() != '0']
    fitting = [
        type_id
        for type_id, (_, size) in _TYPES.items()
        if set(used) <= {type_id} and (len(used) + 1) * size <= _MEMORY
    ]
    lines = [_HEADING, *(f'{each}  : {_TYPES[each][0]}' for each in fitting)]
    for function, text in zip(virtual, current, strict=True):
        shown = lines if text.strip() == '0' else [_HEADING]
        listing = function / 'nvidia/creatable_vgpu_types'
        listing.chmod(0o644)
        listing.write_text('\n'.join(shown) + '\n')


def _made(functions: list[Path]) -> dict[str, int]:
    """Mdevs that exist, by type."""
    found: dict[str, int] = {}
    for function in functions:
        for kind in (function / 'mdev_supported_types').iterdir():
            count = len(list((kind / 'devices').iterdir()))
            if count:
                found[kind.name] = found.get(kind.name, 0) + count
    return found


def _most(kind: Path) -> int:
    found = re.search(r'max_instance=(\d+)', (kind / 'description').read_text())
    assert found is not None
    return int(found[1])


def _show(kind: Path, count: int) -> None:
    file = kind / 'available_instances'
    if file.read_text() != f'{count}\n':
        file.write_text(f'{count}\n')
