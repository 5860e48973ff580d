# SPDX-License-Identifier: Apache-2.0
"""Tests of the command line of the launcher."""

from pathlib import Path

import pytest

from devstack.launcher.configuration import is_free
from devstack.launcher.options import parse


def test_parse_port_0_selects_free_port() -> None:
    options = parse(['--port', '0', '--placement-port', '0'])
    assert is_free(options.port)
    assert options.port != options.placement_port


def test_parse_sysfs_root_accepts_directory(tmp_path: Path) -> None:
    (tmp_path / 'sys').mkdir()
    assert parse(['--sysfs-root', str(tmp_path)]).sysfs_root == tmp_path


def test_parse_sample_host_accepts_yaml_file(tmp_path: Path) -> None:
    file = tmp_path / 'mine.yaml'
    file.touch()
    assert parse(['--sample-host', str(file)]).sample_host == str(file)


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (['--port', '65536'], '65536 is not a port'),
        (['--port', '-1'], '-1 is not a port'),
        (['--port', 'http'], 'http'),
        (['--sysfs-root', '/nowhere'], '/nowhere has no subdirectory sys'),
        (['--fresh', '--continue'], 'not allowed with'),
        (['--sample-host', 't4'], 't4 is neither a sample host nor a YAML file'),
        (['--sample-host', 't4-mdev', '--sysfs-root', '/'], 'not allowed with'),
        (['--demonstrate'], 'unrecognized arguments'),
        (['--port', '70', '--placement-port', '70'], 'are the same'),
    ],
)
def test_parse_invalid_argument_exits_with_2(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(arguments)
    assert end.value.code == 2
    assert reason in capsys.readouterr().err
