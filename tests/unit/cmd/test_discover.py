# SPDX-License-Identifier: Apache-2.0
"""What ``cyborg-lite-agent discover`` prints, and how it ends."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.cmd import agent
from tests.fakes import sysfs_tree
from tests.fakes.drivers import handle


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / 'empty.conf'
    empty.write_text('[DEFAULT]\nhost = compute-1\n')
    monkeypatch.setenv('CYBORG_LITE_CONFIG', str(empty))


def _configured(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / 'agent.conf'
    file.write_text(text)
    return ['--config-file', str(file)]


def test_a_table_unless_json_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sysfs_tree.build('t4-mdev', tmp_path)
    assert agent.main(['discover', '--sysfs-root', str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith('ADDRESS')
    assert 'compute-1_0000:3b:00.0: PGPU 1' in out
    assert out.endswith('1 of 3 offered.\n')


def test_json_is_a_list_of_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sysfs_tree.build('l40s-vendor-vfio', tmp_path)
    given = ['discover', '--sysfs-root', str(tmp_path), '--format', 'json']
    assert agent.main(given) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 34
    assert [each['address'] for each in found if each['offered']] == ['0000:c3:00.0']
    fields = 'address ids class driver offered reason provider handles'
    assert {tuple(each) for each in found} == {tuple(fields.split())}


@pytest.mark.parametrize('form', ['table', 'json'])
def test_that_there_is_nothing_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    given = ['discover', '--sysfs-root', str(tmp_path), '--format', form]
    assert agent.main(given) == 0
    nothing = 'No candidate function on this host.\n' if form == 'table' else '[]\n'
    assert capsys.readouterr().out == nothing


def test_the_configured_root_and_drivers_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / 'root'
    sysfs_tree.build('qat-x710', root)
    drivers = 'enabled_drivers = fake_driver'
    given = _configured(tmp_path, f'[agent]\nsysfs_root = {root}\n{drivers}\n')
    assert agent.main(['discover', *given, '--format', 'json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each['driver'] for each in found if each['offered']] == ['fake_driver']
    assert '0000:6b:00.0' in {each['address'] for each in found}


def test_the_word_may_come_after_the_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent.main(['--sysfs-root', str(tmp_path), 'discover']) == 0
    assert 'No candidate' in capsys.readouterr().out


def test_an_option_of_a_driver_is_heard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = sysfs_tree.build('t4-mdev', tmp_path)
    card = tmp_path / built.functions['0000:3b:00.0']
    (card / 'reset').unlink()
    (card / 'reset_method').unlink()
    look = ['discover', '--sysfs-root', str(tmp_path)]
    assert agent.main(look) == 0
    assert 'the kernel cannot reset it' in capsys.readouterr().out
    section = '[nvidia_gpu_driver]\noffer_without_reset = true\n'
    assert agent.main([*look, *_configured(tmp_path, section)]) == 0
    assert '1 of 3 offered.' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('[agent]\nenabled_drivers = no_such\n', 'Unknown driver no_such'),
        ('[nvidia_gpu_driver]\noffer_without_reset = maybe\n', 'offer_without_reset'),
        ('[agent]\nsysfs_root = /no/such/place\n', '/no/such/place'),
    ],
)
def test_a_mistake_in_the_configuration_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert agent.main(['discover', *_configured(tmp_path, text)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ''
    assert captured.err.startswith('cyborg-lite-agent discover: ')
    assert said in captured.err
    assert captured.err.count('\n') == 1


@pytest.mark.parametrize('elsewhere', [False, True])
def test_what_the_agent_has_made_is_no_strangers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], elsewhere: bool
) -> None:
    """Of this host: its memory says nothing of a tree that is another one's."""
    root, uuid = tmp_path / 'root', '1ae6d6ce-4f2a-4a52-9d0c-0f5f2e7a1001'
    sysfs_tree.build('t4-mdev', root)
    place = {'domain': '0000', 'bus': 'af', 'device': '00', 'function': '0'}
    held = replace(
        handle('0000:af:00.0', uuid), info={**place, 'asked_type': 'nvidia-231'}
    )
    Cache(tmp_path / 'state').intend([held])
    configured = _configured(
        tmp_path,
        f'[agent]\nstate_path = {tmp_path}/state\n'
        f'sysfs_root = {tmp_path / "other" if elsewhere else root}\n'
        '[nvidia_gpu_driver]\nvgpu_types = 0000:af:00.0=nvidia-231\n',
    )
    given = ['discover', '--sysfs-root', str(root), '--format', 'json', *configured]
    assert agent.main(given) == 0
    found = {each['address']: each for each in json.loads(capsys.readouterr().out)}
    card = found['0000:af:00.0']
    assert (uuid in card['reason']) is elsewhere
    assert 'c0ffee00-0000-4000-8000-00000000beef' in card['reason']
    assert card['provider']['reserved'] == (2 if elsewhere else 1)
