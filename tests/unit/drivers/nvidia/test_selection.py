# SPDX-License-Identifier: Apache-2.0
"""Tests of the selection of vGPU types and of the deployables for them."""

from dataclasses import replace
from typing import Final

import pytest

from cyborg_lite.drivers.nvidia.layout import Vgpu, VgpuLayout, VgpuMode, VgpuType
from cyborg_lite.drivers.nvidia.selection import (
    VgpuCard,
    VgpuSelection,
    build_deployable,
    select_types,
)
from cyborg_lite.drivers.pci.functions import handle_info
from cyborg_lite.drivers.prepared_handles import PreparedHandles
from tests.doubles.drivers import handle

_FUNCTIONS: Final = tuple(f'0000:41:00.{number}' for number in range(4, 8))
# Time-sliced types, of which a card runs one at a time, and types of GPU instances.
_SMALL, _LARGE = VgpuType('1', 'NVIDIA X-6Q', 1), VgpuType('2', 'NVIDIA X-12Q', 1)
_SEVENTH = VgpuType('11', 'NVIDIA X-1-5C', 1, max_per_card=2)
_HALF = VgpuType('12', 'NVIDIA X-3-20C', 1, max_per_card=2)
_TYPES: Final = (_SMALL, _LARGE, _SEVENTH, _HALF)


def _layout(*existing: Vgpu, mode: VgpuMode = VgpuMode.VENDOR_VFIO) -> VgpuLayout:
    return VgpuLayout(mode, _FUNCTIONS, _TYPES, existing)


def _prepare_handles(*vgpus: Vgpu) -> PreparedHandles:
    prepared = PreparedHandles()
    prepared.add(
        replace(handle(), uuid=vgpu.address, info=handle_info(vgpu.address))
        for vgpu in vgpus
    )
    return prepared


def _select(
    layout: VgpuLayout, *configured: str, own: tuple[Vgpu, ...] = ()
) -> VgpuSelection:
    return select_types(layout, configured, _prepare_handles(*own))


def _vgpu(number: int, vgpu_type: VgpuType) -> Vgpu:
    return Vgpu(_FUNCTIONS[number], vgpu_type.id)


@pytest.mark.parametrize(
    ('configured', 'reason'),
    [
        (('X-7Q',), 'the card has no vGPU type X-7Q; it has: 1 (NVIDIA X-6Q), 2'),
        (('X-6Q', 'X-12Q'), 'only one of X_6Q and X_12Q at a time'),
        (('X-6Q', 'X-1-5C'), 'only one of X_6Q and X_1_5C at a time'),
        ((), 'divided into vGPUs: 0 of 4 virtual functions in use'),
    ],
)
def test_select_invalid_configuration_offers_nothing(
    configured: tuple[str, ...], reason: str
) -> None:
    selection = _select(_layout(), *configured)
    assert selection.types == ()
    assert reason in selection.reason


@pytest.mark.parametrize('configured', [(), ('X-12Q',), ('X-7Q',)])
def test_select_own_vgpu_keeps_its_type(configured: tuple[str, ...]) -> None:
    own = _vgpu(0, _SMALL)
    selection = _select(_layout(own), *configured, own=(own,))
    assert selection.types == (_SMALL,)
    assert selection.foreign == ()
    assert selection.reason


def test_select_gpu_instances_add_configured_type() -> None:
    own = _vgpu(0, _HALF)
    selection = _select(_layout(own), 'X-1-5C', own=(own,))
    assert selection.types == (_SEVENTH, _HALF)
    assert 'The change to X_1_5C is refused' in selection.reason


@pytest.mark.parametrize(
    ('foreign', 'configured'), [(_SMALL, 'X-6Q'), (_HALF, 'X-1-5C')]
)
def test_select_compatible_foreign_vgpu_blocks_nothing(
    foreign: VgpuType, configured: str
) -> None:
    selection = _select(_layout(_vgpu(0, foreign)), configured)
    assert not selection.is_blocked
    assert selection.reason == f'vGPUs of another program: {_FUNCTIONS[0]}'


@pytest.mark.parametrize(
    ('vgpu_type', 'cause'),
    [(_SMALL, 'check MIG mode'), (_HALF, 'GPU instances (MIG) for it do not exist')],
)
def test_select_type_not_creatable_offers_nothing(
    vgpu_type: VgpuType, cause: str
) -> None:
    layout = replace(_layout(), types=(replace(vgpu_type, available=0),))
    selection = _select(layout, vgpu_type.id)
    assert selection.types == ()
    assert cause in selection.reason


def test_select_full_card_infers_type_from_name() -> None:
    """A full card lists no types. With mdevs it lists them all."""
    full = replace(_layout(_vgpu(0, _SMALL)), types=())
    (inferred,) = _select(full, 'X-6Q').types
    assert (inferred.label, inferred.memory) == ('X_6Q', 6 << 10)
    assert _select(full, 'X').types == ()
    assert _select(replace(full, existing=()), 'X-6Q').types == ()
    mode = VgpuMode.MDEV_OF_VIRTUAL
    assert _select(replace(full, mode=mode), 'X-6Q').types == ()


def _card(
    selection: VgpuSelection, layout: VgpuLayout | None = None, total: int = 2
) -> VgpuCard:
    totals = dict.fromkeys((item.label for item in _TYPES), total)
    layout = layout or _layout()
    return VgpuCard('host_card', '0000:41:00.0', '20f1', layout, selection, totals)


def test_vgpu_type_of_gpu_instances_has_mig_profile() -> None:
    vgpu_type = VgpuType('474', 'GRID A100-1-5C', 7)
    typed = {item.name: item.value for item in vgpu_type.typed_attributes}
    assert typed == {
        'memory_mib': '5120',
        'mig_profile': '1g.5gb',
        'vgpu_type': 'A100_1_5C',
    }
    sliced = VgpuType('223', 'GRID T4-2Q', 8).typed_attributes
    assert [item.name for item in sliced] == ['vgpu_type', 'memory_mib']


def test_deployable_addresses_ignore_configuration() -> None:
    """A type that is not configured keeps its range of virtual functions."""
    (child,) = build_deployable(_card(VgpuSelection((_HALF,)))).children
    addresses = [handle.key[:12] for handle in child.handles]
    assert addresses == list(_FUNCTIONS[2:])


def test_deployable_foreign_vgpu_takes_handle_or_capacity() -> None:
    """A foreign vGPU blocks the handle at its address; elsewhere one of any handles."""
    near, far = _vgpu(1, _SMALL), _vgpu(3, _SMALL)
    selection = VgpuSelection((_SMALL,), foreign=(near, far))
    root = build_deployable(_card(selection, _layout(near, far)))
    assert [handle.in_use for handle in root.handles] == [False, True]
    assert (root.reserved, root.unavailable) == (1, 2)
