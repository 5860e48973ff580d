# SPDX-License-Identifier: Apache-2.0
"""What was written is read again, whole; what is damaged is set aside."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.agent.state_file import StateFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / 'deep' / 'state.json'


def read(path: Path, version: int = 1) -> Any:
    """Any: as it was written."""
    return StateFile(path, version).read(lambda content: content)


def test_what_was_written_is_read_by_the_next_process(path: Path) -> None:
    assert read(path) is None
    assert StateFile(path, 1).write({'a': [1, 2]})
    assert read(path) == {'a': [1, 2]}


def test_only_we_may_read_and_write_it(path: Path) -> None:
    StateFile(path, 1).write([])
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_write_that_dies_half_way_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = StateFile(path, 1)
    file.write('before')

    def full(_number: int) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', full)
    assert not file.write('after')
    assert read(path) == 'before'


def test_content_and_name_are_on_the_disk_when_it_returns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In that order: a name that leads to nothing would be a damaged file."""
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def watched_sync(number: int) -> None:
        steps.append(
            'directory' if os.path.isdir(f'/proc/self/fd/{number}') else 'file'
        )
        sync(number)

    def watched_replace(old: Path, new: Path) -> None:
        steps.append('rename')
        replace(old, new)

    monkeypatch.setattr(os, 'fsync', watched_sync)
    monkeypatch.setattr(os, 'replace', watched_replace)
    StateFile(path, 1).write('x')
    assert steps == ['file', 'rename', 'directory']


@pytest.mark.parametrize(
    'text',
    [
        '',
        '{',
        'null',
        '[]',
        '{"v": 1}',
        '{"v": 2, "content": 1}',
        '\0',
        '{"v": 1, "co',
        '[' * 100_000,
    ],
    ids=lambda text: text[:10],
)
def test_a_damaged_file_is_set_aside_with_a_warning(
    path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert read(path) is None
    (aside,) = path.parent.iterdir()
    assert aside.name.startswith('state.json.damaged-')
    assert aside.read_text() == text
    assert [record.levelname for record in caplog.records] == ['WARNING']
    assert StateFile(path, 1).write('new')
    assert read(path) == 'new'


def test_content_that_is_not_understood_is_damaged(path: Path) -> None:
    StateFile(path, 1).write({'uuid': 1})
    assert StateFile(path, 1).read(lambda said: said['other']) is None
    assert not path.exists()


def test_every_cut_of_a_file_is_read_as_nothing_or_as_all(path: Path) -> None:
    StateFile(path, 1).write({'handles': ['a', 'b']})
    whole = path.read_text()
    for length in range(len(whole)):
        path.write_text(whole[:length])
        assert read(path) is None
    path.write_text(whole)
    assert read(path) == {'handles': ['a', 'b']}


def test_a_link_that_somebody_laid_is_not_followed(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / 'victim'
    victim.write_text('precious')
    path.parent.mkdir()
    path.with_name('state.json.part').symlink_to(victim)
    assert not StateFile(path, 1).write('x')
    assert victim.read_text() == 'precious'


def test_a_directory_that_cannot_be_made_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    obstacle = tmp_path / 'obstacle'
    obstacle.write_text('')
    file = StateFile(obstacle / 'state.json', 1)
    assert [file.write('x') for _ in range(3)] == [False] * 3
    obstacle.unlink()
    assert file.write('x')
    assert [record.levelname for record in caplog.records] == ['ERROR', 'INFO']


def test_what_is_written_is_json(path: Path) -> None:
    StateFile(path, 3).write('x')
    assert json.loads(path.read_text()) == {'v': 3, 'content': 'x'}
