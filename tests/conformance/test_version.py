# SPDX-License-Identifier: Apache-2.0
"""The version of the package: from tags, without tags, and in a source package."""

import importlib.util
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.sources import ROOT

Git = Callable[..., None]

_AUTHOR = {
    f'GIT_{role}_{field}': 'test@localhost'
    for role in ('AUTHOR', 'COMMITTER')
    for field in ('NAME', 'EMAIL')
}


def read_version(root: Path) -> str:
    spec = importlib.util.spec_from_file_location(
        'cyborg_lite_setup', ROOT / 'setup.py'
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.read_version(root))


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Return a function that runs git in a repository with one commit."""

    def run(*arguments: str) -> None:
        subprocess.run(
            ['git', '-C', str(tmp_path), *arguments],
            env={**os.environ, **_AUTHOR},
            check=True,
            capture_output=True,
        )

    run('init')
    run('commit', '--allow-empty', '-m', 'first')
    return run


def test_version_tagged_commit_is_tag(git: Git, tmp_path: Path) -> None:
    git('tag', 'v1.4.2')
    assert read_version(tmp_path) == '1.4.2'


def test_version_after_tag_is_next_development_version(
    git: Git, tmp_path: Path
) -> None:
    git('tag', 'v1.4.2')
    git('tag', 'unrelated')
    git('commit', '--allow-empty', '-m', 'second')
    git('commit', '--allow-empty', '-m', 'third')
    assert read_version(tmp_path) == '1.4.3.dev2'


def test_version_without_tags_counts_commits(git: Git, tmp_path: Path) -> None:
    git('commit', '--allow-empty', '-m', 'second')
    assert read_version(tmp_path).endswith('.dev2')
    # The folder belongs to a repository, but is not its top.
    (tmp_path / 'folder').mkdir()
    assert read_version(tmp_path / 'folder').endswith('.dev0')


def test_version_source_package_has_file(git: Git, tmp_path: Path) -> None:
    (tmp_path / 'PKG-INFO').write_text('Metadata-Version: 2.1\nVersion: 3.1.4\n')
    assert read_version(tmp_path) == '3.1.4'
