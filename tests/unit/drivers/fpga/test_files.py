# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the headers of bitstream files."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cyborg_lite.drivers.fpga import files
from cyborg_lite.drivers.fpga.files import BitstreamHeader, InvalidBitstreamFile
from tests.builders.bitstream_files import gbs, xclbin

_MAGIC = b'XeonFPGA\xb7GBSv001'
_SAME_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def _gbs_of(text: bytes, length: int | None = None) -> bytes:
    return _MAGIC + struct.pack('<I', len(text) if length is None else length) + text


@pytest.mark.parametrize(
    'content',
    [
        b'',
        _MAGIC,
        _gbs_of(b'{}', 0) + b'bits',
        _gbs_of(b'{}', 4096) + b'bits',
        _gbs_of(b'{}', 2**32 - 1) + b'bits',
        _gbs_of(b'{}') + b'bits',
        _gbs_of(b'[]') + b'bits',
        _gbs_of(b'[' * 4000) + b'bits',
        _gbs_of(b'{"afu-image": 5}') + b'bits',
        _gbs_of(b'\xff\xfe') + b'bits',
        gbs()[:-32],  # nothing after the metadata
    ],
)
def test_read_gbs_invalid_file_raises(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / 'file'
    path.write_bytes(content)
    with pytest.raises(InvalidBitstreamFile):
        files.read_gbs(path)


@pytest.mark.parametrize(
    'content',
    [b'', b'xclbin2\0', b'xclbin0\0' + bytes(600), xclbin('', 'ab' * 16)[:-1]],
)
def test_read_xclbin_invalid_file_raises(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / 'file'
    path.write_bytes(content)
    with pytest.raises(InvalidBitstreamFile):
        files.read_xclbin(path)


@pytest.mark.parametrize('read', [files.read_gbs, files.read_xclbin])
@_SAME_FILE
@given(offset=some.integers(0, 500), noise=some.binary(min_size=1, max_size=64))
def test_read_random_file_returns_header_or_raises(
    read: Callable[[Path], BitstreamHeader], offset: int, noise: bytes, tmp_path: Path
) -> None:
    content = bytearray(gbs() if read is files.read_gbs else xclbin('', 'ab' * 16))
    content[offset : offset + len(noise)] = noise
    path = tmp_path / 'file'
    path.write_bytes(bytes(content))
    try:
        header = read(path)
    except InvalidBitstreamFile:
        return
    assert isinstance(header.function_id, str)
