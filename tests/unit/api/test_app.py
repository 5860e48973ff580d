# SPDX-License-Identifier: Apache-2.0
"""The parts of the application stand in the order that the service needs."""

from typing import Final

import pytest

from cyborg_lite.api.app import assemble
from tests.fakes.conductor import FakeConductor
from tests.unit.api.conversation import Answer, Client, configuration

VERSIONED: Final = {
    'openstack-api-minimum-version',
    'openstack-api-maximum-version',
    'vary',
    'x-openstack-request-id',
}
NOBODY: Final[dict[str, str]] = {}


def too_large(client: Client) -> Answer:
    return client.send('POST', '/device_profiles', raw=b' ' * 200_000)


def test_a_body_that_is_too_large_costs_no_look_at_a_token(client: Client) -> None:
    stranger = client.as_(NOBODY)
    assert stranger.post('/device_profiles', []).status == 401
    assert too_large(stranger).status == 413


def test_whoever_refuses_the_answer_bears_our_headers(client: Client) -> None:
    stranger = client.as_(NOBODY)
    answers = {
        401: stranger.get('/devices'),
        404: client.get('/nowhere'),
        405: client.send('PUT', '/devices'),
        406: client.at('9.9').get('/devices'),
        413: too_large(client),
    }
    for status, answer in answers.items():
        assert answer.status == status
        assert {name.lower() for name in answer.headers} >= VERSIONED
    assert 'error_message' in answers[413].json


def test_a_page_of_another_origin_reads_errors_too(client: Client) -> None:
    conf = configuration()
    origin = 'https://dashboard.example'
    assemble(conf, client.conductor)  # the library has registered its section
    conf.set_override('allowed_origin', [origin], group='cors')
    open_one = Client(client.conductor, assemble(conf, client.conductor))
    refused = open_one.as_(NOBODY).get('/devices', {'Origin': origin})
    assert refused.status == 401
    assert refused.headers['Access-Control-Allow-Origin'] == origin


@pytest.mark.parametrize('prefix', ['', '/accelerator'])
def test_the_health_check_asks_for_no_token_and_shows_no_version(prefix: str) -> None:
    stranger = Client(headers=NOBODY, prefix=prefix)
    answer = stranger.get('/healthcheck')
    assert answer.status == 200
    assert 'OpenStack-API-Version' not in answer.headers


def test_what_is_below_the_health_check_is_an_ordinary_path() -> None:
    assert Client(headers=NOBODY, prefix='').get('/healthcheck/x').status == 401


@pytest.mark.parametrize('name', ['dp.json', 'dp.html', 'dp.'])
def test_the_end_of_a_name_is_no_file_type(client: Client, name: str) -> None:
    answer = client.at('2.2').get(f'/device_profiles/{name}')
    assert answer.status == 404
    assert name in answer.fault


def test_a_slash_at_the_end_makes_no_difference_and_no_redirect(client: Client) -> None:
    assert client.get('/devices/').status == client.get('/devices').status == 200


def test_limits_of_profiles_are_those_of_the_configuration() -> None:
    conductor = FakeConductor()
    small = configuration(max_profile_groups=1, max_profile_accelerators=2)
    client = Client(conductor, assemble(small, conductor))
    group = {'resources:FPGA': '1'}
    for groups in ([group, group], [{'resources:FPGA': '3'}]):
        wanted = [{'name': 'dp1', 'groups': groups}]
        assert client.post('/device_profiles', wanted).status == 400
    assert client.profile('dp1', {'resources:FPGA': '2'})
