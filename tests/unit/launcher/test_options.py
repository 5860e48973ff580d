# SPDX-License-Identifier: Apache-2.0
"""The command line of the launcher is understood, or refused with the reason."""

from pathlib import Path

import pytest

from devstack.launcher.configuration import is_free
from devstack.launcher.options import parse


def test_nothing_said_is_a_fresh_run_of_the_sample_host_on_the_known_ports() -> None:
    options = parse([])
    assert (options.port, options.placement_port) == (6666, 8778)
    assert options.sysfs_root is None
    asked = (options.demo, options.background, options.stop, options.keep)
    assert not any(asked)


def test_an_earlier_run_is_gone_on_with_when_that_is_asked_for() -> None:
    assert parse(['--continue']).keep
    assert not parse(['--fresh']).keep


def test_a_port_of_0_is_any_that_is_free() -> None:
    options = parse(['--port', '0', '--placement-port', '0'])
    assert is_free(options.port)
    assert options.port != options.placement_port


def test_a_tree_is_one_that_has_devices(tmp_path: Path) -> None:
    (tmp_path / 'sys').mkdir()
    assert parse(['--sysfs-root', str(tmp_path)]).sysfs_root == tmp_path


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (['--port', '65536'], '65536 is not a port'),
        (['--port', '-1'], '-1 is not a port'),
        (['--port', 'http'], 'http'),
        (['--sysfs-root', '/nowhere'], 'there is no sys directory in /nowhere'),
        (['--fresh', '--continue'], 'not allowed with'),
        (['--demonstrate'], 'unrecognized arguments'),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(arguments)
    assert end.value.code == 2
    assert reason in capsys.readouterr().err
