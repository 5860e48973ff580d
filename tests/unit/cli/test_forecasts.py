# SPDX-License-Identifier: Apache-2.0
"""Tests of the command that shows the effect of a change of hardware."""

import argparse

import pytest
from osc_lib import exceptions

from cyborg_lite.cli import forecasts
from cyborg_lite.model.explanations import ProviderCapacity
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client

DEVICE = '11111111-2222-3333-4444-555555555555'
CARD = ProviderCapacity(
    rp_uuid=DEVICE,
    name='compute-1',
    hostname='compute-1',
    resource_class='PGPU',
    traits=frozenset(),
    total=4,
    free=4,
    free_handles=4,
)


@pytest.fixture(autouse=True)
def stock(client: Client) -> None:
    """Create a device profile and a card."""
    client.conductor.stock = [CARD]
    client.create_profile('dp1', {'resources:PGPU': '1'})


def test_forecast_shows_row_per_profile(client: Client) -> None:
    add = 'host=compute-1,resources:PGPU=3,trait:CUSTOM_A=required,count=2'
    options = ('--remove', DEVICE, '--add', add, '--group', 'resources:PGPU=3')
    first, second = read_json(client, 'profile forecast', *options)
    assert (first['Profile'], first['Result']) == ('dp1', 'gains')
    assert (first['Before'], first['After']) == ('4', '6')
    assert first['Hosts'] == ['compute-1: 4 to 6']
    assert (second['Profile'], second['Before'], second['After']) == ('(new)', '1', '2')


def test_forecast_unknown_has_reason(client: Client) -> None:
    options = (
        *('--add', 'host=compute-1,resources:PGPU=1', '--profile', 'dp1'),
        *('--group', 'resources:PGPU=1,accel:selector=device.memory_mib >= 1GiB'),
    )
    _, row = read_json(client, 'profile forecast', *options)
    assert (row['Result'], row['After'], row['Hosts']) == ('unknown', 'unknown', [])
    assert 'memory_mib' in row['Reasons'][0]


def test_forecast_without_change_is_refused(client: Client) -> None:
    with pytest.raises(exceptions.CommandError, match='use --remove'):
        run_command(client, 'profile forecast')


def test_new_devices_are_parsed() -> None:
    text = 'host=h,resources:VGPU=4,attribute:memory_mib=1,attribute:x=true,type=MDEV'
    assert forecasts.parse_device(text) == {
        'hostname': 'h',
        'resources': {'VGPU': 4},
        'attributes': {'memory_mib': 1, 'x': True},
        'attach_handle_type': 'MDEV',
    }


@pytest.mark.parametrize('text', ['colour=red', 'count=x', 'resources:=1', 'host'])
def test_malformed_devices_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        forecasts.parse_device(text)


@pytest.mark.parametrize('text', ['a', '=b', 'a='])
def test_malformed_mode_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        forecasts.parse_mode(text)


def test_mode_is_parsed() -> None:
    assert forecasts.parse_mode('a=b=c') == {'device': 'a', 'mode': 'b=c'}
