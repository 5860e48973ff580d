# SPDX-License-Identifier: Apache-2.0
"""Tests of layouts of GPU instances (MIG)."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.nvidia.mig import format_layout, list_layouts, parse_layout
from cyborg_lite.drivers.nvidia.models import PROFILES
from cyborg_lite.errors.drivers import DeviceBusy
from cyborg_lite.testing.preparation_checks import build_handle
from tests.hosts.kernel import FakeKernel
from tests.hosts.scans import find_device

_CARD = '0000:c1:00.0'
_A100, _A30 = PROFILES['20f1'], PROFILES['20b7']


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('a100-sriov-mig', tmp_path)


def _driver(kernel: FakeKernel) -> NvidiaGpu:
    options = {option.dest: option.default for option in NvidiaGpu.OPTIONS}
    options |= {
        'vgpu_types': [f'{_CARD}=nvidia-474+nvidia-476'],
        'modes': ['10de:20f1 = 2x1g.5gb+3g.20gb'],
    }
    return NvidiaGpu(Host('compute-1', kernel.root, kernel), options)


def _current(driver: NvidiaGpu) -> list[str]:
    modes = driver.modes(find_device(driver, _CARD))
    return [mode.name for mode in modes if mode.is_current]


@pytest.mark.parametrize(
    ('text', 'name'),
    [
        ('1g.5gb+1g.5gb+3g.20gb', '3g.20gb+2x1g.5gb'),
        ('3g.20gb+4g.20gb', '4g.20gb+3g.20gb'),
        ('7x1g.5gb', '7x1g.5gb'),
        ('2x4g.20gb', ''),  # eight slices of seven
        ('3g.20gb+3x2g.10gb', ''),
        ('1g.6gb', ''),  # of another card
        ('7g.40gb+', ''),
        ('1g.5gb+me+2x1g.5gb', '1g.5gb+me+2x1g.5gb'),
        ('2x1g.5gb+me', ''),  # one instance has the media engines
    ],
)
def test_layout_is_parsed_if_it_fits(text: str, name: str) -> None:
    assert format_layout(parse_layout(_A100, text)) == name


def test_layout_of_rtx_pro_has_graphics() -> None:
    layout = parse_layout(PROFILES['2bb5'], '2x1g.24gb+gfx+2g.48gb-me')
    assert format_layout(layout) == '2g.48gb-me+2x1g.24gb+gfx'


def test_list_layouts_has_equal_instances() -> None:
    assert list_layouts(_A30, ['nonsense', '2g.12gb+2x1g.6gb']) == [
        '2g.12gb+2x1g.6gb',
        '4g.24gb',
        '2x2g.12gb',
        '4x1g.6gb',
    ]


def test_declared_layout_has_one_spelling(kernel: FakeKernel) -> None:
    driver = _driver(kernel)
    declared = driver.declared_mode(find_device(driver, _CARD))
    assert [declared] == _current(driver) == ['3g.20gb+2x1g.5gb']


def test_set_mode_with_vgpu_is_busy(kernel: FakeKernel) -> None:
    driver = _driver(kernel)
    device = find_device(driver, _CARD)
    (part, *_) = device.root.children
    driver.prepare(build_handle(device, part, part.handles[0]))
    with pytest.raises(DeviceBusy, match='it has vGPUs'):
        driver.set_mode(device, '7x1g.5gb')


def test_modes_whole_card_has_none(kernel: FakeKernel) -> None:
    options = {option.dest: option.default for option in NvidiaGpu.OPTIONS}
    driver = NvidiaGpu(Host('compute-1', kernel.root, kernel), options)
    assert driver.modes(find_device(_driver(kernel), _CARD)) == ()
