# SPDX-License-Identifier: Apache-2.0
"""A client that a generator makes from the API document."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cyborg_lite.api.microversion import V2_4, VERSIONS, Microversion
from tests.builders.device_rows import add_device
from tests.support.api.api_document import load_document
from tests.support.api.conversation import ADMIN, HOST, Client

_PACKAGE: Final = 'accelerator_client'


def list_operations(document: dict[str, Any]) -> Iterator[str]:
    """Yield the module of each operation in the generated package."""
    for item in document['paths'].values():
        for operation in item.values():
            (tag,) = operation['tags']
            yield f'{_PACKAGE}.api.{tag}.{operation["operationId"]}'


@pytest.mark.parametrize('version', [None, VERSIONS[-1]], ids=str)
def test_generator_makes_client_of_every_operation(
    version: Microversion | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = load_document(version)
    file = tmp_path / 'openapi.json'
    file.write_text(json.dumps(document))
    # The generator formats the package by ruff, which is installed beside it.
    path = f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'
    generate = ['openapi-python-client', 'generate', '--fail-on-warning']
    options = ['--path', str(file), '--meta', 'none', '--output-path', _PACKAGE]
    run = subprocess.run(
        [*generate, *options],
        cwd=tmp_path,
        env={**os.environ, 'PATH': path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, ''), run.stdout
    modules = list(list_operations(document))
    subprocess.run(
        [sys.executable, '-c', f'import {", ".join(modules)}'], cwd=tmp_path, check=True
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert _call_operations(modules) == {name.split('.')[2] for name in modules}
    finally:
        for name in [name for name in sys.modules if name.startswith(_PACKAGE)]:
            del sys.modules[name]


# Reads of the tags of which no other operation is called.
_READS: Final = (
    'accelerator_requests.list_accelerator_requests',
    'attention.show_attention',
    'bitstreams.list_bitstreams',
    'deployables.list_deployables',
    'device_types.list_device_types',
    'hosts.list_hosts',
    'instance_events.list_instance_events',
    'limits.list_limits',
    'operations.list_operations',
    'services.list_services',
    'usages.list_usages',
)


_OLDER_READS: Final = ('attributes.list_attributes', 'jobs.show_job')  # until 2.4


def _call_operations(modules: list[str]) -> set[str]:
    """Call operations of every tag in the application; return the tags."""
    service = Client(is_described=False)
    device = add_device(service.conductor.database).uuid
    generated = importlib.import_module(f'{_PACKAGE}.client').Client(
        base_url=HOST,
        headers=dict(ADMIN),
        httpx_args={'transport': httpx.WSGITransport(app=service.application)},
    )

    tags: set[str] = set()

    # Any: a class of the generated package.
    def call(operation: str, body: str = '', *values: Any, **path: Any) -> Any:
        """Return the response; the body has the class of this name."""
        tags.add(operation.partition('.')[0])
        module = importlib.import_module(f'{_PACKAGE}.api.{operation}')
        if body:
            models = importlib.import_module(f'{_PACKAGE}.models')
            build = getattr(models, body).from_dict
            path['body'] = [build(value) for value in values]
        version = V2_4 if operation in _OLDER_READS else VERSIONS[-1]
        path['open_stack_api_version'] = f'accelerator {version}'
        answer = module.sync_detailed(**path, client=generated)
        return answer.status_code, answer.parsed

    profile = {'name': 'gpu', 'groups': [{'resources:PGPU': '1'}]}
    status, created = call(
        'device_profiles.create_device_profile', 'CreateDeviceProfileBodyItem', profile
    )
    assert (status, created.name) == (201, 'gpu')
    change = {'op': 'replace', 'path': '/description', 'value': 'A GPU.'}
    status, changed = call(
        'device_profiles.update_device_profile',
        'UpdateDeviceProfileBodyItem',
        change,
        device_profile='gpu',
    )
    assert (status, changed.device_profile.description) == (200, 'A GPU.')
    change = {'op': 'replace', 'path': '/status', 'value': 'maintaining'}
    status, view = call(
        'devices.update_device', 'UpdateDeviceBodyItem', change, uuid=device
    )
    assert (status, view.status) == (200, 'maintaining')
    status, page = call('devices.list_devices')
    assert (status, [str(item.uuid) for item in page.devices]) == (200, [device])
    _read_collections(call, modules, device)
    versions = importlib.import_module(f'{_PACKAGE}.api.versions.show_version')
    assert versions.sync(client=generated).max_version == str(VERSIONS[-1])
    return {*tags, 'versions'}


# Any: the response of a generated function.
def _read_collections(call: Any, modules: list[str], device: str) -> None:
    """Call the reads of the tags of which nothing else is called."""
    older = [name for name in _OLDER_READS if f'{_PACKAGE}.api.{name}' in modules]
    for operation in (*_READS, *older):
        arguments = {'instance_events': 'instance', 'jobs': 'uuid'}
        name = arguments.get(operation.partition('.')[0])
        status, view = call(operation, **({name: device} if name else {}))
        expected = 404 if name == 'uuid' else 200  # there is no job
        assert (status, view.to_dict() is not None) == (expected, True), operation
