# SPDX-License-Identifier: Apache-2.0
"""Tests of what all commands share: formats and widths."""

import pytest

from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client


@pytest.fixture
def profile(client: Client) -> str:
    """Create a device profile with a long description; return its name."""
    client.create_profile('dp1')
    text = 'word ' * 30
    run_command(client, 'profile set', 'dp1', '--description', text)
    return 'dp1'


def test_table_fits_requested_width(client: Client, profile: str) -> None:
    arguments = ('profile set', profile, '--private', '--max-width', '60')
    table = run_command(client, *arguments).out
    assert max(len(line) for line in table.splitlines()) <= 60


def test_json_has_values_of_the_api(client: Client, profile: str) -> None:
    row = read_json(client, 'profile set', profile, '--private')
    stored = client.at('2.7').get(f'/device_profiles/{profile}').json['device_profile']
    del stored['links']
    assert row == stored
