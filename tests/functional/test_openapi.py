# SPDX-License-Identifier: Apache-2.0
"""Schemathesis against the running services: no input causes a server error, and every
answer fits the API document.

The seeds are fixed, so that a failure can be repeated.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.api.microversion import MAXIMUM
from tests.builders import api_bodies
from tests.servers.databases import fresh_database
from tests.servers.stack import NOVA, ROOT, Cloud, expect, lines_of

CHECKS: Final = (
    'not_a_server_error',
    'status_code_conformance',
    'content_type_conformance',
    'response_schema_conformance',
    'response_headers_conformance',
    # Forbidden input is refused, and deleted resources are not found.
    'negative_data_rejection',
    'unsupported_method',
    'use_after_free',
    'ensure_resource_availability',
)
LATEST: Final = {'OpenStack-API-Version': f'accelerator {MAXIMUM}'}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """Yield daemons and a real database with one resource of each kind.

    Each test has its own, so that runs do not depend on each other.
    """
    databases = fresh_database('postgresql')
    with Cloud(
        tmp_path, transport_url='local://', connection=next(databases)
    ) as started:
        started.start('standalone')
        for name in api_bodies.NAMES:
            body = [{'name': name, 'groups': [{'resources:FPGA': '1'}]}]
            expect(started.api().ask('POST', '/v2/device_profiles', body), 201)
        instance = started.boot('FPGA', 2)
        started.until(instance.is_resolved)
        yield started
    next(databases, None)


def search(
    cloud: Cloud, document: str, headers: Mapping[str, str], *arguments: str
) -> str:
    """Run schemathesis, check that it reports no failure, and return its output."""
    address = f'http://127.0.0.1:{cloud.port}{document}'
    command = [sys.executable, '-m', 'schemathesis.cli', '--no-color', 'run', address]
    for name, value in {**NOVA, **headers}.items():
        command += ['-H', f'{name}: {value}']
    completed = subprocess.run(
        [
            *command,
            *('--checks', ','.join(CHECKS)),
            *('--generation-database', 'none'),
            *('--suppress-health-check', 'all'),  # speed is not checked
            *('--warnings', 'off'),
            # Without authentication no wrong token is refused.
            *('--generation-with-security-parameters', 'false'),
            '--continue-on-failure',
            *arguments,
        ],
        cwd=cloud.directory,
        env={
            **os.environ,
            'PYTHONPATH': str(ROOT),
            'SCHEMATHESIS_HOOKS': api_bodies.__name__,
            api_bodies.PROVIDER: cloud.provider_of('FPGA'),
            api_bodies.HOST: cloud.host,
        },
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, (
        completed.stdout[-20000:] + completed.stderr[-2000:]
    )
    return completed.stdout


def check_log(cloud: Cloud) -> None:
    """Check that the daemons logged no unexpected error."""
    (daemon,) = cloud.children
    assert not lines_of(daemon, 'Traceback')
    assert not lines_of(daemon, 'The request failed.')


def test_operations_accept_edges_of_their_schemas(cloud: Cloud) -> None:
    """Test all microversions."""
    output = search(
        cloud,
        '/v2/openapi.json',
        {},
        *('--phases', 'examples,coverage'),
        *('--seed', '1'),
    )
    assert 'No issues found' in output
    check_log(cloud)


def test_operations_in_any_order_cause_no_error(cloud: Cloud) -> None:
    """The newest microversion has all operations."""
    output = search(
        cloud,
        f'/v2/openapi.json?microversion={MAXIMUM}',
        LATEST,
        *('--phases', 'fuzzing,stateful'),
        *('--seed', '2'),
        *('--max-examples', '15'),
    )
    assert 'No issues found' in output
    check_log(cloud)
