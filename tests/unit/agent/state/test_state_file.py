# SPDX-License-Identifier: Apache-2.0
"""Tests of state files: complete writes, and damaged files that are moved aside."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.agent.state.state_file import StateFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / 'nested' / 'state.json'


# Any: any JSON value.
def open_file(path: Path) -> StateFile[Any]:
    return StateFile(path, object)


def read_content(path: Path) -> Any:
    return open_file(path).read()


def test_write_is_read_by_next_process(path: Path) -> None:
    assert read_content(path) is None
    assert open_file(path).write({'a': [1, 2]})
    assert read_content(path) == {'a': [1, 2]}


def test_write_sets_private_permissions(path: Path) -> None:
    open_file(path).write([])
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_write_syncs_file_before_rename_and_directory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name without content would be a damaged file."""
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def record_sync(number: int) -> None:
        steps.append(
            'directory' if os.path.isdir(f'/proc/self/fd/{number}') else 'file'
        )
        sync(number)

    def record_replace(old: Path, new: Path) -> None:
        steps.append('rename')
        replace(old, new)

    monkeypatch.setattr(os, 'fsync', record_sync)
    monkeypatch.setattr(os, 'replace', record_replace)
    open_file(path).write('x')
    assert steps == ['file', 'rename', 'directory']


@pytest.mark.parametrize(
    'text',
    [
        '',
        '{',
        'null',
        '[]',
        '{"v": 2, "content": 1}',
        '\0',
        '{"v": 1, "co',
        '[' * 100_000,
    ],
    ids=lambda text: text[:10],
)
def test_read_damaged_file_moves_it_aside(
    path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert read_content(path) is None
    (damaged_file,) = path.parent.iterdir()
    assert damaged_file.name.startswith('state.json.damaged-')
    assert damaged_file.read_text() == text
    assert [record.levelname for record in caplog.records] == ['WARNING']
    assert open_file(path).write('new')
    assert read_content(path) == 'new'


def test_read_invalid_content_moves_file_aside(path: Path) -> None:
    open_file(path).write({'uuid': 1})
    assert StateFile(path, dict[str, str]).read() is None
    assert not path.exists()


def test_read_truncated_file_returns_none(path: Path) -> None:
    open_file(path).write({'handles': ['a', 'b']})
    text = path.read_text()
    for length in range(len(text)):
        path.write_text(text[:length])
        assert read_content(path) is None
    path.write_text(text)
    assert read_content(path) == {'handles': ['a', 'b']}


def test_write_does_not_follow_symlink(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / 'victim'
    victim.write_text('precious')
    path.parent.mkdir()
    path.with_name('state.json.part').symlink_to(victim)
    assert not open_file(path).write('x')
    assert victim.read_text() == 'precious'


def test_write_refuses_text_that_is_not_unicode(path: Path) -> None:
    file = open_file(path)
    file.write('before')
    assert not file.write('\udcff')
    assert read_content(path) == 'before'


def test_write_failure_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    obstacle = tmp_path / 'obstacle'
    obstacle.write_text('')
    file = open_file(obstacle / 'state.json')
    assert [file.write('x') for _ in range(3)] == [False] * 3
    obstacle.unlink()
    assert file.write('x')
    assert [record.levelname for record in caplog.records] == ['ERROR', 'INFO']


def test_write_stores_versioned_json(path: Path) -> None:
    open_file(path).write('x')
    assert json.loads(path.read_text()) == {'v': 1, 'content': 'x'}
