# SPDX-License-Identifier: Apache-2.0
"""Tests of vGPU types on virtual functions, with an emulated kernel."""

from unittest.mock import Mock

import pytest

from cyborg_lite.errors.drivers import DeviceBusy
from tests.hosts.vgpu_bench import MakeBench, VgpuBench, type_file

_L40S = '0000:82:00.0'
_OFF = '0000:c3:00.0'


@pytest.fixture
def l40s(make: MakeBench) -> VgpuBench:
    return make('l40s-vendor-vfio', f'{_L40S}=1155')


def test_release_foreign_type_is_kept(l40s: VgpuBench) -> None:
    handle = l40s.prepare(_L40S)
    l40s.driver.release(handle)
    l40s.kernel.write(l40s.host.root, type_file('0000:82:00.4'), '0')
    l40s.kernel.write(l40s.host.root, type_file('0000:82:00.5'), '1147')
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.5') == '1147'


def test_release_unknown_type_is_kept(l40s: VgpuBench) -> None:
    handle = l40s.prepare(_L40S)
    (l40s.host.root / type_file('0000:82:00.5')).write_text('2001\n')
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.5') == '2001'


@pytest.mark.parametrize('file', ['/dev/vfio/401', '/dev/vfio/devices/vfio0'])
def test_release_function_in_use_raises_busy(l40s: VgpuBench, file: str) -> None:
    handle = l40s.prepare(_L40S)
    link = l40s.kernel.open(file)
    with pytest.raises(DeviceBusy, match='open in process 4242'):
        l40s.driver.release(handle)
    link.unlink()
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.5') == '0'


def test_prepare_type_gone_from_list_raises_busy(l40s: VgpuBench) -> None:
    """Another program used the capacity after the last scan."""
    handle = l40s.handle(_L40S)
    l40s.kernel.write(l40s.host.root, type_file('0000:82:00.6'), '1155')
    changes = len(l40s.kernel.written)
    with pytest.raises(DeviceBusy, match='no room for L40S_24Q'):
        l40s.driver.prepare(handle)
    assert len(l40s.kernel.written) == changes


def test_discover_full_card_after_restart_is_unchanged(l40s: VgpuBench) -> None:
    """A full card lists no types, and a restarted agent has no cached types."""
    handle = l40s.prepare(_L40S)
    before = l40s.root(_L40S)
    l40s.restart(handle)
    assert l40s.root(_L40S) == before


def test_vfs_created_for_first_removed_after_last(make: MakeBench) -> None:
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


def test_release_foreign_vfs_are_kept(l40s: VgpuBench) -> None:
    handle = l40s.prepare(_L40S)
    l40s.kernel.write(l40s.host.root, type_file('0000:82:00.4'), '0')
    l40s.driver.release(handle)
    assert l40s.vgpu_type('0000:82:00.4') == '0'


def test_prepare_retries_tool_while_library_open(make: MakeBench) -> None:
    bench = make('l40s-vendor-vfio', f'{_OFF}=L40S-24Q')
    bench.kernel.library_open = 2
    bench.driver.prepare(bench.handle(_OFF))
    bench.restart()
    bench.kernel.disable(_OFF)
    bench.kernel.library_open = 3
    with pytest.raises(DeviceBusy, match='unbindLock'):
        bench.driver.prepare(bench.handle(_OFF))


@pytest.mark.parametrize(
    ('output', 'reason'),
    [('first\nlast line\n', 'sriov-manage -e failed: last line'), ('', 'no output')],
)
def test_prepare_other_failure_of_tool_is_not_retried(
    make: MakeBench, monkeypatch: pytest.MonkeyPatch, output: str, reason: str
) -> None:
    bench = make('l40s-vendor-vfio', f'{_OFF}=L40S-24Q')
    handle, run = bench.handle(_OFF), Mock(return_value=(2, output))
    monkeypatch.setattr(bench.kernel, 'run', run)
    with pytest.raises(DeviceBusy, match=reason):
        bench.driver.prepare(handle)
    run.assert_called_once()


def test_discover_type_number_without_vfs_is_withheld(make: MakeBench) -> None:
    bench = make('l40s-vendor-vfio', f'{_OFF}=1155')
    device = bench.device(_OFF)
    assert device.root.resource_class is None
    assert 'its virtual functions may be disabled' in device.health_reason
