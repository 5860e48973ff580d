# SPDX-License-Identifier: Apache-2.0
"""Tests of the file of hardware sets."""

from pathlib import Path

import pytest

from cyborg_lite.cmd.daemons.conductor import read_hardware_sets
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.devices.reconfiguration import HardwareSets

_SET = 'setup: s.yml, teardown: t.yml, devices: {host: [c1]}'


def write(directory: Path, text: str) -> str:
    (directory / 'hosts.yml').touch()
    path = directory / 'sets.yaml'
    path.write_text(
        text.replace('HERE', str(directory)).replace('SET', _SET), encoding='utf-8'
    )
    return str(path)


def test_read_returns_sets(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'directory: HERE\ninventory: hosts.yml\nsets:\n'
        f'  gpu: {{{_SET}, scope: device, settings: {{count: {{type: integer}}}}}}\n',
    )
    sets = read_hardware_sets(path)
    assert (sets.directory, sets.inventory) == (str(tmp_path), 'hosts.yml')
    [hardware_set] = sets.sets
    assert (hardware_set.name, hardware_set.is_per_device) == ('gpu', True)
    assert (hardware_set.setup, hardware_set.timeout) == ('s.yml', 1800)
    assert hardware_set.settings == {'count': {'type': 'integer'}}


def test_read_without_path_returns_no_sets() -> None:
    assert read_hardware_sets('') == HardwareSets()


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('{', 'is no YAML'),
        ('[]', 'not of type'),
        ('directory: relative\ninventory: x\nsets: {a: {}}', 'does not match'),
        ('directory: HERE\ninventory: no.yml\nsets: {a: {SET}}', 'not exist'),
        (
            'directory: HERE\ninventory: hosts.yml\nsets:\n'
            '  a: {setup: a/../s.yml, teardown: t.yml, devices: {host: [c]}}',
            'outside',
        ),
        (
            'directory: HERE\ninventory: hosts.yml\nsets:\n'
            '  a: {SET, settings: {ansible_host: {type: string}}}',
            'ansible_host',
        ),
        (
            'directory: HERE\ninventory: hosts.yml\nsets:\n'
            '  a: {SET, settings: {b: {type: string}}, variables: {b: 1}}',
            'b is a setting and a variable',
        ),
        (
            'directory: HERE\ninventory: hosts.yml\nsets:\n'
            '  a: {SET, settings: {b: {type: string, maxLength: x}}}',
            'setting b',
        ),
    ],
)
def test_read_invalid_file_names_problem(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        read_hardware_sets(write(tmp_path, text))


def test_read_missing_file_names_option(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r'hardware_sets .*No such file'):
        read_hardware_sets(str(tmp_path / 'no.yaml'))
