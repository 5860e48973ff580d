# SPDX-License-Identifier: Apache-2.0
"""Who has a file open is told by what each process has."""

from pathlib import Path

from cyborg_lite.drivers.open_files import processes_with
from tests.fakes.kernel import FakeKernel


def test_processes_are_found_by_what_they_have_open(tmp_path: Path) -> None:
    kernel = FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=1)
    kernel.open('/dev/vfio/400', process=7)
    kernel.open('/dev/vfio/40', process=8)
    (tmp_path / 'proc/9').mkdir()
    assert processes_with(str(tmp_path), ['/dev/vfio/400']) == [7]
    assert processes_with(str(tmp_path), []) == []
    assert processes_with(str(tmp_path / 'nowhere'), ['/dev/vfio/400']) == []
