# SPDX-License-Identifier: Apache-2.0
"""Tests of the text about an attach handle on the sample host."""

from pathlib import Path
from typing import Any

import pytest

from devstack.launcher import host_files, paths

_INFO = {'domain': '0000', 'bus': '0a', 'device': '00', 'function': '0'}


# Any: the fields of an ARQ have various types.
def arq(handle_type: str, uuid: str | None = 'u') -> dict[str, Any]:
    return {
        'attach_handle_type': handle_type,
        'attach_handle_uuid': uuid,
        'attach_handle_info': _INFO,
    }


@pytest.fixture
def host(top: Path) -> Path:
    paths.SAMPLE_HOST.mkdir(parents=True)
    return paths.SAMPLE_HOST


def test_describe_mdev(host: Path) -> None:
    assert host_files.describe(arq('MDEV')) == 'no mdev'
    mdev = host / 'sys/bus/mdev/devices/u'
    (mdev / 'nvidia-1').mkdir(parents=True)
    (mdev / 'mdev_type').symlink_to('nvidia-1')
    assert host_files.describe(arq('MDEV')) == 'mdev of type nvidia-1'


def test_describe_function(host: Path) -> None:
    assert host_files.describe(arq('PCI')) == 'no function 0000:0a:00.0'
    function = host / 'sys/bus/pci/devices/0000:0a:00.0'
    (function / 'nvidia').mkdir(parents=True)
    (function / 'nvidia/current_vgpu_type').write_text('1155\n')
    expected = 'function 0000:0a:00.0, vGPU of type 1155'
    assert host_files.describe(arq('PCI')) == expected


def test_describe_without_handle(host: Path) -> None:
    assert host_files.describe(arq('PCI', None)) == 'nothing'
    assert host_files.describe(arq('TEST_PCI')) == 'nothing'


def test_read_boot_id_without_host_is_empty(top: Path) -> None:
    assert host_files.read_boot_id() == ''
    assert host_files.describe(arq('PCI')) == 'nothing'
