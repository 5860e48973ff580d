# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on bitstreams."""

from cyborg_lite.model.bitstreams.listing import ListedBitstream
from cyborg_lite.model.operations import OperationKind
from tests.builders.device_rows import add_deployable
from tests.builders.job_records import build_operation
from tests.builders.patches import IMAGE
from tests.support.api.command_line import read_json
from tests.support.api.conversation import Client


def test_list_shows_verdict_for_deployable(client: Client) -> None:
    uuid = add_deployable(client.conductor.database).uuid
    listed = ListedBitstream(IMAGE, 'nlb', 7, {'bs-name': 'nlb-0'}, ('Other board.',))
    client.conductor.answers['list_bitstreams'] = (listed,)
    (row,) = read_json(client, 'bitstream list', '--deployable', uuid)
    assert (row['Image'], row['Name'], row['Size']) == (IMAGE, 'nlb-0', 7)
    assert (row['Accepted'], row['Reasons']) == (False, ['Other board.'])
    (plain,) = read_json(client, 'bitstream list', '--vendor', 'intel')
    assert 'Accepted' not in plain
    filters = client.conductor.list_arguments('list_bitstreams', 'filters')
    assert filters == [{}, {'vendor': 'intel'}]


def start_load(client: Client) -> str:
    """Have the conductor run a job for ever; return the uuid of the deployable."""
    uuid = add_deployable(client.conductor.database).uuid
    operation = build_operation(OperationKind.PROGRAM, subject_id=uuid)
    answers = {'start_programming': operation, 'list_operations': (operation,)}
    client.conductor.answers |= answers
    return uuid


def test_load_starts_job(client: Client) -> None:
    uuid = start_load(client)
    job = read_json(client, 'bitstream load', uuid, IMAGE)
    assert (job['subject']['id'], job['state']) == (uuid, 'running')
    images = client.conductor.list_arguments('start_programming', 'image_uuid')
    assert images == [IMAGE]
