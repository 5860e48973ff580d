# SPDX-License-Identifier: Apache-2.0
"""Schemathesis against the running service: no input is a fault of ours, and no answer
is another than the API document promises.

The seeds are fixed: a run that fails here fails everywhere.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.fakes import plausible_requests
from tests.fakes.databases import fresh_database
from tests.fakes.stack import NOVA, ROOT, Cloud, expect, lines_of

CHECKS: Final = (
    'not_a_server_error',
    'status_code_conformance',
    'content_type_conformance',
    'response_schema_conformance',
    'response_headers_conformance',
    # What the document forbids is refused, and what is gone is gone.
    'negative_data_rejection',
    'unsupported_method',
    'use_after_free',
    'ensure_resource_availability',
)
LATEST: Final = {'OpenStack-API-Version': 'accelerator 2.4'}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """The daemons and a real database, with something of each kind in it.

    Of each test its own, lest one run depends on what another left behind.
    """
    made = fresh_database('postgresql')
    with Cloud(tmp_path, transport_url='local://', connection=next(made)) as started:
        started.start('standalone')
        for name in plausible_requests.NAMES:
            body = [{'name': name, 'groups': [{'resources:FPGA': '1'}]}]
            expect(started.api().ask('POST', '/v2/device_profiles', body), 201)
        instance = started.boot('FPGA', 2)
        started.until(instance.resolved)
        yield started
    next(made, None)


def search(cloud: Cloud, document: str, headers: Mapping[str, str], *more: str) -> str:
    """What schemathesis says, who found nothing."""
    address = f'http://127.0.0.1:{cloud.port}{document}'
    command = [sys.executable, '-m', 'schemathesis.cli', '--no-color', 'run', address]
    for name, value in {**NOVA, **headers}.items():
        command += ['-H', f'{name}: {value}']
    done = subprocess.run(
        [
            *command,
            *('--checks', ','.join(CHECKS)),
            *('--generation-database', 'none'),
            *('--suppress-health-check', 'all'),  # how fast it is says nothing
            *('--warnings', 'off'),
            # Without authentication there is nobody to refuse a wrong token.
            *('--generation-with-security-parameters', 'false'),
            '--continue-on-failure',
            *more,
        ],
        cwd=cloud.directory,
        env={
            **os.environ,
            'PYTHONPATH': str(ROOT),
            'SCHEMATHESIS_HOOKS': plausible_requests.__name__,
            plausible_requests.PROVIDER: cloud.provider_of('FPGA'),
            plausible_requests.HOST: cloud.host,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    return done.stdout


def check_log(cloud: Cloud) -> None:
    """Nothing surprised the daemons."""
    (daemon,) = cloud.children
    assert not lines_of(daemon, 'Traceback')
    assert not lines_of(daemon, 'The request failed.')


def test_each_operation_at_the_edges_of_its_schemas(cloud: Cloud) -> None:
    """At every microversion."""
    said = search(
        cloud,
        '/v2/openapi.json',
        {},
        *('--phases', 'examples,coverage'),
        *('--seed', '1'),
    )
    assert 'No issues found' in said
    check_log(cloud)


def test_whatever_is_sent_and_in_whatever_order(cloud: Cloud) -> None:
    """At the newest microversion, which has all operations."""
    said = search(
        cloud,
        '/v2/openapi.json?microversion=2.4',
        LATEST,
        *('--phases', 'fuzzing,stateful'),
        *('--seed', '2'),
        *('--max-examples', '15'),
    )
    assert 'No issues found' in said
    check_log(cloud)
