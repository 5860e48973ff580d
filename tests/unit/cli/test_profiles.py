# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on device profiles."""

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from osc_lib import exceptions

from cyborg_lite.cli import profiles
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.capacity.explanations import Reason, ReasonCode
from tests.builders.stock import build_provider
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import OTHER_PROJECT, PROJECT, Client


@pytest.fixture(autouse=True)
def profile(client: Client) -> dict[str, Any]:
    """Create a device profile with one group."""
    return client.create_profile('dp1', {'resources:FPGA': '1', 'accel:a': 'b'})


def read(client: Client, name: str = 'dp1') -> Any:
    return read_json(client, 'profile show', name)


def test_set_changes_named_fields_only(client: Client) -> None:
    changed = read_json(client, 'profile set', 'dp1', '--name', 'dp2', '--private')
    assert (changed['name'], changed['is_public']) == ('dp2', False)
    assert changed['groups'] == [{'resources:FPGA': '1', 'accel:a': 'b'}]
    assert read_json(client, 'profile set', 'dp2', '--public')['is_public'] is True


def test_set_replaces_all_groups(client: Client) -> None:
    groups = (
        '--group',
        'resources:FPGA=2, trait:CUSTOM_A=required',
        '--group',
        'resources:PGPU=1',
    )
    changed = read_json(client, 'profile set', 'dp1', *groups)
    assert changed['groups'] == [
        {'resources:FPGA': '2', 'trait:CUSTOM_A': 'required'},
        {'resources:PGPU': '1'},
    ]


@pytest.mark.parametrize('command', ['profile set', 'profile unset'])
def test_change_without_option_is_refused(client: Client, command: str) -> None:
    with pytest.raises(exceptions.CommandError, match='use '):
        run_command(client, command, 'dp1')


@pytest.mark.parametrize('command', ['profile set', 'profile unset'])
def test_change_of_other_generation_is_refused(client: Client, command: str) -> None:
    option = ('--description', 'mine') if command == 'profile set' else '--description'
    options = [option] if isinstance(option, str) else [*option]
    run_command(client, 'profile set', 'dp1', '--description', 'theirs')
    stale = ('--generation', '0')
    with pytest.raises(exceptions.CommandError, match=r'is not 0.*HTTP 409'):
        run_command(client, command, 'dp1', *options, *stale)
    assert read(client)['description'] == 'theirs'
    current = ('--generation', '1')
    changed = read_json(client, command, 'dp1', *options, *current)
    assert (changed['generation'], changed['description'] == 'theirs') == (2, False)


def test_set_during_change_of_other_administrator_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = profiles._read_profile

    def read_before_change(api: Any, name: str) -> dict[str, Any]:
        stored = original(api, name)
        body = [{'op': 'replace', 'path': '/description', 'value': 'theirs'}]
        assert client.at('2.4').patch(f'/device_profiles/{name}', body).status == 200
        return stored

    monkeypatch.setattr(profiles, '_read_profile', read_before_change)
    for command, option in (
        ('profile set', ('--description', 'mine')),
        ('profile unset', ('--group-key', '0:accel:a')),
    ):
        with pytest.raises(exceptions.CommandError, match='HTTP 409'):
            run_command(client, command, 'dp1', *option)
        stored = read(client)
        assert stored['description'] == 'theirs'
        assert 'accel:a' in stored['groups'][0]


def test_unset_removes_description_and_keys(client: Client) -> None:
    run_command(client, 'profile set', 'dp1', '--description', 'text')
    options = ('--description', '--group-key', '0:accel:a')
    changed = read_json(client, 'profile unset', 'dp1', *options)
    assert changed['description'] is None
    assert changed['groups'] == [{'resources:FPGA': '1'}]


@pytest.mark.parametrize('key', ['0:accel:b', '1:accel:a'])
def test_unset_key_that_is_missing_is_refused(client: Client, key: str) -> None:
    with pytest.raises(exceptions.CommandError, match='has no key'):
        run_command(client, 'profile unset', 'dp1', '--group-key', key)
    assert 'accel:a' in read(client)['groups'][0]


@pytest.mark.parametrize(
    ('parse', 'texts'),
    [
        (profiles.parse_generation, ['', '-1', 'x', '1' * 11, '²']),
        (profiles.parse_group, ['a', '=b', 'a=1,a=2', '']),
        (profiles.parse_group_key, ['a', 'x:a', '1:', '-1:a', '']),
    ],
)
def test_malformed_value_of_option_is_refused(
    parse: Callable[[str], object], texts: list[str]
) -> None:
    for text in texts:
        with pytest.raises(argparse.ArgumentTypeError):
            parse(text)


def test_create_makes_profile_with_groups(client: Client) -> None:
    options = ('--group', 'resources:PGPU=1', '--description', 'text')
    created = read_json(client, 'profile create', 'dp2', *options)
    assert created['groups'] == [{'resources:PGPU': '1'}]
    assert created['description'] == 'text'


def test_disable_and_enable_change_all_profiles(client: Client) -> None:
    client.create_profile('dp2')
    run_command(client, 'profile disable', 'dp1', 'dp2')
    assert [read(client, name)['enabled'] for name in ('dp1', 'dp2')] == [False, False]
    run_command(client, 'profile enable', 'dp2')
    assert [read(client, name)['enabled'] for name in ('dp1', 'dp2')] == [False, True]


