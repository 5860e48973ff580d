# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on bitstreams."""

import pytest
from osc_lib import exceptions

from cyborg_lite.model.bitstream_list import ListedBitstream
from tests.builders.patches import IMAGE
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client, add_deployable


def test_list_shows_verdict_for_deployable(client: Client) -> None:
    uuid = add_deployable(client.conductor).uuid
    listed = ListedBitstream(IMAGE, 'nlb', 7, {'bs-name': 'nlb-0'}, ('Other board.',))
    client.conductor.bitstreams.update({uuid: listed, '': listed})
    (row,) = read_json(client, 'bitstream list', '--deployable', uuid)
    assert (row['Image'], row['Name'], row['Size']) == (IMAGE, 'nlb-0', 7)
    assert (row['Accepted'], row['Reasons']) == (False, ['Other board.'])
    (plain,) = read_json(client, 'bitstream list', '--vendor', 'intel')
    assert 'Accepted' not in plain
    assert client.conductor.bitstream_filters[-1] == {'vendor': 'intel'}


def test_load_starts_job(client: Client) -> None:
    uuid = add_deployable(client.conductor).uuid
    job = read_json(client, 'bitstream load', uuid, IMAGE)
    assert (job['deployable_uuid'], job['state']) == (uuid, 'running')
    assert client.conductor.programmed == [(uuid, IMAGE)]


def test_load_with_wait_gives_up_at_timeout(client: Client) -> None:
    uuid = add_deployable(client.conductor).uuid
    arguments = ('bitstream load', uuid, IMAGE, '--wait', '--timeout', '0.001')
    with pytest.raises(exceptions.CommandError, match='The work continues'):
        run_command(client, *arguments)
