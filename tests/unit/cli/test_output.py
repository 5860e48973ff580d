# SPDX-License-Identifier: Apache-2.0
"""Tests of what all commands print: columns and values."""

import pytest

from cyborg_lite.cli import columns
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client


def test_list_and_object_have_one_element_per_line() -> None:
    assert str(columns.format_value(['a', 'b'])) == 'a\nb'
    assert str(columns.format_value({'a': 1, 'b': None})) == 'a=1\nb=None'
    assert columns.format_value({'a': 1}).machine_readable() == {'a': 1}
    assert columns.format_value('text') == 'text'


def test_groups_have_one_line_each() -> None:
    groups = [{'resources:FPGA': '1', 'trait:CUSTOM_A': 'required'}, {'a': 'b'}]
    lines = str(columns.Groups(groups)).splitlines()
    assert lines == ['resources:FPGA=1, trait:CUSTOM_A=required', 'a=b']


@pytest.fixture
def profile(client: Client) -> str:
    """Create a device profile with a long description; return its name."""
    client.create_profile('dp1')
    text = 'word ' * 30
    run_command(client, 'profile set', 'dp1', '--description', text)
    return 'dp1'


def test_json_has_values_of_the_api(client: Client, profile: str) -> None:
    row = read_json(client, 'profile set', profile, '--private')
    stored = client.at('2.7').get(f'/device_profiles/{profile}').json['device_profile']
    del stored['links']
    assert row == stored
