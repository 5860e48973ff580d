# SPDX-License-Identifier: Apache-2.0
"""The headers of bitstreams are read, and files that are cut or forged refused."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cyborg_lite.drivers import bitstream_files
from cyborg_lite.drivers.bitstream_files import Header, NoBitstream
from tests.fakes.bitstream_files import ARRIA10_REGION, OTHER_FUNCTION, gbs, xclbin

_MAGIC = b'XeonFPGA\xb7GBSv001'
_SAME_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def _gbs_of(text: bytes, length: int | None = None) -> bytes:
    return _MAGIC + struct.pack('<I', len(text) if length is None else length) + text


def test_a_gbs_tells_its_interface_and_its_function(tmp_path: Path) -> None:
    path = tmp_path / 'file'
    path.write_bytes(gbs())
    assert bitstream_files.gbs(path) == Header(ARRIA10_REGION, OTHER_FUNCTION, 'DCP')


def test_an_xclbin_tells_its_interface_and_its_function(tmp_path: Path) -> None:
    path = tmp_path / 'file'
    path.write_bytes(xclbin('ab' * 16, 'cd' * 16, 'xilinx_u250'))
    assert bitstream_files.xclbin(path) == Header('ab' * 16, 'cd' * 16, 'xilinx_u250')


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
        gbs()[:-32],  # nothing behind the metadata
    ],
)
def test_what_is_no_gbs_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / 'file'
    path.write_bytes(content)
    with pytest.raises(NoBitstream):
        bitstream_files.gbs(path)


@pytest.mark.parametrize(
    'content',
    [b'', b'xclbin2\0', b'xclbin0\0' + bytes(600), xclbin('', 'ab' * 16)[:-1]],
)
def test_what_is_no_xclbin_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / 'file'
    path.write_bytes(content)
    with pytest.raises(NoBitstream):
        bitstream_files.xclbin(path)


@pytest.mark.parametrize('read', [bitstream_files.gbs, bitstream_files.xclbin])
@_SAME_FILE
@given(where=some.integers(0, 500), noise=some.binary(min_size=1, max_size=64))
def test_whatever_is_in_a_file_it_is_read_or_refused(
    read: Callable[[Path], Header], where: int, noise: bytes, tmp_path: Path
) -> None:
    content = bytearray(gbs() if read is bitstream_files.gbs else xclbin('', 'ab' * 16))
    content[where : where + len(noise)] = noise
    path = tmp_path / 'file'
    path.write_bytes(bytes(content))
    try:
        header = read(path)
    except NoBitstream:
        return
    assert isinstance(header.function_id, str)
