# SPDX-License-Identifier: Apache-2.0
"""A client that a generator makes from the API document."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite.api.microversion import VERSIONS, Microversion
from tests.support.api.api_document import load_document

_PACKAGE: Final = 'accelerator_client'


def list_operations(document: dict[str, Any]) -> Iterator[str]:
    """Yield the module of each operation in the generated package."""
    for item in document['paths'].values():
        for operation in item.values():
            (tag,) = operation['tags']
            yield f'{_PACKAGE}.api.{tag}.{operation["operationId"]}'


@pytest.mark.parametrize('version', [None, VERSIONS[-1]], ids=str)
def test_generator_makes_client_of_every_operation(
    version: Microversion | None, tmp_path: Path
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
