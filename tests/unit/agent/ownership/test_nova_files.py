# SPDX-License-Identifier: Apache-2.0
"""The configuration files of Nova at their usual paths."""

from pathlib import Path

import pytest

from cyborg_lite.agent.ownership.nova_files import NovaFiles

SPEC = '[pci]\ndevice_spec = {"vendor_id": "10de"}\n'
WARNING = 'Cannot read a configuration file of Nova'


def test_optional_missing_files_are_silent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = [str(tmp_path / 'nova.conf'), str(tmp_path / 'nova.conf.d')]
    files = NovaFiles(names, names)
    assert files.load().claims == ()
    assert not files.is_known
    assert caplog.text == ''
    (tmp_path / 'nova.conf').write_text(SPEC)
    (tmp_path / 'nova.conf.d').mkdir()
    (tmp_path / 'nova.conf.d/a.conf').write_text(SPEC)
    assert len(files.load().claims) == 2
    assert files.is_known


def test_required_missing_file_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = NovaFiles([str(tmp_path / 'absent.conf')])
    for _ in range(2):
        assert files.load().claims == ()
    assert not files.is_known
    assert caplog.text.count(WARNING) == 1


def test_optional_unreadable_file_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / 'nova.conf'
    path.symlink_to(path)  # not even root can read it
    files = NovaFiles([str(path)], [str(path)])
    assert files.load().claims == ()
    assert not files.is_known
    assert WARNING in caplog.text
