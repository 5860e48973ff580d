# SPDX-License-Identifier: Apache-2.0
"""Tests of the output and exit status of ``cyborg-lite-agent discover``."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.cmd.daemons import agent
from tests.doubles.drivers import handle
from tests.hosts import mount_tables, sysfs_tree


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / 'empty.conf'
    empty.write_text('[DEFAULT]\nhost = compute-1\n')
    monkeypatch.setenv('CYBORG_LITE_CONFIG', str(empty))


def _config_arguments(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / 'agent.conf'
    file.write_text(text)
    return ['--config-file', str(file)]


def test_discover_prints_table_by_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sysfs_tree.build('t4-mdev', tmp_path)
    assert agent.main(['discover', '--sysfs-root', str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith('ADDRESS')
    assert 'compute-1_0000:3b:00.0: PGPU 1' in out
    assert out.endswith('1 of 3 offered.\n')


def test_discover_explains_probes_and_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sysfs_tree.build('t4-mdev', tmp_path)
    arguments = ['discover', '--sysfs-root', str(tmp_path), '--explain']
    assert agent.main([*arguments, '--format', 'json']) == 0
    card = json.loads(capsys.readouterr().out)[1]
    assert (card['probes']['fatal'], card['probes']['reset_failed']) == (0, None)
    assert {'pci-fatal', 'xid-79'} <= set(card['rules'])
    assert agent.main(arguments) == 0
    assert 'pci-fatal: withhold' in capsys.readouterr().out


@pytest.mark.parametrize('form', ['table', 'json'])
def test_discover_without_devices_returns_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    arguments = ['discover', '--sysfs-root', str(tmp_path), '--format', form]
    assert agent.main(arguments) == 0
    expected = 'No candidate function on this host.\n' if form == 'table' else '[]\n'
    assert capsys.readouterr().out == expected


def test_discover_subcommand_after_options_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent.main(['--sysfs-root', str(tmp_path), 'discover']) == 0
    assert 'No candidate' in capsys.readouterr().out


def test_discover_network_boot_offers_drives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sysfs_tree.build('nvme-ascend', tmp_path)
    mount_tables.replace_tables(tmp_path, 'of a network boot')
    arguments = ['discover', '--sysfs-root', str(tmp_path)]
    section = '[nvme_driver]\ndrives = *\n[agent]\nenabled_drivers = nvme_driver\n'
    assert agent.main([*arguments, *_config_arguments(tmp_path, section)]) == 0
    assert 'it may be the system disk' in capsys.readouterr().out
    section = f'{section}boots_from_network = true\n'
    assert agent.main([*arguments, *_config_arguments(tmp_path, section)]) == 0
    assert 'system disk' not in capsys.readouterr().out


def test_discover_driver_option_is_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = sysfs_tree.build('t4-mdev', tmp_path)
    card = tmp_path / built.functions['0000:3b:00.0']
    (card / 'reset').unlink()
    (card / 'reset_method').unlink()
    arguments = ['discover', '--sysfs-root', str(tmp_path)]
    assert agent.main(arguments) == 0
    assert 'the kernel cannot reset it' in capsys.readouterr().out
    section = '[nvidia_gpu_driver]\noffer_without_reset = true\n'
    assert agent.main([*arguments, *_config_arguments(tmp_path, section)]) == 0
    assert '1 of 3 offered.' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('[agent]\nenabled_drivers = no_such\n', 'Unknown driver no_such'),
        ('[nvidia_gpu_driver]\noffer_without_reset = maybe\n', 'offer_without_reset'),
        ('[agent]\nsysfs_root = /no/such/place\n', '/no/such/place'),
    ],
)
def test_discover_invalid_configuration_prints_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    assert agent.main(['discover', *_config_arguments(tmp_path, text)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ''
    assert captured.err.startswith('cyborg-lite-agent discover: ')
    assert message in captured.err
    assert captured.err.count('\n') == 1


@pytest.mark.parametrize('other_root', [False, True])
def test_discover_prepared_handle_is_not_foreign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other_root: bool
) -> None:
    """The stored handles apply only to the configured sysfs root."""
    root, uuid = tmp_path / 'root', '1ae6d6ce-4f2a-4a52-9d0c-0f5f2e7a1001'
    sysfs_tree.build('t4-mdev', root)
    address = {'domain': '0000', 'bus': 'af', 'device': '00', 'function': '0'}
    allocated = replace(
        handle('0000:af:00.0', uuid), info={**address, 'asked_type': 'nvidia-231'}
    )
    Cache(tmp_path / 'state').add_handles([allocated])
    config = _config_arguments(
        tmp_path,
        f'[agent]\nstate_path = {tmp_path}/state\n'
        f'sysfs_root = {tmp_path / "other" if other_root else root}\n'
        '[nvidia_gpu_driver]\nvgpu_types = 0000:af:00.0=nvidia-231\n',
    )
    arguments = ['discover', '--sysfs-root', str(root), '--format', 'json', *config]
    assert agent.main(arguments) == 0
    rows = {row['address']: row for row in json.loads(capsys.readouterr().out)}
    card = rows['0000:af:00.0']
    assert (uuid in card['reason']) is other_root
    assert 'c0ffee00-0000-4000-8000-00000000beef' in card['reason']
    assert card['provider']['reserved'] == (2 if other_root else 1)


def test_discover_shows_cards_of_other_owners(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / 'host'
    sysfs_tree.build('h100-hgx', root)
    owners = tmp_path / 'ownership.yaml'
    owners.write_text('compute-1:\n  0000:1b:00.0: nova\n')
    nova = tmp_path / 'nova.conf'
    nova.write_text('[pci]\ndevice_spec = {"address": "0000:43:00.0"}\n')
    arguments = _config_arguments(
        tmp_path,
        f'[DEFAULT]\nhost = compute-1\n[agent]\nsysfs_root = {root}\n'
        f'state_path = {tmp_path}\nnova_config_files = {nova}\n'
        f'ownership_file = {owners}\n',
    )
    assert agent.main(['discover', *arguments, '--format', 'json']) == 0
    rows = {row['address']: row for row in json.loads(capsys.readouterr().out)}
    of_nova, of_both = rows['0000:1b:00.0'], rows['0000:43:00.0']
    assert not of_nova['offered']
    assert of_nova['reason'] == (
        'belongs to nova by the ownership file, but the configuration of Nova does not '
        'contain it'
    )
    assert not of_both['offered']
    assert of_both['reason'].startswith('Managed twice')
    assert sum(row['offered'] for row in rows.values()) == 6
