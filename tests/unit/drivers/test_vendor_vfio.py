# SPDX-License-Identifier: Apache-2.0
"""Types of virtual functions set and taken away, on an emulated kernel."""

import pytest

from cyborg_lite.exceptions import DeviceBusy
from tests.unit.drivers.vgpu_bench import MakeBench, VgpuBench, type_file

_L40S = '0000:82:00.0'
_OFF = '0000:c3:00.0'


@pytest.fixture
def l40s(make: MakeBench) -> VgpuBench:
    return make('l40s-vendor-vfio', f'{_L40S}=1155')


# --- types of virtual functions ---------------------------------------------------


def test_a_type_is_set_on_the_function_of_the_handle(l40s: VgpuBench) -> None:
    handle = l40s.handle(_L40S)
    l40s.driver.prepare(handle)
    assert l40s.vgpu_type('0000:82:00.5') == '1155'
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.5') == '0'
    assert l40s.vgpu_type('0000:82:00.4') == '1155'


def test_a_function_that_somebody_else_set_is_left_to_him(l40s: VgpuBench) -> None:
    handle = l40s.handle(_L40S)
    l40s.driver.prepare(handle)
    l40s.driver.release(handle)
    l40s.kernel.write(l40s.host.root, type_file('0000:82:00.4'), '0')
    l40s.kernel.write(l40s.host.root, type_file('0000:82:00.5'), '1147')
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.5') == '1147'


def test_a_type_that_nobody_ever_listed_is_not_taken_for_ours(l40s: VgpuBench) -> None:
    handle = l40s.handle(_L40S)
    l40s.driver.prepare(handle)
    (l40s.host.root / type_file('0000:82:00.5')).write_text('2001\n')
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.5') == '2001'


def test_a_function_that_a_guest_has_keeps_its_type(l40s: VgpuBench) -> None:
    handle = l40s.handle(_L40S)
    l40s.driver.prepare(handle)
    link = l40s.kernel.open('/dev/vfio/401')
    with pytest.raises(DeviceBusy, match='open in process 4242'):
        l40s.driver.release(handle)
    link.unlink()
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.5') == '0'


def test_the_list_is_read_again_right_before_the_write(l40s: VgpuBench) -> None:
    """Another one took the room after the last look."""
    handle = l40s.handle(_L40S)
    l40s.kernel.write(l40s.host.root, type_file('0000:82:00.6'), '1155')
    changes = len(l40s.kernel.written)
    with pytest.raises(DeviceBusy, match='no room for L40S_24Q'):
        l40s.driver.prepare(handle)
    assert len(l40s.kernel.written) == changes


def test_a_full_card_is_named_by_what_was_made_of_it(l40s: VgpuBench) -> None:
    """All its lists are empty, and an agent that starts now has seen none before."""
    handle = l40s.handle(_L40S)
    l40s.driver.prepare(handle)
    before = l40s.root(_L40S)
    l40s.restart(handle)
    assert l40s.root(_L40S) == before


# --- virtual functions on demand --------------------------------------------------


def test_virtual_functions_come_with_the_first_and_go_with_the_last(
    make: MakeBench,
) -> None:
    bench = make('l40s-vendor-vfio', f'{_OFF}=L40S-24Q')
    before = bench.root(_OFF)
    assert before.total == 2
    first, second = bench.handle(_OFF, 0), bench.handle(_OFF, 1)
    bench.driver.prepare(first)
    bench.driver.prepare(second)
    assert bench.root(_OFF) == before
    bench.restart(first, second)
    bench.driver.release(first)
    assert bench.vgpu_type('0000:c3:00.5') == '1155'
    bench.driver.release(second)
    assert bench.vgpu_type('0000:c3:00.5') is None
    tool = [text for path, text in bench.kernel.written if path == 'sriov-manage']
    assert tool == [f'-e {_OFF}', f'-d {_OFF}']


def test_virtual_functions_that_others_made_stay(l40s: VgpuBench) -> None:
    handle = l40s.handle(_L40S)
    l40s.driver.prepare(handle)
    l40s.kernel.write(l40s.host.root, type_file('0000:82:00.4'), '0')
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.4') == '0'


def test_the_tool_is_tried_again_while_the_library_is_open(make: MakeBench) -> None:
    bench = make('l40s-vendor-vfio', f'{_OFF}=L40S-24Q')
    bench.kernel.library_open = 2
    bench.driver.prepare(bench.handle(_OFF))
    bench.restart()
    bench.kernel.disable(_OFF)
    bench.kernel.library_open = 3
    with pytest.raises(DeviceBusy, match='unbindLock'):
        bench.driver.prepare(bench.handle(_OFF))


def test_a_number_means_nothing_before_the_functions_are_there(make: MakeBench) -> None:
    bench = make('l40s-vendor-vfio', f'{_OFF}=1155')
    device = bench.device(_OFF)
    assert device.root.resource_class is None
    assert 'its virtual functions may be off' in device.health_reason
