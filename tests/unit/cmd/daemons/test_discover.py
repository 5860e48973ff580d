# SPDX-License-Identifier: Apache-2.0
"""Tests of the output and exit status of ``cyborg-lite-agent discover``."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.cmd.daemons import agent
from tests.doubles.drivers import handle
from tests.hosts import mount_tables, sysfs_tree

Discover = Callable[..., tuple[int, str, str]]


@pytest.fixture
def discover(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Discover:
    """Return a function that runs the command; it returns status, output and errors."""

    def run(
        root: Path | None, *arguments: str, lines: str = ''
    ) -> tuple[int, str, str]:
        file = tmp_path / 'agent.conf'
        file.write_text(f'[DEFAULT]\nhost = compute-1\n{lines}')
        options = ['--config-file', str(file), *arguments]
        options += ['--sysfs-root', str(root)] if root else []
        status = agent.main(['discover', *options])
        return status, *capsys.readouterr()

    return run


def test_discover_prints_table_by_default(tmp_path: Path, discover: Discover) -> None:
    sysfs_tree.build('t4-mdev', tmp_path)
    status, out, _ = discover(tmp_path)
    assert (status, out.startswith('ADDRESS')) == (0, True)
    assert 'compute-1_0000:3b:00.0: PGPU 1' in out
    assert out.endswith('1 of 3 offered.\n')


def test_discover_explains_probes_and_rules(tmp_path: Path, discover: Discover) -> None:
    sysfs_tree.build('t4-mdev', tmp_path)
    _, out, _ = discover(tmp_path, '--explain', '--format', 'json')
    card = json.loads(out)[1]
    assert (card['probes']['fatal'], card['probes']['reset_failed']) == (0, None)
    assert {'pci-fatal', 'xid-79'} <= set(card['rules'])
    assert 'pci-fatal: withhold' in discover(tmp_path, '--explain')[1]


@pytest.mark.parametrize(
    ('form', 'expected'),
    [('table', 'No candidate function on this host.\n'), ('json', '[]\n')],
)
def test_discover_without_devices_returns_0(
    tmp_path: Path, discover: Discover, form: str, expected: str
) -> None:
    assert discover(tmp_path, '--format', form) == (0, expected, '')


def test_discover_subcommand_after_options_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'agent.conf'
    file.touch()
    options = ['--sysfs-root', str(tmp_path), '--config-file', str(file)]
    assert agent.main([*options, 'discover']) == 0
    assert 'No candidate' in capsys.readouterr().out


def test_discover_network_boot_offers_drives(
    tmp_path: Path, discover: Discover
) -> None:
    sysfs_tree.build('nvme-ascend', tmp_path)
    mount_tables.replace_tables(tmp_path, 'of a network boot')
    lines = '[nvme_driver]\ndrives = *\n[agent]\nenabled_drivers = nvme_driver\n'
    assert 'it may be the system disk' in discover(tmp_path, lines=lines)[1]
    lines += 'boots_from_network = true\n'
    assert 'system disk' not in discover(tmp_path, lines=lines)[1]


def test_discover_driver_option_is_applied(tmp_path: Path, discover: Discover) -> None:
    built = sysfs_tree.build('t4-mdev', tmp_path)
    card = tmp_path / built.functions['0000:3b:00.0']
    (card / 'reset').unlink()
    (card / 'reset_method').unlink()
    assert 'the kernel cannot reset it' in discover(tmp_path)[1]
    lines = '[nvidia_gpu_driver]\noffer_without_reset = true\n'
    assert '1 of 3 offered.' in discover(tmp_path, lines=lines)[1]


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('[agent]\nenabled_drivers = no_such\n', 'Unknown driver no_such'),
        ('[nvidia_gpu_driver]\noffer_without_reset = maybe\n', 'offer_without_reset'),
        ('[agent]\nsysfs_root = /no/such/place\n', '/no/such/place'),
    ],
)
def test_discover_invalid_configuration_prints_one_line(
    discover: Discover, text: str, message: str
) -> None:
    status, out, errors = discover(None, lines=text)
    assert (status, out) == (1, '')
    assert errors.startswith('cyborg-lite-agent discover: ')
    assert message in errors
    assert errors.count('\n') == 1


@pytest.mark.parametrize('other_root', [False, True])
def test_discover_prepared_handle_is_not_foreign(
    tmp_path: Path, discover: Discover, other_root: bool
) -> None:
    """The stored handles apply only to the configured sysfs root."""
    root, uuid = tmp_path / 'root', '1ae6d6ce-4f2a-4a52-9d0c-0f5f2e7a1001'
    sysfs_tree.build('t4-mdev', root)
    address = {'domain': '0000', 'bus': 'af', 'device': '00', 'function': '0'}
    allocated = replace(
        handle('0000:af:00.0', uuid), info={**address, 'asked_type': 'nvidia-231'}
    )
    Cache(tmp_path / 'state').add_handles([allocated])
    lines = (
        f'[agent]\nstate_path = {tmp_path}/state\n'
        f'sysfs_root = {tmp_path / "other" if other_root else root}\n'
        '[nvidia_gpu_driver]\nvgpu_types = 0000:af:00.0=nvidia-231\n'
    )
    _, out, _ = discover(root, '--format', 'json', lines=lines)
    rows = {row['address']: row for row in json.loads(out)}
    card = rows['0000:af:00.0']
    assert (uuid in card['reason']) is other_root
    assert 'c0ffee00-0000-4000-8000-00000000beef' in card['reason']
    assert card['provider']['reserved'] == (2 if other_root else 1)


def test_discover_shows_cards_of_other_owners(
    tmp_path: Path, discover: Discover
) -> None:
    root = tmp_path / 'host'
    sysfs_tree.build('h100-hgx', root)
    owners = tmp_path / 'ownership.yaml'
    owners.write_text('compute-1:\n  0000:1b:00.0: nova\n')
    nova = tmp_path / 'nova.conf'
    nova.write_text('[pci]\ndevice_spec = {"address": "0000:43:00.0"}\n')
    lines = (
        f'[agent]\nsysfs_root = {root}\nstate_path = {tmp_path}\n'
        f'nova_config_files = {nova}\n'
        f'ownership_file = {owners}\n'
    )
    _, out, _ = discover(None, '--format', 'json', lines=lines)
    rows = {row['address']: row for row in json.loads(out)}
    of_nova, of_both = rows['0000:1b:00.0'], rows['0000:43:00.0']
    assert not of_nova['offered']
    assert of_nova['reason'] == (
        'belongs to nova by the ownership file, but the configuration of Nova does not '
        'contain it'
    )
    assert not of_both['offered']
    assert of_both['reason'].startswith('Managed twice')
    assert sum(row['offered'] for row in rows.values()) == 6
