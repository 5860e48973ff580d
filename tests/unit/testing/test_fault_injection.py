# SPDX-License-Identifier: Apache-2.0
"""Tests of hosts and kernels with injected faults."""

from pathlib import Path

import pytest

from cyborg_lite.testing.fault_injection import (
    FaultKind,
    FaultyHost,
    FaultyKernel,
    FileFault,
    ProcessCrash,
    RecordingHost,
)
from tests.doubles.file_driver import FileKernel


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / 'sys').mkdir()
    (tmp_path / 'sys/vendor').write_text('0x10de\n')
    (tmp_path / 'sys/device').write_text('0x1eb8\n')
    return tmp_path


def test_recording_host_lists_each_path_once_in_order(root: Path) -> None:
    host = RecordingHost('h', root)
    for _ in range(2):
        assert host.names('sys') == ('device', 'vendor')
        assert host.text('sys/vendor') == '0x10de'
        assert not host.has('sys/missing')
    assert host.paths == ['sys', 'sys/vendor', 'sys/missing']


@pytest.mark.parametrize(
    ('fault', 'exists'), [(FileFault.MISSING, False), (FileFault.UNREADABLE, True)]
)
def test_faulty_host_returns_no_content(
    root: Path, fault: FileFault, exists: bool
) -> None:
    host = FaultyHost('h', root, path='sys/vendor', fault=fault)
    assert host.raw('sys/vendor') is None
    assert host.has('sys/vendor') is exists
    assert host.text('sys/device') == '0x1eb8'


def test_faulty_host_garbles_content_within_size(root: Path) -> None:
    host = FaultyHost('h', root, path='sys/vendor', fault=FileFault.GARBLED)
    content = host.raw('sys/vendor', 4)
    assert content is not None
    assert len(content) == 4
    with pytest.raises(UnicodeDecodeError):
        content.decode()


def test_faulty_host_directory_is_empty_or_garbled(root: Path) -> None:
    missing = FaultyHost('h', root, path='sys', fault=FileFault.MISSING)
    assert missing.names('sys') == ()
    garbled = FaultyHost('h', root, path='sys', fault=FileFault.GARBLED)
    assert '..' in garbled.names('sys')


def write_three_files(kernel: FaultyKernel, root: Path) -> list[str]:
    """Write the files 0 to 2 until a fault; return the names of existing files."""
    try:
        for number in range(3):
            kernel.write(root, f'{number}', 'x')
    except (OSError, ProcessCrash):
        pass
    return sorted(path.name for path in root.iterdir())


@pytest.mark.parametrize(
    ('fault', 'names'),
    [
        (FaultKind.NONE, ['0', '1', '2']),
        (FaultKind.REFUSAL, ['0']),
        (FaultKind.CRASH_BEFORE, ['0']),
        (FaultKind.CRASH_AFTER, ['0', '1']),
    ],
)
def test_faulty_kernel_injects_fault_into_selected_change(
    tmp_path: Path, fault: FaultKind, names: list[str]
) -> None:
    kernel = FaultyKernel(FileKernel(), fault, at=1)
    assert write_three_files(kernel, tmp_path) == names


def test_faulty_kernel_after_fault_accepts_changes(tmp_path: Path) -> None:
    kernel = FaultyKernel(FileKernel(), FaultKind.REFUSAL)
    with pytest.raises(OSError, match='Input/output error'):
        kernel.write(tmp_path, 'a', 'x')
    kernel.write(tmp_path, 'a', 'x')
    assert (tmp_path / 'a').read_text() == 'x'
    assert kernel.changes == 2
