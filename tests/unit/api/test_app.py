# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of the middleware."""

from typing import Final

import pytest

from cyborg_lite.api.app import assemble
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import (
    MEMBER,
    Answer,
    Client,
    build_configuration,
)

VERSIONED: Final = {
    'openstack-api-minimum-version',
    'openstack-api-maximum-version',
    'vary',
    'x-openstack-request-id',
}
NOBODY: Final[dict[str, str]] = {}


def too_large(client: Client) -> Answer:
    return client.send('POST', '/device_profiles', raw=b' ' * 200_000)


def test_body_too_large_is_refused_before_authentication(client: Client) -> None:
    anonymous = client.as_(NOBODY)
    assert anonymous.post('/device_profiles', []).status == 401
    assert too_large(anonymous).status == 413


def test_errors_of_all_layers_have_version_headers(client: Client) -> None:
    anonymous = client.as_(NOBODY)
    answers = {
        401: anonymous.get('/devices'),
        404: client.get('/nowhere'),
        405: client.send('PUT', '/devices'),
        406: client.at('9.9').get('/devices'),
        413: too_large(client),
    }
    for status, answer in answers.items():
        assert answer.status == status
        assert {name.lower() for name in answer.headers} >= VERSIONED
    assert 'error_message' in answers[413].json


def test_cors_applies_to_errors(client: Client) -> None:
    conf = build_configuration()
    origin = 'https://dashboard.example'
    assemble(conf, client.conductor.client)  # registers the section of the library
    conf.set_override('allowed_origin', [origin], group='cors')
    open_one = Client(client.conductor, assemble(conf, client.conductor.client))
    refused = open_one.as_(NOBODY).get('/devices', {'Origin': origin})
    assert refused.status == 401
    assert refused.headers['Access-Control-Allow-Origin'] == origin


@pytest.mark.parametrize('prefix', ['', '/accelerator'])
def test_healthcheck_needs_no_token_or_version(prefix: str) -> None:
    anonymous = Client(headers=NOBODY, prefix=prefix)
    answer = anonymous.get('/healthcheck')
    assert answer.status == 200
    assert 'OpenStack-API-Version' not in answer.headers


def test_path_below_healthcheck_requires_token() -> None:
    assert Client(headers=NOBODY, prefix='').get('/healthcheck/x').status == 401


@pytest.mark.parametrize('name', ['dp.json', 'dp.html', 'dp.'])
def test_name_with_dot_is_no_file_type(client: Client, name: str) -> None:
    answer = client.at('2.2').get(f'/device_profiles/{name}')
    assert answer.status == 404
    assert name in answer.fault


def test_trailing_slash_makes_no_difference(client: Client) -> None:
    assert client.get('/devices/').status == client.get('/devices').status == 200


def test_profile_limits_come_from_configuration() -> None:
    conductor = LocalConductor()
    small = build_configuration(max_profile_groups=1, max_profile_accelerators=2)
    client = Client(conductor, assemble(small, conductor.client))
    group = {'resources:FPGA': '1'}
    for groups in ([group, group], [{'resources:FPGA': '3'}]):
        body = [{'name': 'dp1', 'groups': groups}]
        assert client.post('/device_profiles', body).status == 400
    assert client.create_profile('dp1', {'resources:FPGA': '2'})


def test_input_that_pecan_cannot_parse_is_refused(client: Client) -> None:
    assert 'not UTF-8' in client.get('/devices?type=%ff').fault
    deep = b'[' * 50_000 + b']' * 50_000
    assert client.send('POST', '/device_profiles', raw=deep).status == 400
    form = {'Content-Type': 'multipart/form-data'}
    answer = client.send('POST', '/device_profiles', raw=b'{}', headers=form)
    assert answer.status == 415


def test_input_is_parsed_after_policy_is_checked(client: Client) -> None:
    member = client.as_(MEMBER)
    assert member.send('POST', '/device_profiles', raw=b'[' * 50_000).status == 403
