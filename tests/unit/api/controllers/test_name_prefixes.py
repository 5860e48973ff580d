# SPDX-License-Identifier: Apache-2.0
"""Tests of the search by the start of a name, since microversion 2.5."""

import pytest

from tests.builders.device_rows import add_deployable
from tests.support.api.conversation import Client

PATHS = [('/device_profiles', 'device_profiles'), ('/deployables', 'deployables')]


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client of a service with names that start alike."""
    for name in ('gpu-a', 'gpu-b', 'fpga'):
        client.create_profile(name)
        add_deployable(client.conductor.database, name=name)
    return client.at('2.5')


@pytest.mark.parametrize(('path', 'key'), PATHS)
def test_prefix_selects_names(newest: Client, path: str, key: str) -> None:
    objects = newest.get(f'{path}?name_prefix=gpu-&sort_key=uuid').json[key]
    assert {item['name'] for item in objects} == {'gpu-a', 'gpu-b'}
    assert newest.get(f'{path}?name_prefix=gpu-c').json[key] == []


def test_prefix_and_name_apply_together(newest: Client) -> None:
    path = '/device_profiles?name=gpu-a,fpga&name_prefix=gpu'
    (profile,) = newest.get(path).json['device_profiles']
    assert profile['name'] == 'gpu-a'


@pytest.mark.parametrize(('path', 'key'), PATHS)
@pytest.mark.parametrize('value', ['', 'x' * 256, '%00'])
def test_invalid_prefix_is_refused(
    newest: Client, path: str, key: str, value: str
) -> None:
    answer = newest.get(f'{path}?name_prefix={value}')
    assert (answer.status, 'name_prefix must' in answer.fault) == (400, True)


@pytest.mark.parametrize(('path', 'key'), PATHS)
def test_older_microversion_does_not_know_prefix(
    newest: Client, path: str, key: str
) -> None:
    answer = newest.at('2.4').get(f'{path}?name_prefix=gpu')
    assert (answer.status, 'name_prefix' in answer.fault) == (400, True)
