# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands that change devices by hardware sets."""

import argparse

import pytest
from osc_lib import exceptions

from cyborg_lite.cli import reconfiguration
from cyborg_lite.errors.devices import ReconfigurationRefused
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client
from tests.support.api.reconfiguration import SETTINGS, add_configuration, start_change

ARQ = 'd5ca2f11-3108-4426-a11c-a959987565df'


def test_list_shows_settings_and_users(client: Client) -> None:
    uuid = add_configuration(client.conductor, ARQ)
    result = run_command(client, 'device hardware set list', uuid, '-f', 'json')
    assert result.json == [
        {'Set': 'nvidia', 'Required Settings': ['vgpus'], 'Settings': SETTINGS}
    ]
    assert ARQ in result.error


def test_reconfigure_starts_change(client: Client) -> None:
    uuid = add_configuration(client.conductor)
    start_change(client.conductor)
    options = ('--setting', 'vgpus=4', '--setting', 'name=a b')
    change = read_json(client, 'device reconfigure', uuid, 'nvidia', *options)
    assert (change['set'], change['state']) == ('nvidia', 'waiting')
    assert change['settings'] == {'vgpus': 4, 'name': 'a b'}


def test_history_has_log_of_change(client: Client) -> None:
    uuid = add_configuration(client.conductor)
    start_change(client.conductor)
    read_json(client, 'device reconfigure', uuid, 'nvidia', '--setting', 'vgpus=4')
    (change,) = read_json(client, 'device hardware set list', uuid, '--history')
    assert (change['Set'], change['State'], change['Log']) == ('nvidia', 'waiting', '')


def test_reconfigure_device_in_use_is_refused(client: Client) -> None:
    uuid, reason = add_configuration(client.conductor, ARQ), f'ARQs use it: {ARQ}.'
    refusal = ReconfigurationRefused(uuid=uuid, name='nvidia', reason=reason)
    client.conductor.answers['change_configuration'] = refusal
    with pytest.raises(exceptions.CommandError, match=ARQ):
        run_command(client, 'device reconfigure', uuid, 'nvidia')


def test_setting_without_value_is_refused() -> None:
    for text in ('vgpus', '=4', ''):
        with pytest.raises(argparse.ArgumentTypeError):
            reconfiguration.parse_setting(text)
