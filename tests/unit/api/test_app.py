# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of the middleware."""

from typing import Final

import pytest

from cyborg_lite.api.app import assemble
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import (
    Answer,
    Client,
    build_configuration,
)

NOBODY: Final[dict[str, str]] = {}


def too_large(client: Client) -> Answer:
    return client.send('POST', '/device_profiles', raw=b' ' * 200_000)


def test_body_too_large_is_refused_before_authentication(client: Client) -> None:
    anonymous = client.as_(NOBODY)
    assert anonymous.post('/device_profiles', []).status == 401
    assert too_large(anonymous).status == 413


def test_path_below_healthcheck_requires_token() -> None:
    assert Client(headers=NOBODY, prefix='').get('/healthcheck/x').status == 401


@pytest.mark.parametrize('name', ['dp.json', 'dp.html', 'dp.'])
def test_name_with_dot_is_no_file_type(client: Client, name: str) -> None:
    answer = client.at('2.2').get(f'/device_profiles/{name}')
    assert answer.status == 404
    assert name in answer.fault


def test_profile_limits_come_from_configuration() -> None:
    conductor = LocalConductor()
    small = build_configuration(max_profile_groups=1, max_profile_accelerators=2)
    client = Client(conductor, assemble(small, conductor.client))
    group = {'resources:FPGA': '1'}
    for groups in ([group, group], [{'resources:FPGA': '3'}]):
        body = [{'name': 'dp1', 'groups': groups}]
        assert client.post('/device_profiles', body).status == 400
    assert client.create_profile('dp1', {'resources:FPGA': '2'})
