# SPDX-License-Identifier: Apache-2.0
"""Reboot of the sample host of the running service."""

import configparser
import os
import signal
import time
from collections.abc import Callable
from typing import Any, Final

from devstack.launcher import host_files, paths, records
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.processes import Group, read_record
from devstack.launcher.rest import Service

SIGNAL: Final = signal.SIGUSR1  # to the process of the host
_TIMEOUT: Final = 120.0  # seconds
_POLL_INTERVAL: Final = 0.2  # seconds
_SERVICE: Final = 'cyborg-lite'
_HEADERS: Final = {
    'X-User-Id': 'b' * 32,
    'X-Project-Id': 'a' * 32,
    'X-Roles': 'admin,member,reader',
    'OpenStack-API-Version': 'accelerator latest',
}


def run() -> None:
    """Reboot the host, wait until its ARQs are rebuilt or failed, and print them.

    :raises LaunchFailed: no service with a sample host runs, or it does not come back
    """
    group, boot_id = _find_service(), host_files.read_boot_id()
    service = Service(_read_endpoint(), _HEADERS)
    _print_arqs('Before the reboot', service)
    started_at = records.now()
    os.kill(group.pid, SIGNAL)
    _wait_until(lambda: host_files.read_boot_id() not in ('', boot_id), 'the boot')
    _wait_until(service.answers, 'an answer of the service')
    _wait_until(
        lambda: records.is_placement_updated(started_at), 'a report of the agent'
    )
    _wait_until(lambda: not _is_rebuilding(service), 'the result of every ARQ')
    _print_arqs('After the reboot', service)


def _find_service() -> Group:
    for group in read_record(paths.RUNNING):
        if group.name == _SERVICE and group.members() and paths.SAMPLE_HOST.is_dir():
            return group
    raise LaunchFailed(
        'No service with a sample host is running. Start one with --sample-host NAME.'
    )


def _read_endpoint() -> str:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(paths.CONFIG)
    return f'http://127.0.0.1:{parser["api"]["port"]}'


# Any: the fields of an ARQ have various types.
def _list_arqs(service: Service) -> list[dict[str, Any]]:
    answer = service.ask('GET', '/v2/accelerator_requests')
    if answer.status != 200:
        raise LaunchFailed(f'The service answers {answer}')
    arqs: list[dict[str, Any]] = answer.body['arqs']
    return arqs


def _is_rebuilding(service: Service) -> bool:
    return any(arq['state'] == 'Provisioning' for arq in _list_arqs(service))


def _print_arqs(headline: str, service: Service) -> None:
    arqs = _list_arqs(service)
    print(f'== {headline}: boot {host_files.read_boot_id()}, {len(arqs)} ARQs')
    for arq in arqs:
        reason = f' ({arq["status_reason"]})' if arq.get('status_reason') else ''
        description = host_files.describe(arq)
        print(
            f'   {arq["uuid"]} is {arq["state"]}{reason}; the host shows: {description}'
        )


def _wait_until(condition: Callable[[], bool], subject: str) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise LaunchFailed(f'Timeout after {_TIMEOUT:.0f} s: {subject} is missing.')
        time.sleep(_POLL_INTERVAL)
