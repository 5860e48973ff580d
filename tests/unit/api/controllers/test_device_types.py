# SPDX-License-Identifier: Apache-2.0
"""Tests of the list of device types."""

from typing import Any

import pytest

from cyborg_lite.api.app import assemble
from cyborg_lite.model.capacity.device_types import DeviceType
from tests.builders.device_rows import add_deployable
from tests.support.api.conversation import (
    ADMIN,
    HOST,
    READER,
    Client,
    build_configuration,
)


# Any: JSON.
def read_types(client: Client) -> list[dict[str, Any]]:
    answer = client.at('2.7').get('/device_types')
    assert answer.status == 200, answer.body
    types: list[dict[str, Any]] = answer.json['device_types']
    return types


@pytest.mark.parametrize(
    ('availability', 'persona', 'units', 'expected'),
    [
        ('none', READER, 3, (None, None)),
        ('yes-no', READER, 3, (True, None)),
        ('yes-no', READER, 0, (False, None)),
        ('number', READER, 3, (True, 3)),
        ('none', ADMIN, 3, (True, 3)),
    ],
)
def test_option_decides_what_users_read(
    client: Client,
    availability: str,
    persona: dict[str, str],
    units: int,
    expected: tuple[bool | None, int | None],
) -> None:
    item = DeviceType('GPU', '10de', 'A100', 'PGPU', '', 81920, ('gpu',), units)
    client.conductor.answers['list_device_types'] = (item,)
    configuration = build_configuration(device_type_availability=availability)
    application = assemble(configuration, client.conductor.client)
    (record,) = read_types(Client(client.conductor, application, persona))
    assert record == {
        'description': 'one 80 GB A100',
        'type': 'GPU',
        'vendor': '10de',
        'model': 'A100',
        'resource_class': 'PGPU',
        'memory_mib': 81920,
        'device_profiles': ['gpu'],
        'is_available': expected[0],
        'free_units': expected[1],
    }


def test_user_sees_types_of_own_profiles(client: Client) -> None:
    add_deployable(client.conductor.database, resource_class='FPGA')
    user = client.as_(READER)
    assert [item['device_profiles'] for item in read_types(client)] == [[]]
    assert read_types(user) == []
    client.create_profile('fpga', {'resources:FPGA': '1'})
    assert [item['device_profiles'] for item in read_types(user)] == [['fpga']]
    for path, value in (('/is_public', False), ('/enabled', False)):
        change = {'op': 'replace', 'path': path, 'value': value}
        client.at('2.7').patch('/device_profiles/fpga', [change])
        assert read_types(user) == []
        assert len(read_types(client)) == 1


def test_list_needs_microversion(client: Client) -> None:
    assert client.at('2.6').get('/device_types').status == 406
    link = client.at('2.7').get('/device_types').json['links']
    assert link == [{'href': f'{HOST}/v2/device_types', 'rel': 'self'}]