def test_access_add_list_remove(client: Client) -> None:
    run_command(client, 'profile set', 'dp1', '--private')
    run_command(client, 'profile access add', 'dp1', PROJECT, OTHER_PROJECT)
    run_command(client, 'profile access remove', 'dp1', PROJECT)
    rows = read_json(client, 'profile access list', 'dp1')
    assert rows == [{'Project ID': OTHER_PROJECT}]


def stock_up(client: Client, **units: int) -> None:
    """Have the conductor explain profiles with free FPGAs on hosts."""
    fields: dict[str, Any] = {'resource_class': 'FPGA', 'traits': frozenset()}
    stock = [build_provider(host, number, **fields) for host, number in units.items()]
    client.conductor.stock_up(stock)


def test_explain_shows_hosts_and_summary(client: Client) -> None:
    stock_up(client, host1=1, host2=0)
    result = run_command(client, 'profile explain', 'dp1', '-f', 'json')
    fitting, full = result.json
    assert (fitting['Host'], fitting['Fits'], fitting['Reasons']) == ('host1', True, [])
    assert full['Fits'] is False
    assert full['Reasons']
    assert result.error.strip()
    (only,) = read_json(client, 'profile explain', 'dp1', '--host', 'host2')
    assert only['Host'] == 'host2'


WARNING = Reason(ReasonCode.MANY_CANDIDATES, 'Too many candidates.', group=0)


def _explain(client: Client, **values: Any) -> None:
    """Let each explanation have the given values."""
    answers: Any = client.conductor.answers
    original = answers['explain_device_profile']

    def explain(**arguments: Any) -> Any:
        return dataclasses.replace(original(**arguments), **values)

    answers['explain_device_profile'] = explain


def test_explain_prints_warnings(client: Client) -> None:
    stock_up(client, host1=1)
    _explain(client, cautions=(WARNING,))
    result = run_command(client, 'profile explain', 'dp1')
    assert result.error.endswith('\nWarning: Too many candidates.\n')
    assert 'Warning' not in result.out


def test_create_warns_of_group_that_no_host_serves(client: Client) -> None:
    stock_up(client, host1=1)
    arguments = 'profile create', 'new', '--group', 'resources:VGPU=1'
    result = run_command(client, *arguments)
    assert result.error.startswith('Warning: ')
    assert 'VGPU' in result.error


def test_create_says_if_profile_is_not_checked(client: Client) -> None:
    error = ServiceUnavailable(what='Placement')
    client.conductor.answers['explain_device_profile'] = error
    arguments = 'profile create', 'new', '--group', 'resources:FPGA=1'
    result = run_command(client, *arguments)
    assert result.error.startswith('The profile is not checked: ')
    assert client.get('/device_profiles?name=new').json['device_profiles']


def test_explain_prints_alternatives(client: Client) -> None:
    stock_up(client, host1=1)
    _explain(client, choice=(0, 2))
    result = run_command(client, 'profile explain', 'dp1')
    assert result.error.endswith('\nGroup 1 is explained with alternative 2.\n')


def test_explain_lists_warnings_as_json(client: Client) -> None:
    stock_up(client, host1=1)
    assert read_json(client, 'profile explain', 'dp1', '--warnings') == []
    _explain(client, cautions=(WARNING,))
    assert read_json(client, 'profile explain', 'dp1', '--warnings') == [
        {
            'Code': 'many-candidates',
            'Warning': 'Too many candidates.',
            'Group': 0,
            'Providers': [],
        }
    ]


def test_list_shows_state_and_groups(client: Client) -> None:
    client.create_profile('child')
    run_command(client, 'profile disable', 'child')
    stored = client.get('/device_profiles').json['device_profiles']
    groups = {item['name']: item['groups'] for item in stored}
    rows = read_json(client, 'profile list')
    assert rows == [
        {'Name': 'child', 'Enabled': False, 'Public': True, 'Groups': groups['child']},
        {'Name': 'dp1', 'Enabled': True, 'Public': True, 'Groups': groups['dp1']},
    ]
    (row,) = read_json(client, 'profile list', '--name-prefix', 'ch', '--long')
    assert row['UUID'] in client.conductor.profiles
    assert row['Generation'] == 1


@pytest.mark.parametrize(
    ('option', 'names'),
    [
        ('--enabled', ['dp1']),
        ('--disabled', ['dp2']),
        ('--public', ['dp2']),
        ('--private', ['dp1']),
    ],
)
def test_list_has_filters(client: Client, option: str, names: list[str]) -> None:
    client.create_profile('dp2')
    run_command(client, 'profile set', 'dp1', '--private')
    run_command(client, 'profile disable', 'dp2')
    rows = read_json(client, 'profile list', option)
    assert [row['Name'] for row in rows] == names


def test_show_has_generation(client: Client) -> None:
    assert read_json(client, 'profile show', 'dp1')['generation'] == 0
    with pytest.raises(exceptions.NotFound):
        run_command(client, 'profile show', 'missing')


def test_capacity_shows_servers_of_hosts_and_total(client: Client) -> None:
    stock_up(client, host1=3, host2=0)
    result = run_command(client, 'profile capacity', 'dp1', '-f', 'json')
    assert [(row['Host'], row['Servers'], row['Exact']) for row in result.json] == [
        ('host1', 3, True),
        ('host2', 0, True),
    ]
    assert result.json[0]['Runs Out First'] == ['FPGA']
    assert result.error.startswith('3 more servers fit.\n')
    (only,) = read_json(client, 'profile capacity', 'dp1', '--host', 'host2')
    assert only['Host'] == 'host2'
