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

from cyborg_lite.api.microversion import VERSIONS, Microversion
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
        _call_operations()
    finally:
        for name in [name for name in sys.modules if name.startswith(_PACKAGE)]:
            del sys.modules[name]


def _call_operations() -> None:
    """Send requests with and without lists of changes to the application."""
    service = Client(is_described=False)
    device = add_device(service.conductor.database).uuid
    generated = importlib.import_module(f'{_PACKAGE}.client').Client(
        base_url=HOST,
        headers=dict(ADMIN),
        httpx_args={'transport': httpx.WSGITransport(app=service.application)},
    )

    # Any: a class of the generated package.
    def call(operation: str, body: str = '', *values: Any, **path: Any) -> Any:
        """Return the response; the body has the class of this name."""
        module = importlib.import_module(f'{_PACKAGE}.api.{operation}')
        if body:
            models = importlib.import_module(f'{_PACKAGE}.models')
            build = getattr(models, body).from_dict
            path['body'] = [build(value) for value in values]
        version = f'accelerator {VERSIONS[-1]}'
        answer = module.sync_detailed(
            **path, client=generated, open_stack_api_version=version
        )
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
