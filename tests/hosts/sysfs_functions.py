# SPDX-License-Identifier: Apache-2.0
"""PCI functions of a fixture host, with templates applied and VFs computed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# YAML values have no common type.
Fields = Mapping[str, Any]


_DEFAULTS: Fields = {'rev': '00', 'numa': -1}
_INHERITED = ('class', 'rev', 'numa', 'reset')  # of a virtual function, from its card


@dataclass(frozen=True)
class Function:
    """PCI function, physical or virtual."""

    pci: str
    under: str
    fields: Fields
    ids: tuple[str, str, str, str]  # vendor, device, and both of the subsystem
    physfn: str | None = None
    virtfns: tuple[str, ...] = field(default=())

    @property
    def directory(self) -> str:
        return f'sys/devices/{self.under}/{self.pci}'


def resolve(
    devices: Iterable[Fields], templates: Fields, most_virtual: int = 256
) -> tuple[Function, ...]:
    """Yield the functions of a host, each PF followed by its VFs."""
    return tuple(
        function
        for device in devices
        for function in _with_virtual(
            _at_most(apply_templates(device, templates), most_virtual), templates
        )
    )


def merge_fields(base: Fields, over: Fields) -> dict[str, Any]:
    """Merge dicts recursively; other values are replaced."""
    result = dict(base)
    for key, value in over.items():
        is_nested = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        result[key] = merge_fields(base[key], value) if is_nested else value
    return result


def virtual_address(physical: str, distance: int) -> str:
    """Return the address at a distance in routing ids; the bus number may grow.

    >>> virtual_address('0000:22:1f.0', 8)
    '0000:23:00.0'
    """
    domain, bus, slot_and_function = physical.split(':')
    slot, number = slot_and_function.split('.')
    routing = (int(bus, 16) << 8 | int(slot, 16) << 3 | int(number)) + distance
    return f'{domain}:{routing >> 8:02x}:{routing >> 3 & 0x1F:02x}.{routing & 7}'


def apply_templates(fields: Fields, templates: Fields) -> dict[str, Any]:
    """Return the fields with the templates that ``like`` names."""
    if 'like' not in fields:
        return dict(fields)
    own = {key: value for key, value in fields.items() if key != 'like'}
    return merge_fields(apply_templates(templates[fields['like']], templates), own)


def _at_most(device: Fields, virtual: int) -> Fields:
    count = min(virtual, device.get('sriov', {}).get('num', 0))
    return (
        merge_fields(device, {'sriov': {'num': count}}) if 'sriov' in device else device
    )


def _with_virtual(device: Fields, templates: Fields) -> Iterator[Function]:
    device = {**_DEFAULTS, **device}
    sriov = device.get('sriov', {})
    addresses = tuple(
        virtual_address(device['pci'], sriov['offset'] + sriov['stride'] * index)
        for index in range(sriov.get('num', 0))
    )
    vendor, own, *subsystem = device['ids']
    ids = (vendor, own, subsystem[0], subsystem[1])
    yield Function(device['pci'], device['under'], device, ids, virtfns=addresses)
    for index, address in enumerate(addresses):
        fields = _virtual_fields(device, index, templates)
        ids = (vendor, sriov['vf_device'].zfill(4), subsystem[0], subsystem[1])
        yield Function(address, device['under'], fields, ids, physfn=device['pci'])


def _virtual_fields(device: Fields, index: int, templates: Fields) -> Fields:
    sriov = device['sriov']
    # Without a description a virtual function has no driver and the class of its card.
    fields = apply_templates(sriov.get('vf', {}), templates)
    own = {name: device[name] for name in _INHERITED if name in device}
    fields = {**own, **fields}
    base = fields.pop('iommu_group_base', None)
    fields['iommu_group'] = None if base is None else base + index
    return merge_fields(fields, sriov.get('vf_overrides', {}).get(index, {}))
