# SPDX-License-Identifier: Apache-2.0
"""Tests of the negotiation of microversions."""

import logging

import pytest

from cyborg_lite.api import microversion
from tests.support.api.conversation import Client

HEADER = 'OpenStack-API-Version'
EVERYWHERE = {
    'Vary': HEADER,
    'OpenStack-API-Minimum-Version': '2.0',
    'OpenStack-API-Maximum-Version': '2.7',
}


@pytest.mark.parametrize(
    ('header', 'version'),
    [
        (None, '2.0'),  # Nova
        ('accelerator 2.0', '2.0'),
        ('accelerator 2.1', '2.1'),
        ('accelerator 2.2', '2.2'),
        ('accelerator 2.4', '2.4'),
        ('accelerator latest', '2.7'),
        ('Accelerator LATEST', '2.7'),
        ('  accelerator   2.4  ', '2.4'),
        ('compute 2.90,accelerator 2.2', '2.2'),
        ('compute 2.90, accelerator 2.2', '2.2'),
        ('accelerator 2.2,compute 2.90', '2.2'),
        ('accelerator 2.1,accelerator 2.2', '2.2'),
        ('compute 2.90', '2.0'),
        ('compute 2.90, placement latest', '2.0'),
        ('compute abc', '2.0'),
        ('2.1', '2.1'),
        ('latest', '2.7'),
    ],
)
def test_negotiate_supported_version_is_used(
    client: Client, header: str | None, version: str
) -> None:
    headers = {} if header is None else {HEADER: header}
    answer = client.get('/devices', headers=headers)
    assert answer.status == 200
    assert answer.headers[HEADER] == f'accelerator {version}'
    for name, value in EVERYWHERE.items():
        assert answer.headers[name] == value


@pytest.mark.parametrize(
    'header',
    [
        'accelerator 2.99',
        'accelerator 3.0',
        'accelerator 1.0',
        'accelerator 2.-1',
        'accelerator abc',
        'accelerator 2',
        'accelerator 2.1.1',
        'accelerator 2.01',
        'accelerator 2. 1',
        'accelerator 2.1 x',
        'accelerator \u0662.1',
        'accelerator',
        'accelerator ' + '9' * 5000 + '.0',
        'accelerator 2.' + '9' * 5000,
        'compute 2.90,accelerator 2.99',
        '2.99',
        'abc',
        '',
        ',',
        '\x00',
    ],
)
def test_negotiate_unsupported_version_names_range(client: Client, header: str) -> None:
    header = header.encode().decode('latin-1')  # as WSGI has it
    answer = client.get('/devices', headers={HEADER: header})
    assert answer.status == 406
    assert '2.0 to 2.7' in answer.fault
    assert HEADER not in answer.headers
    for name, value in EVERYWHERE.items():
        assert answer.headers[name] == value


def test_negotiate_bare_version_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert microversion.negotiate('2.1') == microversion.V2_1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
